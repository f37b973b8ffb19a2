"""Tagged values: they leave while they arrive, hold any text, and cost the same however they are cut."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from smg_node.core.generation.pieces import Arguments, Call, Piece
from smg_node.parsers.notations.nested_elements import Nesting
from smg_node.parsers.reading.text_reader import CALLS_MAX, HELD_MAX
from support.answers.parser_cases import Case, case_of, in_chunks, joined, pieces_of

TOOLS_FOLDER: Final = Path(__file__).parents[5] / "node" / "smg_node" / "parsers" / "tools"
_M3: Final = "]<]minimax[>["


def _case(tools: str, text: str) -> Case:
    return case_of({"tools": tools}, text, tools)


def _elements(wrapper: str, call: str, key: str) -> Callable[[str, str, str], str]:
    def printed(name: str, parameter: str, value: str) -> str:
        inner = f'<{key} name="{parameter}">{value}</{key}>'
        one = f'<{call} name="{name}">{inner}</{call}>'
        return f"<{wrapper}>{one}</{wrapper}>" if wrapper else one

    return printed


PRINTED: Final[dict[str, Callable[[str, str, str], str]]] = {
    "qwen_xml": lambda name, key, value: (
        f"<tool_call>\n<function={name}>\n<parameter={key}>\n{value}\n</parameter>\n</function>\n</tool_call>"
    ),
    "seed_oss": lambda name, key, value: (
        f"<seed:tool_call>\n<function={name}>\n<parameter={key}>\n{value}\n</parameter>\n</function>\n</seed:tool_call>"
    ),
    "glm": lambda name, key, value: (
        f"<tool_call>{name}<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>"
    ),
    "hy_v3": lambda name, key, value: (
        f"<tool_calls><tool_call>{name}<tool_sep><arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call></tool_calls>"
    ),
    "dsml": _elements("｜DSML｜tool_calls", "｜DSML｜invoke", "｜DSML｜parameter"),
    "minimax_m2": lambda name, key, value: _elements("minimax:tool_call", "invoke", "parameter")(
        name, key, f"\n{value}\n"
    ),
    "minimax_m3": lambda name, key, value: (
        f'{_M3}<tool_call>{_M3}<invoke name="{name}">{_M3}<{key}>{value}{_M3}</{key}>{_M3}</invoke>{_M3}</tool_call>'
    ),
    "step3": lambda name, key, value: (
        "<｜tool_calls_begin｜>"
        + _elements("", "steptml:invoke", "steptml:parameter")(name, key, value)
        + "<｜tool_calls_end｜>"
    ),
    "minicpm5": _elements("", "function", "param"),
    "cofl": _elements("cofl:tool_calls", "cofl:tool_call", "cofl:value"),
}  # fmt: skip
FORMATS = sorted(PRINTED)


def _arguments(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Arguments))


def _sources() -> Iterator[str]:
    for path in sorted(TOOLS_FOLDER.glob("*.py")):
        # Without the docstring: that shows a whole call, which no rule tells from the end of the one it is in.
        yield path.read_text(encoding="utf-8").split('"""', 2)[2].strip("\n")


@pytest.mark.parametrize("tools", FORMATS)
def test_a_value_may_be_the_source_of_any_parser(tools: str) -> None:
    for source in _sources():
        # A text, which streams, and a text or null, which waits.
        for name, key in (("write_file", "text"), ("find_museum", "note")):
            case = _case(tools, PRINTED[tools](name, key, source))
            pieces = pieces_of(case, [case.text])
            assert isinstance(pieces[0], Call)
            assert json.loads(_arguments(pieces)) == {key: source}
            assert len(pieces) == 2


@pytest.mark.parametrize("tools", FORMATS)
def test_a_text_leaves_while_it_arrives_and_any_other_value_when_it_is_over(tools: str) -> None:
    for name, key, streams in (("write_file", "text", True), ("find_museum", "note", False)):
        scanner = _case(tools, "").scanner()
        before, after = PRINTED[tools](name, key, "VALUE").split("VALUE")
        scanner.feed(before)
        said = [scanner.feed("half ")]
        if streams:
            assert _arguments(list(said[0])).endswith("half ")
        else:
            assert "half" not in _arguments(list(said[0]))
        said.append(scanner.feed("of it"))
        said.append(scanner.feed(after))
        assert scanner.reader.out.closed == 1, "the call's end was seen before the answer's"
        scanner.finish()


