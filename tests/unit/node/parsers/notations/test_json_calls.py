"""Calls as JSON: arguments verbatim in any cutting, keys in any order, strings of JSON, and the limits."""

import json
import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.pieces import Arguments, Call, Piece, Text
from smg_node.core.generation.request import Tool
from smg_node.parsers.notations.json_calls import is_id, is_name
from smg_node.parsers.reading.answer_grammar import PLAIN, AnswerFormat
from smg_node.parsers.reading.format import FormatRequest
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.reading.text_reader import CALLS_MAX, HELD_MAX
from smg_node.parsers.selection.registry import known_tools
from support.answers.parser_cases import cut_anyhow, in_chunks, joined

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.text(max_size=8), _JSON, max_size=4)
_MARKS = ("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "}]", '"', "\\", "\u2028", "😀", "\x7f")
_STRINGS = st.lists(st.sampled_from(_MARKS) | st.text(max_size=4), max_size=6).map("".join)
_SURROGATES = st.lists(
    st.sampled_from(
        ["a", "\\u00fc", "\\ud83d\\ude00", "\\ud83d", "\\ude00", '\\"', "\\\\", "\\n", "\\/"]
    ),
    max_size=8,
).map("".join)


def _said(tools: str, chunks: Sequence[str], *declared: Tool) -> list[Piece]:
    scanner = Scanner(
        AnswerFormat(PLAIN, [known_tools().get(tools)]),
        asked=FormatRequest({tool.name: tool for tool in declared}),
        start="content",
        new_id=lambda _name, ordinal: f"call_{ordinal}",
    )
    pieces: list[Piece] = []
    for chunk in chunks:
        pieces += scanner.feed(chunk)
    return joined([*pieces, *scanner.finish()])


def _all_cuts(tools: str, text: str, seed: int, *declared: Tool) -> list[Piece]:
    whole = _said(tools, [text], *declared)
    assert _said(tools, list(text), *declared) == whole
    assert _said(tools, cut_anyhow(text, seed), *declared) == whole
    return whole


