"""Large bodies, decoded in pieces, are what they would be decoded at once, wherever the pieces end."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.core.errors import SmgError
from smg_node.dialects import json_pieces
from smg_node.dialects.json_body import read_json, read_large_json
from smg_node.dialects.json_pieces import decode_in_pieces
from support.tools.example_counts import example_count

WRONG = "no JSON"
_TEXTS = st.sampled_from(("", "a", "é\n", 'q"\\', "{[,:", "x" * 40, "\\", "continued"))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(_TEXTS, inner, max_size=6),
    max_leaves=40,
)  # fmt: skip


def in_pieces(body: bytes, piece_bytes: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "PIECE_BYTES", piece_bytes)
        patch.setattr(json_pieces, "_BLANKS_MAX", 3)
        try:
            return whole(decode_in_pieces(body, nesting_max=128))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return WRONG


def at_once(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return WRONG


@given(_VALUES, st.sampled_from((1, 2, 3, 7, 30)), st.sampled_from((None, 0, 1)), st.booleans())
@settings(deadline=None)
def test_pieces_of_any_size_make_the_same_value(
    value: Any, piece_bytes: int, indent: int | None, plain: bool
) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=plain).encode()
    assert in_pieces(body, piece_bytes) == value


@given(
    _VALUES,
    st.sampled_from((1, 2, 5)),
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(list(b'[]{},:"\\ 1x')), st.integers(0, 2)),
        min_size=1,
        max_size=3,
    ),
)
@settings(deadline=None, max_examples=example_count(300))
def test_what_is_no_json_is_none_in_pieces_either(
    value: Any, piece_bytes: int, changes: list[tuple[int, int, int]]
) -> None:
    body = json.dumps(value).encode()
    for at, byte, removed in changes:
        at %= len(body) + 1
        body = body[:at] + bytes([byte]) + body[at + removed :]
    assert in_pieces(body, piece_bytes) == at_once(body)


@pytest.mark.parametrize("piece_bytes", [1, 2, 4])
@pytest.mark.parametrize(
    "body",
    [
        "", " ", "1", '"a,b"', "[1,]", "[,1]", "[ ,1]", "[1,,2]", "[1 , 2]", '{"a":1,}', '{,"a":1}', "[1}", "[1]]", "[1",
        '["a', '["a\\', '["a\\"', '["a\\\\",1,2]', '{"a":[1,2],"a":[3,4],"b":5}', '{"a":{"x":1,"y":2},"a":{"z":3,"w":4}}',
        '{"":{"":[1,2,{"":3,"b":4}],"c":5},"d":6}', '[[1,2],[3,[4,5],6],7]', '[{"a":1,"b":[2,3]},{"c":4}] x', "[1,2]\x00",
        '{"a\\u00e9":[1,2,3],"b":4}', '{"a" : [ 1 , 2 ] , "b" : 3 }', "[1,2\n\n\n\n\n,3]", "[1,\n\n\n\n\n]", '["\\ud800",1]',
        '[1,"\xff",2]', "[NaN,1]", "[1,2] [3,4]", "{1:2,3:4}", '{"a":1 "b":2,"c":3}', '[{"a"},1]', '["a":1,2]',
    ],
)  # fmt: skip
def test_odd_bodies_are_what_they_are_at_once(body: str, piece_bytes: int) -> None:
    raw = body.encode("latin-1")
    assert in_pieces(raw, piece_bytes) == at_once(raw)


def test_a_step_decodes_so_many_bytes_and_no_more() -> None:
    body = json.dumps([[at] * 200 for at in range(2_000)]).encode()
    steps = list(decode_in_pieces(body, nesting_max=128))
    assert len(body) / json_pieces.PIECE_BYTES / 2 < len(steps)
    assert set(steps) == {json_pieces.PIECE_BYTES}


@pytest.mark.parametrize(
    ("body", "limit", "words"),
    [
        (
            b"[" + b"[]," * 20 + b"1]",
            "THINGS_MAX",
            "more than 10 strings, keys, arrays and objects",
        ),
        (b'{"a":"b",' + b'"c":"d",' * 5 + b'"e":1}', "THINGS_MAX", "more than 10 strings"),
        (b"[" + b"1," * 20 + b"1]", "VALUES_MAX", "more than 10 values"),
    ],
)
def test_a_body_may_have_so_many_values(
    body: bytes, limit: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_pieces, limit, 10)
    with pytest.raises(SmgError, match=words) as caught:
        read_large_json(body)
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")


def test_signs_in_strings_are_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "THINGS_MAX", 4)
    monkeypatch.setattr(json_pieces, "VALUES_MAX", 3)
    value = {"a": '[1,2,"{[' * 100}
    assert read_large_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "body",
    [b"[1]", b"[[[[1]]]]", b'{"a":[1,}', b'{"a":"\xff"}', b"", b'{"a":' * 200 + b"1" + b"}" * 200],
)
def test_a_large_body_is_refused_in_the_words_of_a_small_one(body: bytes) -> None:
    with pytest.raises(SmgError) as small:
        read_json(body)
    with pytest.raises(SmgError) as large:
        read_large_json(body)
    assert (large.value.message, large.value.code) == (small.value.message, small.value.code)
    assert large.value.status == small.value.status


def test_the_place_of_a_mistake_is_that_in_the_whole_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "PIECE_BYTES", 8)
    body = b'{"a":[' + b"1, " * 50 + b'x],"b":2}'
    with pytest.raises(SmgError) as caught:
        read_large_json(body)
    assert f"(byte {body.index(b'x')})" in caught.value.message


def test_arrays_and_objects_nest_so_deep_and_no_deeper() -> None:
    deep = b'{"a":' * 64 + b"[" * 64 + b"]" * 64 + b"}" * 64
    assert read_large_json(deep, nesting_max=128) == msgspec.json.decode(deep)
    with pytest.raises(SmgError, match="nests deeper than 127 levels"):
        read_large_json(deep, nesting_max=127)