@pytest.mark.parametrize("tools", FORMATS)
def test_a_value_that_is_too_large_to_wait_leaves_as_a_string(tools: str) -> None:
    value = "[" + "1," * (HELD_MAX // 2) + "1]"
    case = _case(tools, PRINTED[tools]("find_museum", "tags", value))
    scanner = case.scanner()
    said: list[Piece] = []
    for chunk in in_chunks(case.text, 65_536):
        said += scanner.feed(chunk)
    said += scanner.finish()
    assert json.loads(_arguments(said)) == {"tags": value}
    assert scanner.reader.notes == {"value_too_large": 1}


@pytest.mark.parametrize("tools", FORMATS)
def test_as_large_as_may_be_held_it_is_what_it_is(tools: str) -> None:
    value = "[" + "1," * (HELD_MAX // 2 - 64) + "1]"
    case = _case(tools, PRINTED[tools]("find_museum", "tags", value))
    assert _arguments(pieces_of(case, in_chunks(case.text, 65_536))) == f'{{"tags":{value}}}'


@pytest.mark.parametrize("tools", FORMATS)
def test_a_long_value_full_of_beginnings_of_tags_is_the_same_in_single_characters(
    tools: str,
) -> None:
    for key in ("text", "unknown"):
        value = "<a </b \n]<]mini x</p \n" * 3_000
        case = _case(tools, PRINTED[tools]("write_file", key, value))
        assert pieces_of(case, case.text) == pieces_of(case, [case.text])


@pytest.mark.parametrize("tools", FORMATS)
def test_white_space_behind_a_closer_is_held_once(tools: str) -> None:
    # Held text that is copied with every feed takes minutes for this.
    text = PRINTED[tools]("write_file", "text", "WORDS")
    value_end = re.search(r"WORDS\n?[^\s/]*</[^>]*>", text)
    assert value_end is not None
    before = text[: value_end.end()] + " " * 300_000
    for after, said in ((text[value_end.end() :], "WORDS"), (text[value_end.start() :], None)):
        case = _case(tools, before + after)
        value = json.loads(_arguments(pieces_of(case, [*before, after])))["text"]
        assert value == said or (said is None and value.endswith(" WORDS"))


@pytest.mark.parametrize("tools", FORMATS)
def test_a_parameter_of_a_name_that_came_already_is_counted(tools: str) -> None:
    case = _case(tools, PRINTED[tools]("get_tide", "port", "Brest"))
    scanner = case.scanner()
    assert not scanner.reader.notes
    scanner.feed(case.text)
    scanner.finish()
    assert not scanner.reader.notes


def test_what_is_printed_twice_is_counted() -> None:
    scanner = _case("qwen_xml", "").scanner()
    one = "<parameter=port>\nBrest\n</parameter>\n"
    said = scanner.feed(f"<tool_call>\n<function=get_tide>\n{one}{one}</function>\n</tool_call>")
    assert _arguments(list(said)) == '{"port":"Brest"}'
    assert scanner.reader.notes == {"parameter_repeated": 1}


@pytest.mark.parametrize("tools", FORMATS)
def test_more_calls_than_an_answer_may_have_are_no_calls(tools: str) -> None:
    text = PRINTED[tools]("get_tide", "port", "Brest") * (CALLS_MAX + 2)
    case = _case(tools, text)
    pieces = pieces_of(case, in_chunks(text, 1000))
    assert sum(isinstance(piece, Call) for piece in pieces) == CALLS_MAX


@pytest.mark.parametrize("tools", FORMATS)
def test_an_answer_that_ends_at_any_place_has_a_whole_call_or_none_that_can_be_read(
    tools: str,
) -> None:
    text = PRINTED[tools]("find_museum", "max", "42")
    end = text.index("42") + 2
    for cut in range(len(text)):
        said = _arguments(joined(pieces_of(_case(tools, text[:cut]), [text[:cut]])))
        if cut < end:
            assert said in ("", "{", "{}", '{"max":', '{"max":"4'), f"{tools} at {cut}"
        elif said.endswith("}"):
            assert said == '{"max":42}', f"{tools} at {cut}"


NESTING: Final = Nesting("@")


@pytest.mark.parametrize(
    ("text", "schema", "said"),
    [
        ("@<item>1@</item>@<item>x@</item>", {}, '[1,"x"]'),
        ("@<item>1@</item>", {"type": "object"}, '{"item":1}'),
        ("@<a>1@</a> \n@<b>2@</b>", {}, '{"a":1,"b":2}'),
        ("@<a>1@</a>", {"type": "string"}, '"@<a>1@</a>"'),
        ("@<a>1@</b>", {}, '"@<a>1@</b>"'),
        ("@<a>1", {}, '"@<a>1"'),
        ("1@</a>", {}, '"1@</a>"'),
        ("@<a>1@</a>x", {}, '"@<a>1@</a>x"'),
        ("1", {"type": "array", "items": {"type": "integer"}}, "[1]"),
        ("[1]", {"type": "array", "items": {"type": "integer"}}, "[1]"),
        ("", {"type": "array"}, "[]"),
        ("", {"type": ["array", "string"]}, '""'),
        (
            "@<p>1@</p>",
            {"type": "array", "items": {"properties": {"p": {"type": "string"}}}},
            '[{"p":"1"}]',
        ),
    ],
)
def test_elements_within_elements_are_objects_and_lists(
    text: str, schema: object, said: str
) -> None:
    assert NESTING.json([text], schema, schema) == said


def test_elements_that_are_too_deep_are_text() -> None:
    deep = "@<a>" * 129 + "@</a>" * 129
    assert json.loads(NESTING.json([deep], {}, {})) == deep
    fine = "@<a>" * 120 + "1" + "@</a>" * 120
    assert NESTING.json([fine], {}, {}) == '{"a":' * 120 + "1" + "}" * 120
