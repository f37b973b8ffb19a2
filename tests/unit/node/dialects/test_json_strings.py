"""Long strings, decoded in parts, are what they would be decoded at once, wherever the parts end."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.core.errors import SmgError
from smg_node.dialects import json_pieces, json_strings
from smg_node.dialects.json_body import read_json, read_large_json
from smg_node.dialects.json_strings import LONG_BYTES, string_in_steps
from support.tools.example_counts import example_count

_X = "x" * 90
_UNITS = st.sampled_from(
    [
        *("a", "é", "漢", "😀", " ", "\\\\", '\\"', "\\n", "\\u00e9", "\\ud83d\\ude00", "\\uD83D\\uDE00"),
        *("\\ud83d", "\\ude00", "ud83d", "\\\\ud83d", "\\x", "\n", "\\u12"),
    ]
)  # fmt: skip
_GOOD = [
    *("a", "é", "漢", "😀", "\\\\", '\\"', "\\n", "\\u00e9", "\\ud83d\\ude00", "ud83d", "\\\\ud83d"),
]  # fmt: skip


def in_parts(body: bytes, part_bytes: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_strings, "LONG_BYTES", part_bytes)
        patch.setattr(json_pieces, "LONG_BYTES", 3)
        try:
            return read_large_json(body)
        except SmgError as error:
            return error.message


def at_once(body: bytes) -> Any:
    try:
        return read_json(body)
    except SmgError as error:
        return error.message


@given(st.lists(st.sampled_from(_GOOD), max_size=60), st.integers(32, 60))
@settings(deadline=None, max_examples=example_count(300))
def test_parts_of_any_size_make_the_same_string(units: list[str], part_bytes: int) -> None:
    raw = f'{{"{"".join(units[:9])}":["x",{{"k":"{"".join(units)}"}},1]}}'.encode()
    assert in_parts(raw, part_bytes) == json.loads(raw)


@given(st.lists(_UNITS, max_size=40), st.integers(32, 60))
@settings(deadline=None, max_examples=example_count(300))
def test_what_is_no_string_is_none_in_parts_either(units: list[str], part_bytes: int) -> None:
    raw = ('{"k":"' + "".join(units) + '"}').encode()
    found, expected = in_parts(raw, part_bytes), at_once(raw)
    if type(expected) is dict:
        assert found == expected
    else:
        assert type(found) is str


@pytest.mark.parametrize("part_bytes", [32, 40])
@pytest.mark.parametrize(
    "body",
    [
        f'{{"a":"{_X}\\ud83d"}}',
        f'{{"a":"{_X}\\ud83d","b":"y"}}',
        f'{{"a":"{_X}\\x"}}',
        f'{{"a":"{_X}\n"}}',
        f'{{"a":"{_X}"',
        f'{{"a":"{_X}',
        f'{{"a":"{_X}","b":tru}}',
        f'{{"a":"{_X}","c":"{_X}",}}',
        f'{{"a":1,"b":[x,"{_X}"]}}',
    ],
)  # fmt: skip
def test_what_is_wrong_and_where_is_told_as_of_the_whole_body(body: str, part_bytes: int) -> None:
    raw = body.encode()
    assert in_parts(raw, part_bytes) == at_once(raw)


def test_bytes_that_are_no_text_are_refused() -> None:
    raw = b'{"a":"' + b"x" * 50 + b"\xff" + b"x" * 50 + b'"}'
    assert in_parts(raw, 40) == at_once(raw) == "the body is not valid UTF-8"


def test_a_step_decodes_so_many_bytes_and_no_more() -> None:
    raw = b'"' + b"a" * 1_000_000 + b'"'
    steps = list(string_in_steps(raw, 0, len(raw)))
    assert len(steps) == -(-1_000_000 // LONG_BYTES)
    assert set(steps) == {LONG_BYTES}
    assert whole(string_in_steps(raw, 0, len(raw))) == "a" * 1_000_000


def test_a_body_of_one_long_string_is_many_steps() -> None:
    value = {"messages": [{"role": "user", "content": 'a "word" 😀\n' * 100_000}], "n": 1}
    raw = json.dumps(value).encode()
    assert len(list(json_pieces.decode_in_pieces(raw, nesting_max=9))) > len(raw) / LONG_BYTES
    assert msgspec.json.decode(raw) == value == read_large_json(raw)
