"""Formats whose thoughts and calls are one grammar: any text whatever is read, alike in every cutting."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.parsers.notations.json_calls import is_name
from smg_node.parsers.selection.registry import known_joint
from support.answers.parser_cases import case_of, in_chunks, pieces_of
from support.tools.example_counts import example_count

WORDS = {
    "harmony": [
        *("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>"),
        *("<|return|>", "<|endoftext|>", "<|reserved_200014|>", "<|", "|>", "assistant", " to="),
        *("functions.get_tide", "python", "analysis", "commentary", "final", "json", '{"port":'),
    ],
    "kimi_k3": [
        *("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "think", "response", "tools"),
        *("call", ' tool="get_tide"', ' index="1"', "argument", ' key="port"', ' type="string"'),
        *("json", "message", "{}"),
    ],
    "inkling": [
        *("<|message_model|>", "<|content_thinking|>", "<|content_text|>", "<|end_message|>"),
        *("<|content_invoke_tool_json|>", "get_tide", '{"name":"get_tide","args":', "{}}"),
    ],
    "muse": [
        *("<|start|>", "assistant", " to=self", " to=user", " to=get_tide", "<|message|>"),
        *("<|eom|>", "<|eot|>", "<atem:function_calls>", "</atem:function_calls>"),
        *('<atem:invoke name="get_tide">', "</atem:invoke>", '<atem:parameter name="port">'),
        "</atem:parameter>",
    ],
    "apertus": [
        *("<|inner_prefix|>", "<|inner_suffix|>", "<|tools_prefix|>", "<|tools_suffix|>", "[{"),
        *('"get_tide": ', '{"port": "Brest"}', "}]", ", ", "<|assistant_end|>"),
    ],
    "k2_horizon": [
        *("<ifm|think>", "</ifm|think>", "<ifm|tool_calls>", "</ifm|tool_calls>", "get_tide"),
        *("<ifm|tool_call>", "</ifm|tool_call>", "<ifm|arg_key>", "</ifm|arg_key>", "port"),
        *("<ifm|arg_value>", "</ifm|arg_value>", '{"name": "get_tide", "arguments": {}}'),
    ],
}
ANYWHERE = ["\n", " ", "a", '"', "\\", "{", "}", "<", "Ghent", "é", "😀"]


def test_every_joint_format_has_its_soup() -> None:
    ours = {
        name
        for name in known_joint()
        if known_joint().get(name).read.__module__.startswith("smg_node.parsers.combined.")
    }
    assert ours == set(WORDS)


@pytest.mark.parametrize("name", sorted(WORDS))
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_soup_of_markers_is_read_alike_in_every_cutting(name: str, data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from([*WORDS[name], *ANYWHERE]), max_size=30))
    tail = data.draw(st.sampled_from(["", *known_joint().get(name).openers]))
    choice = data.draw(st.sampled_from(["auto", "none"]))
    text = "".join(words)
    case = case_of({"joint": name, "tail": tail, "choice": choice}, text + "\n")
    whole = pieces_of(case, [text])
    assert pieces_of(case, text) == whole
    assert pieces_of(case, words) == whole
    assert pieces_of(case, in_chunks(text, 7)) == whole


@pytest.mark.parametrize("name", sorted(WORDS))
@given(text=st.text(alphabet="abc <>|/\n.{}[]\"'é", max_size=60))
@settings(max_examples=60, deadline=None)
def test_text_without_markers_comes_back_as_it_is(name: str, text: str) -> None:
    form = known_joint().get(name)
    closers = form.closers
    case = case_of({"joint": name, "tail": closers[0]}, text + "\n")
    assert joined_text(pieces_of(case, text)) == text


def joined_text(pieces: list[Piece]) -> str:
    """Return all that is said to the reader."""
    assert all(isinstance(piece, Text) for piece in pieces)
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


FRAMED = {
    "harmony": "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final "
    "<|constrain|>json<|message|>4<|return|>",
    "kimi_k3": "<|open|>think<|sep|>Sum them.<|close|>think<|sep|><|open|>response<|sep|>42"
    "<|close|>response<|sep|><|open|>tools<|sep|><|open|>call",
    "inkling": "<|message_model|><|content_thinking|>Leap year?<|end_message|><|message_model|>"
    "<|content_text|>Yes.<|end_message|><|content_model_end_sampling|>",
    "muse": " to=self<|message|>Rhyme.<|eom|><|start|>assistant to=user<|message|>Free.<|eot|>",
}


@pytest.mark.parametrize("name", sorted(FRAMED))
def test_an_answer_that_ends_between_two_tokens_shows_nothing_of_their_frame(name: str) -> None:
    text = FRAMED[name]
    for found in re.finditer(r"<\|\w+\|>", text):
        for end in found.span():
            pieces = pieces_of(case_of({"joint": name}, text[:end]), text[:end])
            said = "".join(piece.text for piece in pieces if isinstance(piece, Text | Reasoning))
            assert "<" not in said
            assert "response" not in said
            assert "assistant" not in said


HEADER = st.lists(
    st.sampled_from(
        [
            *("<|channel|>", "<|constrain|>", "<|reserved_1|>", "<|x|>", "<|start|>", "analysis"),
            *("commentary", "final", " to=functions.get_tide", " to=python", " json", "to=", "<"),
            *(" ", "\n", "functions.", "é", "a" * 300, " to=functions.é"),
        ]
    ),
    max_size=12,
)


@given(header=HEADER)
@settings(max_examples=example_count(300), deadline=None)
def test_whatever_stands_in_a_header_it_is_read_and_the_next_message_is_too(
    header: list[str],
) -> None:
    text = "".join(header) + '<|message|>{"port":"Brest"}<|end|>'
    text += "<|start|>assistant<|channel|>final<|message|>Noon.<|return|>"
    case = case_of({"joint": "harmony"}, text + "\n")
    pieces = pieces_of(case, [text])
    assert pieces == pieces_of(case, text)
    last = pieces[-1]
    assert isinstance(last, Text)
    assert last.text.endswith("Noon.")
    body = "".join(
        piece.text for piece in pieces if isinstance(piece, Text | Reasoning | Arguments)
    )
    assert '{"port":"Brest"}' in body
    assert all(is_name(piece.name) for piece in pieces if isinstance(piece, Call))


@given(value=st.recursive(st.text() | st.integers() | st.booleans() | st.none(), st.lists))
@settings(max_examples=example_count(100), deadline=None)
def test_arguments_leave_as_they_were_printed_whatever_is_in_them(value: object) -> None:
    body = json.dumps({"a <|call|> <|end|>": value}, ensure_ascii=False)
    text = f"<|channel|>commentary to=functions.x <|constrain|>json<|message|>{body}<|call|>"
    assert pieces_of(case_of({"joint": "harmony"}, text + "\n"), text) == [
        Call("x", "call_0"),
        Arguments(body),
    ]
