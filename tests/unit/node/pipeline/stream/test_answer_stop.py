"""Stop strings are matched in the answer and its calls, and never in a thought, however the text is cut."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import BlockEnd, Event, Finish
from smg_node.core.generation.request import Sampling, Tool
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from support.models.bytewise_tokenizer import BytewiseTokenizer
from support.tools.example_counts import example_count

HERMES = '<tool_call>\n{"name": "find", "arguments": {"city": "Ghent"}}\n</tool_call>'
TAGGED = (
    "<tool_call>\n<function=find>\n<parameter=city>\nGhent\n</parameter>\n</function>\n</tool_call>"
)
HARMONY_THOUGHT = "<|channel|>analysis<|message|>a number<|end|><|start|>assistant"
HARMONY_CALL = (
    '<|channel|>commentary to=functions.find <|constrain|>json<|message|>{"city":"Ghent"}<|call|>'
)
FORMATS = {
    "think": Printing(Chosen("think", "hermes")),
    "implicit": Printing(Chosen("think", "hermes", frozenset({"implicit", "interleaved"}))),
    "trim": Printing(Chosen("think", "qwen_xml", frozenset({"trim"}))),
    "harmony": Printing(Chosen("harmony", "harmony")),
    "kimi_k3": Printing(Chosen("kimi_k3", "kimi_k3")),
    "apertus": Printing(Chosen("apertus", "apertus")),
    "cohere": Printing(Chosen("cohere_cmd", "cohere")),
    "calls": Printing(Chosen("plain", "hermes")),
}


def heard(
    form: str,
    text: str,
    stop: Sequence[str],
    cuts: Sequence[int],
    *,
    tail: str = "",
    logprobs: bool = False,
    keep: bool = False,
) -> tuple[list[tuple[str, str]], Finish, ChoiceStream]:
    """Return the blocks of an answer, how it ended, and its stream."""
    tokenizer, names = BytewiseTokenizer(), itertools.count()
    sampling = Sampling(
        max_tokens=1000, stop=tuple(stop), logprobs=0 if logprobs else None, keep_stop=keep
    )
    stream = ChoiceStream(
        0,
        sampling=sampling,
        ends=ends_of(sampling, tokenizer, ()),
        tokenizer=tokenizer,
        detokenizer=tokenizer.detokenizer(
            prompt_tail=(), skip_special_tokens=False, spaces_between_special_tokens=True
        ),
        parser=FORMATS[form].scanner(
            tools=(Tool("find"),), calls=True, tail=tail, new_id=lambda *_: f"call_{next(names)}"
        ),
    )
    ids = text.encode()
    bounds = [0, *sorted({min(at, len(ids)) for at in cuts}), len(ids)]
    out: list[Event] = []
    for start, end in itertools.pairwise(bounds):
        part = tuple(ids[start:end])
        rows = tuple(IdLogprob(one, -0.5) for one in part) if logprobs else ()
        stream.feed(Chunk(0, part, rows), out)
    stream.feed(Chunk(0, (), finish="stop"), out)
    ends = [event for event in out if isinstance(event, BlockEnd)]
    # A choice that says nothing has an empty block for its ids.
    blocks: list[tuple[str, str]] = [
        (end.kind, end.text) for end in ends if end.text or end.kind == "call"
    ]
    (finish,) = [event for event in out if isinstance(event, Finish)]
    return blocks, finish, stream


ARGUMENTS = '{"city": "Ghent"}'
CASES = {
    "word in the thought, opened by the prompt": (
        ("think", "a number</think>42 number", ["number"], "<think>\n"),
        ([("reasoning", "a number"), ("text", "42 ")], "stop", "number"),
    ),
    "word in the thought, opened by the model": (
        ("think", "<think>\na number</think>42 number", ["number"], ""),
        ([("reasoning", "\na number"), ("text", "42 ")], "stop", "number"),
    ),
    "no thought at all": (
        ("think", "<b>a number", ["number"], ""),
        ([("text", "<b>a ")], "stop", "number"),
    ),
    "what may begin a mark is of the answer if it does not": (
        ("think", "<b>a", ["<b>"], ""),
        ([], "stop", "<b>"),
    ),
    "an answer that breaks off in what may begin a mark": (
        ("think", "<th", ["<th"], ""),
        ([], "stop", "<th"),
    ),
    "parts of marks are no words": (
        ("think", "<think>a</think>think", ["think"], ""),
        ([("reasoning", "a")], "stop", "think"),
    ),
    "blank lines around a thought are layout": (
        ("think", "\n<think>\na\n\nb\n</think>\n\nOne.\n\nTwo.", ["\n\n"], ""),
        ([("reasoning", "\na\n\nb\n"), ("text", "\n\nOne.")], "stop", "\n\n"),
    ),
    "blank lines that the format drops": (
        ("trim", "a\n</think>\n\nOne.\nTwo", ["\n"], "<think>\n"),
        ([("reasoning", "a"), ("text", "One.")], "stop", "\n"),
    ),
    "a doubled opener": (
        ("think", "<think>a number</think>1 number", ["number"], "<think>\n"),
        ([("reasoning", "a number"), ("text", "1 ")], "stop", "number"),
    ),
    "a doubled closer": (
        ("think", "a</think></think>b think", ["think"], "<think>"),
        ([("reasoning", "a"), ("text", "b ")], "stop", "think"),
    ),
    "a thought in the middle": (
        ("implicit", "I see.\n<think>a number</think>A number", ["number"], ""),
        (
            [("text", "I see.\n"), ("reasoning", "a number"), ("text", "A ")],
            "stop",
            "number",
        ),
    ),
    "the end of a thought is no part of a stop string": (
        ("think", "a num</think>ber", ["number"], "<think>"),
        ([("reasoning", "a num"), ("text", "ber")], "stop", None),
    ),
    "a stop string that never comes": (
        ("think", "<think>a</think>b", ["number"], ""),
        ([("reasoning", "a"), ("text", "b")], "stop", None),
    ),
    "a thought that never ends": (
        ("think", "a number", ["number"], "<think>"),
        ([("reasoning", "a number")], "stop", None),
    ),
    "frames around an answer": (
        (
            "cohere",
            "<|START_THINKING|>a START<|END_THINKING|><|START_RESPONSE|>b START",
            ["START"],
            "",
        ),
        ([("reasoning", "a START"), ("text", "b ")], "stop", "START"),
    ),
    "headers of messages": (
        (
            "harmony",
            f"{HARMONY_THOUGHT}<|channel|>final<|message|>The assistant",
            ["assistant", "final"],
            "",
        ),
        ([("reasoning", "a number"), ("text", "The ")], "stop", "assistant"),
    ),
    "the first word of a message": (
        ("harmony", f"{HARMONY_THOUGHT}<|channel|>final<|message|>number", ["number"], ""),
        ([("reasoning", "a number")], "stop", "number"),
    ),
    "elements": (
        (
            "kimi_k3",
            "a number<|close|>think<|sep|><|open|>response<|sep|>no response",
            ["response", "number"],
            "<|open|>think<|sep|>",
        ),
        ([("reasoning", "a number"), ("text", "no ")], "stop", "response"),
    ),
    "blocks": (
        ("apertus", "<|inner_prefix|>a number<|inner_suffix|>1 number", ["number"], ""),
        ([("reasoning", "a number"), ("text", "1 ")], "stop", "number"),
    ),
    "a format whose answers need no mark": (
        ("apertus", "number", ["numb"], ""),
        ([], "stop", "numb"),
    ),
    "a mark that closes a call": (
        ("think", f"a</think>I look.{HERMES} and more", ["</tool_call>"], "<think>"),
        (
            [("reasoning", "a"), ("text", "I look."), ("call", ARGUMENTS)],
            "tool_calls",
            "</tool_call>",
        ),
    ),
    "a mark that closes a call, where nobody thinks": (
        ("calls", f"{HERMES} and more", ["</tool_call>"], ""),
        ([("call", ARGUMENTS)], "tool_calls", "</tool_call>"),
    ),
    "a mark that closes a tagged call": (
        ("trim", f"a</think>{TAGGED} and more", ["</tool_call>"], "<think>"),
        ([("reasoning", "a"), ("call", '{"city":"Ghent"}')], "tool_calls", "</tool_call>"),
    ),
    "a tag that closes a call's function": (
        ("trim", f"{TAGGED} and more", ["</function>"], "<think></think>"),
        ([("call", '{"city":"Ghent"}')], "tool_calls", "</function>"),
    ),
    "a word behind a call": (
        ("think", f"{HERMES}\nObservation: rain", ["Observation"], "<think></think>"),
        ([("call", ARGUMENTS)], "tool_calls", "Observation"),
    ),
    "a second call that is cut off": (
        ("think", f"{HERMES}\n{HERMES}", ['"Gh'], "<think></think>"),
        ([("call", '{"city": ')], "stop", '"Gh'),
    ),
    "a call whose arguments have not begun": (
        ("think", HERMES, ['"arguments"'], "<think></think>"),
        ([("call", "{")], "stop", '"arguments"'),
    ),
    "a token that ends a call": (
        ("harmony", f"{HARMONY_THOUGHT}{HARMONY_CALL} and more", ["<|call|>"], ""),
        ([("reasoning", "a number"), ("call", '{"city":"Ghent"}')], "tool_calls", "<|call|>"),
    ),
    "a call that ends a thought": (
        ("implicit", f"a number{HERMES} more", ["number", "</tool_call>"], "<think>"),
        ([("reasoning", "a number"), ("call", ARGUMENTS)], "tool_calls", "</tool_call>"),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("logprobs", [False, True], ids=["plain", "logprobs"])
def test_the_answer_ends_where_its_own_text_has_the_string(name: str, logprobs: bool) -> None:
    (form, text, stop, tail), expected = CASES[name]
    shapes: Sequence[Sequence[int]] = ([], range(400), range(0, 400, 3), range(1, 400, 7))
    for cuts in shapes:
        blocks, finish, stream = heard(form, text, stop, cuts, tail=tail, logprobs=logprobs)
        said, reason, matched = expected
        assert (blocks, finish) == (said, Finish(0, reason, matched))  # type: ignore[arg-type]  # a table's word
        assert stream.cut_by_string is (matched is not None)


@given(data=st.data(), name=st.sampled_from(sorted(CASES)))
@settings(max_examples=example_count(200), deadline=None)
def test_no_cut_changes_what_is_said(data: st.DataObject, name: str) -> None:
    (form, text, stop, tail), _ = CASES[name]
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=12))
    logprobs = data.draw(st.booleans())
    keep = data.draw(st.booleans())
    whole = heard(form, text, stop, range(400), tail=tail, logprobs=logprobs, keep=keep)
    parts = heard(form, text, stop, cuts, tail=tail, logprobs=logprobs, keep=keep)
    assert parts[:2] == whole[:2]


def test_a_kept_stop_string_is_shown_where_it_stands() -> None:
    blocks, finish, _ = heard(
        "think", "a number</think>1 number", ["number"], [], tail="<think>", keep=True
    )
    assert blocks == [("reasoning", "a number"), ("text", "1 number")]
    assert finish == Finish(0, "stop", "number")
