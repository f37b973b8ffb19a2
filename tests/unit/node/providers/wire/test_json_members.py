import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.providers.wire.json_members import edited, member, members


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"{}", []),
        (b" {\n} ", []),
        (b'{"a":1}', [("a", b"1")]),
        (b'{ "a" : 1 , "b":"x" }', [("a", b"1"), ("b", b'"x"')]),
        (b'{"mod\\u0065l":"x"}', [("model", b'"x"')]),
        (b'{"a":{"model":1},"model":2}', [("a", b'{"model":1}'), ("model", b"2")]),
        (b'{"a":["}","\\"]"],"b":null}', [("a", b'["}","\\"]"]'), ("b", b"null")]),
        (b'{"a":1,"a":2}', [("a", b"1"), ("a", b"2")]),
        (b'{"t":"\\\\","m":-1.5e+3}', [("t", b'"\\\\"'), ("m", b"-1.5e+3")]),
        ('{"ключ":"я"}'.encode(), [("ключ", '"я"'.encode())]),
    ],
)
def test_members_are_found_where_they_are(body: bytes, found: list[tuple[str, bytes]]) -> None:
    assert [(one.key, body[one.value : one.end]) for one in members(body)] == found


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":[1}',
        b'{"a":"x}',
        b'{"a":["x]}',
        b"{a:1}",
        b'{"\\q":1}',
        b'{"a":1 "b":2}',
        b'{"a":"' + b'\\"' * 5_000,
        b'{"a":["' + b'\\"' * 5_000,
    ],
)
def test_bytes_without_an_object_are_refused(body: bytes) -> None:
    with pytest.raises(SmgError) as caught:
        members(body)
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize(
    ("body", "removed", "left"),
    [
        (b'{"model":"a","b":1}', {"model"}, b'{"b":1}'),
        (b'{"b":1 , "model":"a" }', {"model"}, b'{"b":1 }'),
        (b'{ "b":1 , "model":"a" , "c" : 2 }', {"model"}, b'{ "b":1 , "c" : 2 }'),
        (b'{"model":"a"}', {"model"}, b"{}"),
        (b'{ "model":1, "model":2 }', {"model"}, b"{  }"),
        (b'{"model":1,"stream":true,"x":[]}', {"model", "stream"}, b'{"x":[]}'),
        (b'{"x":[],"model":1,"stream":true}', {"model", "stream"}, b'{"x":[]}'),
    ],
)
def test_a_member_is_taken_out_with_its_comma(body: bytes, removed: set[str], left: bytes) -> None:
    assert edited(body, {}, removed) == left


@pytest.mark.parametrize(
    ("body", "added", "new"),
    [
        (b"{}", {"v": b'"1"'}, b'{"v":"1"}'),
        (b'{ "a":1}', {"v": b'"1"'}, b'{ "v":"1","a":1}'),
        (b'{"v":null,"a":1}', {"v": b'"1"'}, b'{"v":"1","a":1}'),
        (b'{"model":1}', {"v": b"2", "w": b"[]"}, b'{"v":2,"w":[]}'),
    ],
)
def test_what_is_added_stands_first_or_where_it_was(
    body: bytes, added: dict[str, bytes], new: bytes
) -> None:
    assert edited(body, {}, {"model"}, added=added) == new


def test_a_path_leads_into_objects_only() -> None:
    body = b'{"message":{"model":"x"},"list":[{"model":"y"}],"message":{"id":1,"model":"z"}}'
    found = member(body, ("message", "model"))
    assert found is not None
    assert body[found.value : found.end] == b'"z"'
    assert member(body, ("list", "model")) is None
    assert member(body, ("message", "name")) is None
    assert member(b"[1]", ("model",)) is None


KEYS = st.sampled_from(["model", "stream", "messages", "mod", "Model", "", "я", 'q"', "a\\b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.text(" \t\r\n", max_size=2).map(str.encode)


def spelled_otherwise(text: str) -> bytes:
    """Every character as an escape."""
    raw = text.encode("utf-16-be")
    units = [raw[at : at + 2].hex() for at in range(0, len(raw), 2)]
    return b'"' + b"".join(b"\\u" + unit.encode() for unit in units) + b'"'


@st.composite
def objects(draw: st.DrawFn) -> tuple[bytes, list[tuple[str, bytes, Any]]]:
    """An object's bytes, and its members: key, the bytes of the member, value."""
    pairs = draw(st.lists(st.tuples(KEYS, VALUES), max_size=6))
    shown = []
    for key, value in pairs:
        name = spelled_otherwise(key) if draw(st.booleans()) else json.dumps(key).encode()
        said = json.dumps(value, ensure_ascii=draw(st.booleans())).encode()
        shown.append((key, name + draw(BLANKS) + b":" + draw(BLANKS) + said, value))
    inner = b",".join(draw(BLANKS) + raw + draw(BLANKS) for _, raw, _ in shown)
    return draw(BLANKS) + b"{" + inner + draw(BLANKS) + b"}" + draw(BLANKS), shown


@given(objects())
def test_all_but_the_edited_members_keeps_every_byte(
    drawn: tuple[bytes, list[tuple[str, bytes, Any]]],
) -> None:
    body, shown = drawn
    assert [one.key for one in members(body)] == [key for key, _, _ in shown]

    new = edited(body, {"model": b'"new"'}, {"stream"}, added={"version": b"7"})

    pairs = json.loads(new, object_pairs_hook=list)
    wanted = [(k, "new" if k == "model" else v) for k, _, v in shown if k != "stream"]
    assert pairs == json.loads(json.dumps({"version": 7}), object_pairs_hook=list) + [
        (key, json.loads(json.dumps(value), object_pairs_hook=list)) for key, value in wanted
    ]
    kept = [raw for key, raw, _ in shown if key not in ("stream", "model")]
    at = 0
    for raw in kept:
        at = new.index(raw, at) + len(raw)


@given(objects())
def test_an_edit_that_changes_nothing_changes_nothing(
    drawn: tuple[bytes, list[tuple[str, bytes, Any]]],
) -> None:
    assert edited(drawn[0], {}) == drawn[0]


@given(st.binary(max_size=60) | st.text('{}[]":,\\ 1a', max_size=40).map(str.encode))
def test_garbage_gives_members_or_an_error_of_ours(body: bytes) -> None:
    try:
        found = members(body)
    except SmgError:
        return
    assert all(one.start < one.value < one.end <= len(body) for one in found)


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (b'{"a":12,"a":1}', [b"12", b"1"]),
        (b'{"a":1,"b":1,"a":1,"c":1}', [b"1", b"1", b"1", b"1"]),
        (b'{"a":"x,\\"b\\":1","a":"x","b":2}', [b'"x,\\"b\\":1"', b'"x"', b"2"]),
        (b'{"a":1,"\\u0061":1}', [b"1", b"1"]),
        (b'{"a":[1,2],"b":{"a":[1]},"a":[1]}', [b"[1,2]", b'{"a":[1]}', b"[1]"]),
    ],
)
def test_a_key_that_is_there_twice_is_found_twice(body: bytes, values: list[bytes]) -> None:
    assert [body[one.value : one.end] for one in members(body)] == values
    assert json.loads(edited(body, {"a": b"7"}))["a"] == 7
    assert b'"a":1' not in edited(body, {"a": b"7"}).replace(b'{"a":[1]}', b"")


def test_values_deeper_than_a_decoder_goes_are_passed_over() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    body = b'{"deep":' + deep + b',"model":"a"}'
    assert edited(body, {"model": b'"b"'}) == b'{"deep":' + deep + b',"model":"b"}'
