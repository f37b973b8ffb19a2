"""Literals of Python as JSON: what `repr` prints means the same, however it is cut; what breaks off stays open."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.pieces import Arguments, Call, Text
from smg_node.parsers.notations.python_literals import NESTING_MAX
from smg_node.parsers.reading.text_reader import HELD_MAX
from support.answers.parser_cases import case_of, in_chunks, pieces_of
from support.tools.example_counts import example_count

VALUES: Final[st.SearchStrategy[Any]] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet="ab'\"\\\n:é ,", max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


def arguments_of(tools: str, text: str, size: int = 0) -> str:
    """Return the arguments of the only call that a text has."""
    chunks = in_chunks(text, size) if size else [text]
    pieces = pieces_of(case_of({"tools": tools, "newline": ""}, text), chunks)
    assert [type(piece) for piece in pieces] == [Call, Arguments], pieces
    last = pieces[-1]
    assert isinstance(last, Arguments)
    return last.text


@settings(max_examples=example_count(150))
@given(VALUES)
def test_what_python_prints_is_read_as_it_was(value: Any) -> None:
    texts = {
        "lfm2": f"<|tool_call_start|>[f(a={value!r}, b={[value]!r})]<|tool_call_end|>",
        "olmo3": f"<function_calls>\nf(a={value!r}, b={[value]!r})\n</function_calls>",
        "sarashina": f"<|tool_calls|>[{ {'name': 'f', 'arguments': {'a': value, 'b': [value]}}!r}]",
    }
    for tools, text in texts.items():
        for size in (0, 1, 3):
            assert json.loads(arguments_of(tools, text, size)) == {"a": value, "b": [value]}


def own(value: Any) -> str:
    """Return a value as Gemma 4's template prints it."""
    match value:
        case str():
            return f'<|"|>{value}<|"|>'
        case dict():
            return "{" + ",".join(f"{own(key)}:{own(each)}" for key, each in value.items()) + "}"
        case list():
            return f"[{','.join(map(own, value))}]"
        case _:
            return json.dumps(value)


@settings(max_examples=example_count(150))
@given(VALUES)
def test_what_gemma_prints_is_read_as_it_was(value: Any) -> None:
    text = f"<|tool_call>call:f{{a:{own(value)},b:{own([value])}}}<tool_call|>"
    for size in (0, 1, 3):
        assert json.loads(arguments_of("gemma4", text, size)) == {"a": value, "b": [value]}


# Where two quotes follow the first one, they are the three that Python has for text of several lines.
LOOSE: Final = st.text(alphabet="ab' ,.!é", max_size=20).filter(
    lambda text: not f"{text}'".startswith("''")
)


@settings(max_examples=example_count(150))
@given(LOOSE, LOOSE)
def test_apostrophes_need_no_escape_where_the_literal_does_not_go_on(one: str, two: str) -> None:
    text = f"<|tool_call_start|>[f(a='{one}', b='{two}')]<|tool_call_end|>"
    for size in (0, 1):
        assert json.loads(arguments_of("lfm2", text, size)) == {"a": one, "b": two}


def test_a_string_leaves_while_it_arrives() -> None:
    for tools, text in (
        ("pythonic", "[write_file(text='"),
        ("lfm2", '<|tool_call_start|>[f(text="'),
        ("gemma4", '<|tool_call>call:f{text:<|"|>'),
        ("sarashina", "<|tool_calls|>[{'name': 'f', 'arguments': {'text': '"),
    ):
        scanner = case_of({"tools": tools}, "").scanner()
        scanner.feed(text)
        for character in "some text\nand more":
            assert len(scanner.feed(character)) == 1, f"{tools} holds {character!r}"


@pytest.mark.parametrize("size", [0, 7])
def test_nesting_has_an_end_and_what_is_deeper_breaks_off(size: int) -> None:
    opener = "<|tool_call_start|>[f(a="
    deep = NESTING_MAX * "["
    whole = arguments_of("lfm2", f"{opener}{deep}{NESTING_MAX * ']'})]", size)
    assert whole == f'{{"a":{deep}{NESTING_MAX * "]"}}}'
    text = f"{opener}{deep}[1]"
    pieces = pieces_of(case_of({"tools": "lfm2"}, text), in_chunks(text, size or len(text)))
    assert pieces == [Call("f", "call_0"), Arguments(f'{{"a":{deep}'), Text("[1]")]


def test_arguments_before_the_name_are_held_up_to_a_limit() -> None:
    for size, is_call in ((HELD_MAX // 2, True), (HELD_MAX + 10, False)):
        value = "x" * size
        text = f"<|tool_calls|>[{{'arguments': {{'a': '{value}'}}, 'name': 'f'}}]"
        pieces = pieces_of(case_of({"tools": "sarashina"}, text), in_chunks(text, 1000))
        assert (pieces[0] == Call("f", "call_0")) == is_call
        expected = Arguments(f'{{"a":"{value}"}}') if is_call else Text(text)
        assert pieces[-1] == expected