def _hermes(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


@given(_OBJECTS, st.booleans(), st.sampled_from([None, 1]), st.integers(0, 99))
def test_any_object_passes_as_arguments_character_for_character(
    value: dict[str, Any], ascii_only: bool, indent: int | None, seed: int
) -> None:
    printed = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    text = _hermes(f'{{"name": "f", "arguments": {printed}}}')
    assert _all_cuts("hermes", text, seed) == [Call("f", "call_0"), Arguments(printed)]


@given(_OBJECTS, st.integers(0, 99))
def test_arguments_before_the_name_are_the_same_as_behind_it(
    value: dict[str, Any], seed: int
) -> None:
    printed = json.dumps(value)
    text = _hermes(f'{{"id": 7, "arguments": {printed}, "name": "f"}}')
    assert _all_cuts("hermes", text, seed) == [Call("f", "call_0"), Arguments(printed)]


@given(_OBJECTS, st.booleans(), st.booleans(), st.integers(0, 99))
def test_arguments_as_a_string_are_what_the_string_says(
    value: dict[str, Any], ascii_only: bool, name_first: bool, seed: int
) -> None:
    printed = json.dumps(value, ensure_ascii=False)
    pair = ['"name": "f"', f'"arguments": {json.dumps(printed, ensure_ascii=ascii_only)}']
    text = _hermes("{" + ", ".join(pair if name_first else pair[::-1]) + "}")
    assert _all_cuts("hermes", text, seed) == [Call("f", "call_0"), Arguments(printed)]


@given(_SURROGATES, st.integers(0, 99))
def test_escapes_may_be_split_anywhere_and_a_half_of_a_character_is_no_character(
    escaped: str, seed: int
) -> None:
    text = _hermes(f'{{"name": "f", "arguments": "{{{escaped}}}"}}')
    call, arguments = _all_cuts("hermes", text, seed)
    assert call == Call("f", "call_0")
    expected = json.loads(f'"{{{escaped}}}"').encode("utf-16", "surrogatepass")
    assert arguments == Arguments(expected.decode("utf-16", "replace"))


@given(
    _STRINGS,
    st.sampled_from(["hermes", "longcat", "json", "mistral", "kimi_k2"]),
    st.integers(0, 99),
)
def test_markers_inside_a_string_are_data_in_every_format(
    inner: str, tools: str, seed: int
) -> None:
    body = json.dumps({"q": inner}, ensure_ascii=False)
    text = {
        "hermes": _hermes(f'{{"name": "f", "arguments": {body}}}'),
        "longcat": f'<longcat_tool_call>{{"name": "f", "arguments": {body}}}</longcat_tool_call>',
        "json": f'{{"name": "f", "parameters": {body}}}',
        "mistral": f"[TOOL_CALLS]f[ARGS]{body}",
        "kimi_k2": "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        f"{body}<|tool_call_end|>",
    }[tools]
    call, arguments = _all_cuts(tools, text, seed, Tool("f"))
    assert isinstance(call, Call)
    assert call.name == "f"
    assert arguments == Arguments(body)


@given(_OBJECTS, st.integers(0, 99))
def test_an_answer_in_json_is_text(value: dict[str, Any], seed: int) -> None:
    printed = json.dumps(value)
    for tools in ("json", "llama3_json", "xlam"):
        assert _all_cuts(tools, printed, seed, Tool("find_museum")) == [Text(printed)]


def test_an_answer_in_json_leaves_as_soon_as_its_first_key_is_none_of_a_call() -> None:
    scanner = Scanner(
        AnswerFormat(PLAIN, [known_tools().get("json")]),
        asked=FormatRequest({"f": Tool("f")}),
        start="content",
        new_id=lambda name, ordinal: f"{name}{ordinal}",
    )
    assert list(scanner.feed('{"na')) == []
    assert list(scanner.feed('tion"')) == [Text('{"nation"')]
    assert list(scanner.feed(': "x"')) == [Text(': "x"')]


def test_arguments_leave_while_they_are_printed() -> None:
    scanner = Scanner(
        AnswerFormat(PLAIN, [known_tools().get("hermes")]),
        asked=FormatRequest(),
        start="content",
        new_id=lambda name, ordinal: f"{name}{ordinal}",
    )
    assert list(scanner.feed('<tool_call>{"name": "f"')) == [Call("f", "f0")]
    assert list(scanner.feed(', "arguments": {"text": "lo')) == [Arguments('{"text": "lo')]
    assert list(scanner.feed("ng")) == [Arguments("ng")]
    assert list(scanner.feed('"}}')) == [Arguments('"}')]


def test_the_first_name_wins_and_the_second_arguments_are_dropped() -> None:
    text = _hermes('{"name": "f", "name": "g", "arguments": {"a": 1}, "parameters": {"b": 2}}')
    assert _all_cuts("hermes", text, 1) == [Call("f", "call_0"), Arguments('{"a": 1}')]


def test_a_key_or_a_name_that_is_too_long_is_none_wherever_the_text_is_cut() -> None:
    opener = "<tool_call>"
    for body in (
        f'{{"{"k" * 700}{opener}": 1}}',
        f'{{"name": "{"n" * 257}"}}',
        f'{{"name": "{"n" * 700}{opener}"}}',
    ):
        assert _all_cuts("hermes", f"{opener}{body}", 2) == [Text(f"{opener}{body}")]
    longest = "n" * 256
    text = _hermes(f'{{"name": "{longest}"}}')
    assert _all_cuts("hermes", text, 2) == [Call(longest, "call_0"), Arguments("{}")]


def test_arguments_before_the_name_are_held_up_to_a_limit_wherever_the_text_is_cut() -> None:
    long = json.dumps({"text": "x" * HELD_MAX})
    text = _hermes(f'{{"arguments": {long}, "name": "f"}}')
    whole = _said("hermes", [text])
    assert whole == [Text(text.removesuffix("</tool_call>"))]
    assert _said("hermes", in_chunks(text, 4096)) == whole
    text = _hermes(f'{{"name": "f", "arguments": {long}}}')
    assert _said("hermes", in_chunks(text, 4096)) == [Call("f", "call_0"), Arguments(long)]


def test_more_calls_than_anybody_makes_are_text() -> None:
    one = '{"name": "f"}'
    pieces = _said("nemotron_json", [f"<TOOLCALL>[{','.join([one] * (CALLS_MAX + 2))}]</TOOLCALL>"])
    assert sum(isinstance(piece, Call) for piece in pieces) == CALLS_MAX
    assert pieces[-1] == Text(f",{one},{one}]")
    lines = "\n".join([one] * (CALLS_MAX + 2))
    pieces = _said("tool_calls_json", [f"<tool_calls>{lines}</tool_calls>"])
    assert sum(isinstance(piece, Call) for piece in pieces) == CALLS_MAX
    assert pieces[-1] == Text(f"\n{one}\n{one}")
    call = "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
    pieces = _said("kimi_k2", [f"<|tool_calls_section_begin|>{call * (CALLS_MAX + 1)}"])
    assert sum(isinstance(piece, Call) for piece in pieces) == CALLS_MAX
    assert pieces[-1] == Text(call)


def test_no_depth_of_nesting_is_too_deep() -> None:
    deep = 20_000
    printed = '{"a":' + "[" * deep + "]" * deep + "}"
    text = _hermes(f'{{"name": "f", "arguments": {printed}}}')
    assert _said("hermes", [text]) == [Call("f", "call_0"), Arguments(printed)]
    text = "<tool_call>" + '{"function":' * deep
    assert _said("hermes", [text]) == [Text(text)]
    text = f"<|tool_call_begin|>3<|tool_call_argument_begin|>{printed}"
    assert _said("kimi_k2", [text], Tool("f")) == [Text(text)]


def test_what_holds_json_may_be_long_and_on_many_lines() -> None:
    printed = json.dumps({str(number): "x" * 60 for number in range(1000)}, indent=2)
    text = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        f"{printed}<|tool_call_end|><|tool_calls_section_end|>"
    )
    assert len(printed) > 1 << 16
    for size in (40, len(text)):
        pieces = _said("kimi_k2", in_chunks(text, size))
        assert pieces == [Call("f", "functions.f:0"), Arguments(printed)]


