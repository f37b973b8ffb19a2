"""Checkpoints that describe their own answers: read as described, or refused as a whole."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from smg_node.core.generation.pieces import Piece
from smg_node.parsers.notations.streaming_regex import UnreadableAnchorError, steps_of, words_of
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.recognition import Clues, recognise
from smg_node.parsers.selection.response_template import UnreadableTemplateError, described
from support.answers.parser_cases import TOOLS, cut_anyhow, in_chunks, joined, shown

_NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
_WHOLE = {"type": "function", "function": "{content}"}
_TAGGED = {
    "open_pattern": r"<do>\s*<fn=(?P<name>\w+)>",
    "close": "</do>",
    "repeats": True,
    "content": "xml-inline",
    "content_args": {
        "tag_pattern": r"<arg=(?P<key>\w+)>\s*(?P<value>.*?)\s*</arg>",
        "value_parser": {"name": "json", "args": {"allow_non_json": True}},
    },
    "transform": _NAMED,
}
_ARRAY = {
    "open": "<|ACT|>",
    "close": "<|/ACT|>",
    "content": "json",
    "transform_each": True,
    "transform": {"type": "function", "function": {"name": "{tool}", "arguments": "{input}"}},
}
_OBJECTS = {
    "open": "<call>",
    "close": "</call>",
    "repeats": True,
    "content": "json",
    "transform": _WHOLE,
}
_DEEP = {
    "open": "<call>",
    "close": "</call>",
    "content": "json",
    "transform": {"function": {"name": "{content.fn}", "arguments": "{content.args}"}},
}
_OPENED = {
    "open_pattern": r"<\|to:(?P<name>\w+).*?<\|say\|>",
    "close": "<|over|>",
    "repeats": True,
    "content": "json",
    "transform": _NAMED,
}
_THOUGHT = {"open": "<mull>", "close": "</mull>", "content": "text"}
_VERBATIM = {**_THOUGHT, "content_args": {"strip": False}}
_IMPLICIT = {"close": ["<|im_end|>", "eos"], "content": "text"}
_FRAMED = {"open": "<out>\n", "close_pattern": r"\n?</out>"}


def _template(**fields: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": fields,
    }


def _read(template: dict[str, Any], chunks: Sequence[str], tail: str) -> list[Piece]:
    chosen = recognise(Clues(("m",), response_template=template))
    scanner = Printing(chosen).scanner(
        tools=tuple(TOOLS.values()),
        calls=True,
        tail=tail,
        new_id=lambda _name, ordinal: f"c{ordinal}",
    )
    said: list[Piece] = []
    for chunk in chunks:
        said += scanner.feed(chunk)
    return joined([*said, *scanner.finish()])


_READ: list[tuple[dict[str, Any], str, str, str]] = [
    (
        _template(thinking=_THOUGHT, content=_IMPLICIT, tool_calls=_OBJECTS),
        "",
        '<mull>\nA tide.\n</mull>\n\nSee:\n<call>\n{"name": "get_tide", "arguments": {"port":"Brest"}}\n</call><|im_end|>',
        'reasoning "A tide."\ntext "See:\\n"\ncall get_tide c0\narguments "{\\"port\\":\\"Brest\\"}"',
    ),
    (
        _template(thinking=_VERBATIM, tool_calls=_OBJECTS),
        "<mull>",
        "One.</mull>Two </call> <mull>",
        'reasoning "One."\ntext "Two  <mull>"',
    ),
    (
        _template(thinking=_THOUGHT, content=_FRAMED, tool_calls=_ARRAY),
        "",
        '<mull>Two.</mull><|ACT|>[{"id": 0, "tool": "get_tide", "input": {"port": "Ré"}}, {"tool": "list_rooms", "input": {}}]<|/ACT|>',
        'reasoning "Two."\ncall get_tide c0\narguments "{\\"port\\": \\"Ré\\"}"\ncall list_rooms c1\narguments "{}"',
    ),
    (
        _template(thinking=_THOUGHT, content=_FRAMED),
        "",
        "<mull>x</mull>\n<out>\nYes.\n</out>",
        'reasoning "x"\ntext "Yes."',
    ),
    (
        _template(thinking={"open_pattern": r"(?:^|<mull>\s*)", "close": "</mull>"}),
        "",
        "Straight in.</mull>Out.",
        'reasoning "Straight in."\ntext "Out."',
    ),
    (
        _template(thinking={"content": "text"}, content={"open": "[ANSWER]", "close": "[DONE]"}),
        "",
        "First this. [ANSWER]18 litres[DONE]",
        'reasoning "First this. "\ntext "18 litres"',
    ),
    (
        _template(tool_calls=_DEEP),
        "",
        '<call>{"fn": "convert", "args": {"amount": 2e1}}</call>done',
        'call convert c0\narguments "{\\"amount\\": 2e1}"\ntext "done"',
    ),
    (
        _template(tool_calls=_OPENED),
        "",
        'Hm.<|to:get_tide as json<|say|>{"port": "<|over|>"}<|over|><|to:list_rooms<|say|>{}<|over|>',
        'text "Hm."\ncall get_tide c0\narguments "{\\"port\\": \\"<|over|>\\"}"\ncall list_rooms c1\narguments "{}"',
    ),
    (_template(tool_calls=_OPENED), "", "<|to:x and no more", 'text "<|to:x and no more"'),
    (_template(tool_calls=_OPENED), "", "<|to:<|say|>{}", 'text "<|to:<|say|>{}"'),
    (
        _template(tool_calls=_TAGGED),
        "",
        "<do>\n<fn=find_museum>\n<arg=city>\nGhent\n</arg>\n<arg=max>\n3\n</arg>\n</fn>\n</do>",
        'call find_museum c0\narguments "{\\"city\\":\\"Ghent\\",\\"max\\":3}"',
    ),
    (
        _template(tool_calls=_TAGGED),
        "",
        "<do><fn=write_file><arg=path>a.py</arg><arg=text>x = '</arg>' + y\n</arg></fn></do><do><fn=list_rooms></fn></do>",
        'call write_file c0\narguments "{\\"path\\":\\"a.py\\",\\"text\\":\\"x = \'</arg>\' + y\\"}"\ncall list_rooms c1\narguments "{}"',
    ),
    (
        _template(tool_calls=_TAGGED),
        "",
        "<do><fn=find_museum><arg=city>Ghe",
        'call find_museum c0\narguments "{\\"city\\":\\"Ghe"',
    ),
    (
        _template(tool_calls=_TAGGED),
        "",
        "<do><fn=find_museum><arg=max>3</arg><ar",
        'call find_museum c0\narguments "{\\"max\\":3"',
    ),
    (_template(tool_calls=_TAGGED), "", "<do>it and <do><fn=>", 'text "<do>it and <do><fn=>"'),
]


@pytest.mark.parametrize(("template", "tail", "text", "said"), _READ)
def test_an_answer_is_read_as_its_checkpoint_describes_it_in_every_cutting(
    template: dict[str, Any], tail: str, text: str, said: str
) -> None:
    whole = _read(template, [text], tail)
    assert shown(whole) == said
    for size in (1, 2, 3, 7, 40):
        assert _read(template, in_chunks(text, size), tail) == whole
    for at in range(1, len(text)):
        assert _read(template, [text[:at], text[at:]], tail) == whole
        assert _read(template, [text[:at]], tail) == _read(template, list(text[:at]), tail)
    for seed in range(5):
        assert _read(template, cut_anyhow(text, seed), tail) == whole


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"version": 2, "fields": {}}, "its version is 2"),
        ({}, "makes no sense"),
        ({"fields": []}, "makes no sense"),
        (_template(mood={"open": "<m>"}), "no place for its field 'mood'"),
        (_template(content={"shut": "<m>"}), "'content' has 'shut'"),
        (_template(thinking={"open": "<m>"}), "never end"),
        (_template(thinking={"open": 5, "close": "x"}), "makes no sense"),
        (_template(thinking={"open": ["", "x"], "close": "x"}), "is no text"),
        (_template(thinking={**_THOUGHT, "transform": "{content}"}), "to be rewritten"),
        (_template(thinking=_THOUGHT, content={"open": "<o>", "close": "</mull>"}), "several of its fields end"),
        (_template(tool_calls={"content": "json"}), "nothing opens its calls"),
        (_template(tool_calls={**_OBJECTS, "content": "kv-lines"}), "its calls are 'kv-lines'"),
        (_template(tool_calls={**_OBJECTS, "content_args": {"unquoted_keys": True}}), "its calls are 'json'"),
        (_template(tool_calls={**_OBJECTS, "transform": {"function": {"name": "fixed", "arguments": "{x}"}}}), "spelled in a way"),
        (_template(tool_calls={**_DEEP, "transform": {"name": "{a.b}", "arguments": "{c.d}"}}), "its calls are at"),
        (_template(tool_calls={**_OPENED, "open_pattern": r"(?P<name>\w+):"}), "begin with no word"),
        (_template(tool_calls={**_OPENED, "open_pattern": r"<call (\w+)>"}), "is not understood"),
        (_template(tool_calls={**_OPENED, "open_pattern": r"<to:(?P<who>\w+)>"}), "names a function"),
        (_template(tool_calls={**_TAGGED, "content_args": {}}), "makes no sense"),
        (_template(tool_calls={**_TAGGED, "content_args": {"tag_pattern": "<a>"}}), "its parameters are"),
        (_template(tool_calls={**_TAGGED, "content_args": {"tag_pattern": "<a>(?P<value>.*?)</a>"}}), "have no names"),
    ],
)  # fmt: skip
def test_a_description_that_cannot_be_read_is_refused_and_other_evidence_decides(
    template: dict[str, Any], why: str
) -> None:
    with pytest.raises(UnreadableTemplateError, match=re.escape(why)):
        described(template)
    chosen = recognise(Clues(("qwen3-8b",), response_template=template))
    assert (chosen.reasoning, chosen.tools, chosen.described) == ("think", "hermes", None)
    assert len(chosen.warnings) == 1
    assert why in chosen.warnings[0]


def test_where_it_begins_with_the_words_of_a_known_format_that_one_reads_it() -> None:
    template = _template(
        thinking={"open": "<think>", "close": "</think>"},
        tool_calls={**_OBJECTS, "open": "<tool_call>", "close": "</tool_call>"},
    )
    marks = '<think><tool_call>{"arguments"'
    chosen = recognise(Clues(("m",), marks, response_template=template))
    assert (chosen.reasoning, chosen.tools, chosen.described) == ("think", "hermes", None)
    assert chosen.why_tools.source == "response template"
    alone = recognise(Clues(("m",), response_template=template))
    assert (alone.reasoning, alone.tools) == ("response_template", "response_template")


def test_what_it_says_nothing_of_is_left_to_other_evidence() -> None:
    chosen = recognise(Clues(("qwen3-8b",), response_template=_template(tool_calls=_DEEP)))
    assert (chosen.reasoning, chosen.tools) == ("think", "response_template")
    assert chosen.why_tools.source == "response template"
    assert chosen.why_reasoning.source == "name"


def test_it_may_be_asked_for_by_name_where_there_is_one() -> None:
    template = _template(thinking=_THOUGHT, tool_calls=_DEEP)
    clues = Clues(("m",), "<TOOLCALL>", tool_label="hf", reasoning_parser="response_template")
    without = recognise(clues)
    assert (without.reasoning, without.tools) == ("think", "nemotron_json")
    assert "hold no response_template" in without.warnings[0]
    found = recognise(
        Clues(
            ("m",), "<TOOLCALL>", tool_label="hf", reasoning_parser="hf", response_template=template
        )
    )
    assert (found.reasoning, found.tools) == ("response_template", "response_template")
    assert found.why_tools.source == "worker"
    assert Printing(found).start("…<mull>\n") == "inside"
    assert Printing(Chosen()).plain


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("<a>", ("<a>",)),
        (r"\n?</a>", ("\n</a>", "</a>")),
        (r"\s*</a>\s*", ("</a>",)),
        (r"(?:\n)?<\|a\|>(?:b)?", ("\n<|a|>b", "<|a|>b", "\n<|a|>", "<|a|>")),
    ],
)
def test_simple_expressions_are_a_few_words(pattern: str, words: tuple[str, ...]) -> None:
    assert sorted(words_of(pattern)) == sorted(words)
    assert all(re.fullmatch(pattern, word) for word in words)


@pytest.mark.parametrize(
    "pattern",
    [r"\w+", "a|b", "[ab]", "", r"\n?", "a?b?c?d?e?"],
)
def test_others_are_not(pattern: str) -> None:
    with pytest.raises(UnreadableAnchorError):
        words_of(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *("a.*b", "a.+?b", "(a)", "(?=a)b", r"a\b", "^a", "a$", "a{2}", "a*?", "(?:a|b)c", "(?:a", "a)"),
        *(r"\w+a", r"[a-z]+\w+", "[z-a]+b", "(?P<n>ab)", "(?P<n>(?P<m>a*))", "a.*?", r"a.*?\w+", r"\1", "[", "a++"),
    ],
)  # fmt: skip
def test_an_expression_that_one_pass_cannot_follow_is_refused(pattern: str) -> None:
    with pytest.raises(UnreadableAnchorError):
        steps_of(pattern)
