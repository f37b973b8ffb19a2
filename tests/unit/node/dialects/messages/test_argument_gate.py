"""What passes the gate of a call's arguments, at every cut, whatever was printed."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jiter import from_json

from smg_node.dialects.messages.argument_gate import DEPTH_MAX, NUMBER_MAX, ArgumentGate
from support.tools.example_counts import example_count

KEY = "INVALID_JSON"


def passed(printed: list[str], *, eager: bool = False, cut: bool = False) -> list[str]:
    """Return what goes out for each piece, and at the end."""
    gate = ArgumentGate(eager=eager)
    return [*(gate.feed(piece) for piece in printed), gate.finish(cut=cut)]


def wrapped(before: str, rest: str) -> str:
    return f'{before}"{KEY}":{json.dumps(rest, ensure_ascii=False)}}}'


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("", ""),
        (" \n", ""),
        ("{}", "{}"),
        (" { } ", "{ }"),
        ('{"a":1}', '{"a":1}'),
        ('{ "a" : [1, {"b": null}] , "c":"\\u00e9\\n" }\n', None),
        ('{"a":"x\ny\tz\x01"}', '{"a":"x\\ny\\tz\\u0001"}'),
        ('{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'),
        ('{"a":-0.5e+3,"b":true,"c":false}', '{"a":-0.5e+3,"b":true,"c":false}'),
        ('{"a":1,"a":2}', '{"a":1,"a":2}'),
    ],
)
def test_an_object_passes_as_it_was_printed(printed: str, expected: str | None) -> None:
    assert "".join(passed([printed])) == (printed.strip() if expected is None else expected)


@pytest.mark.parametrize(
    ("printed", "before", "rest"),
    [
        ("[1, 2]", "{", "[1, 2]"),
        ('"text"', "{", '"text"'),
        ("ls -la", "{", "ls -la"),
        ('{"a":1', "{", '{"a":1'),
        ('{"a":1,', '{"a":1,', ","),
        ('{"a":1 "b":2}', '{"a":1,', ' "b":2}'),
        ('{"a":1} tail', '{"a":1,', "} tail"),
        ('{"a":1}}', '{"a":1,', "}}"),
        ("{} {}", "{", "{} {}"),
        ('{"a":"x","b":tru}', '{"a":"x",', ',"b":tru}'),
        ('{"a":NaN}', "{", '{"a":NaN}'),
        ('{"a":01}', "{", '{"a":01}'),
        ('{"a":.5}', "{", '{"a":.5}'),
        ('{"a":1.}', "{", '{"a":1.}'),
        ('{"a":[1,]}', "{", '{"a":[1,]}'),
        ('{"a":1,}', '{"a":1,', ",}"),
        ("{a:1}", "{", "{a:1}"),
        ("{'a':1}", "{", "{'a':1}"),
        ('{"a":"\\x"}', "{", '{"a":"\\x"}'),
        ('{"a":"\\u12g4"}', "{", '{"a":"\\u12g4"}'),
        ('{"a":"\\ud83d"}', "{", '{"a":"\\ud83d"}'),
        ('{"a":"\\ud83d\\n"}', "{", '{"a":"\\ud83d\\n"}'),
        ('{"a":"\\ud83d\\ud83d"}', "{", '{"a":"\\ud83d\\ud83d"}'),
        ('{"a":"\\ude00"}', "{", '{"a":"\\ude00"}'),
        ('{"a":"open', "{", '{"a":"open'),
        ("\ufeff{}", "{", "\ufeff{}"),
        ('{"a":' + "9" * (NUMBER_MAX + 1) + "}", "{", '{"a":' + "9" * (NUMBER_MAX + 1) + "}"),
        ("[" * 3, "{", "[" * 3),
    ],
)
def test_what_is_no_json_is_one_more_member(printed: str, before: str, rest: str) -> None:
    assert "".join(passed([printed])) == wrapped(before, rest)


def test_nesting_has_a_limit() -> None:
    inside = DEPTH_MAX - 1
    whole = '{"a":' + "[" * inside + "]" * inside + "}"
    assert "".join(passed([whole])) == whole
    deeper = '{"a":[' + "[" * inside + "]" * inside + "]}"
    assert "".join(passed([deeper])) == wrapped("{", deeper)


def test_a_member_passes_when_it_is_complete() -> None:
    assert passed(list('{"a":1,"b":"x"}')) == [
        *[""] * 6,
        '{"a":1',
        *[""] * 6,
        ',"b":"x"',
        "",
        "}",
    ]


def test_an_eager_tool_is_told_inside_of_strings() -> None:
    assert passed(['{"a', '":', '"x', "\\", "u00", 'e9y",', ' "b":1', "2", "}"], eager=True) == [
        "",
        "",
        '{"a":"x',
        "",
        "",
        '\\u00e9y"',
        "",
        "",
        ', "b":12',
        "}",
    ]


@pytest.mark.parametrize(
    ("printed", "broken"),
    [
        (['{"a":"x', "\\q"], True),
        (['{"a":[1', ",,"], True),
        (['{"a":1,"b":tru', "x}"], False),
        (['{"a":1', " 2"], False),
        (['{"a', "}"], False),
    ],
)
def test_only_a_part_of_a_value_that_is_out_has_no_valid_end(
    printed: list[str], broken: bool
) -> None:
    gate = ArgumentGate(eager=True)
    out = "".join(gate.feed(piece) for piece in printed) + gate.finish()
    assert gate.broken == broken
    if not broken:
        assert KEY in json.loads(out)


@pytest.mark.parametrize(
    ("printed", "eager", "out", "whole"),
    [
        ('{"a":1,"b":"x', False, '{"a":1', '{"a":1}'),
        ('{"a":1,"b":"x', True, '{"a":1,"b":"x', '{"a":1}'),
        ('{"a":[1,2,{"b":"x', True, '{"a":[1,2,{"b":"x', '{"a":[1,2,{}]}'),
        ('{"a":[1,2,{"b":"x', False, "", "{}"),
        ('{"a":12', True, "", "{}"),
        ('{"a":{"b":"c"}', True, '{"a":{"b":"c"}', '{"a":{"b":"c"}}'),
        ("{", True, "", "{}"),
        ("", True, "", ""),
        ('{"a":1}', True, '{"a":1}', '{"a":1}'),
        ("x", True, '{"INVALID_JSON":"x"}', '{"INVALID_JSON":"x"}'),
    ],
)
def test_a_call_that_is_cut_off_stays_open(printed: str, eager: bool, out: str, whole: str) -> None:
    gate = ArgumentGate(eager=eager)
    said = gate.feed(printed) + gate.finish(cut=True)
    assert said == out
    assert not gate.broken
    assert (gate.closing(said) if said else "") == (whole if said else "")


# ── Whatever is printed ──────────────────────────────────────────────────────

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4).filter(lambda key: key != KEY), VALUES, max_size=4)
SPELLED = st.builds(
    lambda value, ascii_only, indent: json.dumps(value, ensure_ascii=ascii_only, indent=indent),
    OBJECTS,
    st.booleans(),
    st.none() | st.integers(0, 2),
)
MARKS = st.text(st.sampled_from('{}[],:"\\ue0d83ade1.-+ntrfalsx \n\x02é😀'), max_size=24)
DAMAGED = st.builds(
    lambda text, at, mark, gone: (
        text[: at % (len(text) + 1)] + mark + text[at % (len(text) + 1) + gone :]
    ),
    SPELLED,
    st.integers(0, 400),
    MARKS,
    st.integers(0, 4),
)


def cut_anywhere(data: st.DataObject, text: str) -> list[str]:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    return [text[low:high] for low, high in pairwise(places)]


def refused(_word: str) -> Any:
    raise ValueError("no JSON")


def as_json(text: str) -> Any:
    """Return what the text is, raw control characters let pass; ValueError if it is no JSON, or has half a pair."""
    value = json.loads(text, strict=False, parse_constant=refused)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@settings(deadline=None, max_examples=example_count(600))
@given(st.data(), SPELLED | DAMAGED | MARKS, st.booleans(), st.booleans())
def test_a_client_never_meets_what_is_no_json(
    data: st.DataObject, printed: str, eager: bool, cut: bool
) -> None:
    gate, out = ArgumentGate(eager=eager), b""
    value: Any = {}
    for piece in [*cut_anywhere(data, printed), None]:
        said = gate.finish(cut=cut) if piece is None else gate.feed(piece)
        out += said.encode()
        if out:
            value = from_json(out, partial_mode=True)
    if gate.broken:
        return
    assert isinstance(value, dict)
    if cut:
        assert json.loads(gate.closing(out.decode()) if out else "{}") == value
        return
    assert json.loads(out or b"{}") == value
    try:
        meant = as_json(printed) if printed.strip(" \t\r\n") else {}
    except ValueError:
        meant = None
    if isinstance(meant, dict):
        assert value == meant
    else:
        assert KEY in value


@settings(deadline=None, max_examples=example_count(300))
@given(st.data(), SPELLED | DAMAGED, st.booleans())
def test_cuts_change_nothing_of_what_is_told(data: st.DataObject, printed: str, cut: bool) -> None:
    whole = "".join(passed([printed], cut=cut))
    assert "".join(passed(cut_anywhere(data, printed), cut=cut)) == whole