def test_new_ids_of_mistral_are_nine_letters_and_digits_and_follow_from_the_default_ones() -> None:
    form = known_tools().get("mistral")
    assert form.ids is not None
    rng = random.Random(7)
    defaults = [f"call_{rng.getrandbits(96):024x}" for _ in range(200)]
    short = [form.ids(lambda _name, at: defaults[at])("f", at) for at in range(200)]
    assert all(len(one) == 9 and one.isascii() and one.isalnum() for one in short)
    assert len(set(short)) == 200
    assert short == [form.ids(lambda _name, at: defaults[at])("g", at) for at in range(200)]


def test_code_is_a_call_where_the_client_declared_a_function_for_it() -> None:
    code = 'if a < "b":\n    print("\\t😀")'
    text = f"<|python_tag|>{code}<|eom_id|>"
    declared = Tool("ipython", parameters={"type": "object", "properties": {"source": {}}})
    expected = [
        Call("ipython", "call_0"),
        Arguments(json.dumps({"source": code}, ensure_ascii=False, separators=(",", ":"))),
    ]
    assert _all_cuts("llama3_json", text, 3, declared)[:2] == expected
    assert _all_cuts("llama3_json", text.removesuffix("<|eom_id|>"), 3, declared) == expected
    assert _all_cuts("llama3_json", text, 3) == [Text(text)]
    plain = Tool("python")
    call, arguments = _all_cuts("llama3_json", "<|python_tag|>1", 3, plain)
    assert (call, arguments) == (Call("python", "call_0"), Arguments('{"code":"1"}'))


def test_tags_begin_with_their_triggers_and_spell_calls_that_are_read() -> None:
    for name in ("hermes", "llama3_json", "mistral", "cohere", "deepseek_v31", "kimi_k2"):
        tags = known_tools().get(name).tags
        assert tags
        for tag in tags:
            assert tag.begin.startswith(tag.triggers)
            begin = tag.begin.replace("NAME", "get_tide").replace("INDEX", "0")
            pieces = _said(name, [f'{begin}{{"port": "Brest"}}{tag.end}'], Tool("get_tide"))
            assert isinstance(pieces[0], Call)
            assert pieces[0].name == "get_tide"
            assert pieces[1:] == [Arguments('{"port": "Brest"}')]


def test_names_and_ids_are_short_and_plain() -> None:
    assert [is_name(text) for text in ("functions.my-ns/do_it:3", "n" * 256)] == [True, True]
    assert not any(is_name(text) for text in ("", "a b", "n" * 257, "é"))
    assert [is_id(text) for text in ("a1B2c3D4e", "x" * 64)] == [True, True]
    assert not any(is_id(text) for text in ("", "a b", "x" * 65, "é"))
