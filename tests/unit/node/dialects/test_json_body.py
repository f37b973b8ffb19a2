"""Bytes to an object, or a refusal."""

import json
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.dialects.json_body import read_json


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"{}", {}),
        (
            b' {"a": [1, -0.5, 1e3, true, null, "\\u00e9\\ud83d\\ude00"]}\n',
            {"a": [1, -0.5, 1000.0, True, None, "é😀"]},
        ),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"é":"\u2028"}'.encode(), {"é": "\u2028"}),
        (b"\xef\xbb\xbf{}", {}),
        (b'\xef\xbb\xbf \n{"a":1}', {"a": 1}),
    ],
)
def test_an_object_is_read(body: bytes, value: dict[str, Any]) -> None:
    assert read_json(body) == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b"{}{}",
        b"{} x",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":01}',
        b'{"a":"\xff"}',
        b'{"\xff":1}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\ud800\\u0041"}',
        b'{"a":"\\udc00"}',
        b'{"a":"\n"}',
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\xef\xbb\xbf[]",
        b"\xff\xfe{\x00}\x00",
        b"\x00",
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b"true",
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(SmgError) as caught:
        read_json(body)
    assert (caught.value.status, caught.value.code, caught.value.where) == (
        400,
        "invalid_json",
        None,
    )


HALF = "a string has one half of a surrogate pair"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty: it must be a JSON object"),
        (b" \r\n", "the body is empty: it must be a JSON object"),
        (b"\xef\xbb\xbf", "the body is empty: it must be a JSON object"),
        (b'{"a":1', "it is cut off after 6 bytes"),
        (b'{"a":"x', "it is cut off after 7 bytes"),
        (b'{"a":"\\ud83d', "it is cut off after 12 bytes"),
        (b'{"a":"\\ud83d\\ude0', "it is cut off after 17 bytes"),
        (b'{"a":"\\ud83d\\ude00', "it is cut off after 18 bytes"),
        (b'{"a":"\\ud800"}', HALF),
        (b'{"a":"\\ud800x"}', HALF),
        (b'{"a":"\\uD83D\\n"}', HALF),
        (b'{"\\udBFF":1}', HALF),
        (b'{"a":["\\ud800"]}', HALF),
        (b'{"a":"\\ud800","b":"long enough"}', HALF),
        (b'{"a":"\\ud800\\u0041"}', HALF),
        (b'{"a":"\\udc00"}', HALF),
        ('{"a":1}'.encode("utf-16"), "the body is UTF-16: JSON is sent in UTF-8"),
        (b'{"a":"\xff"}', "the body is not valid UTF-8"),
        (b'{"a":NaN}', r"invalid character \(byte 5\)"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_the_body(body: bytes, message: str) -> None:
    with pytest.raises(SmgError, match=message):
        read_json(body)


def test_the_top_level_must_be_an_object_and_the_message_says_what_it_was() -> None:
    with pytest.raises(SmgError, match="must be a JSON object, not an array"):
        read_json(b"[]")


def nested(depth: int) -> bytes:
    """An object whose arrays and objects nest `depth` deep, itself counted."""
    lists, objects = (depth - 1) // 2, (depth - 1) - (depth - 1) // 2
    return b'{"a":' * (objects + 1) + b"[" * lists + b"1" + b"]" * lists + b"}" * (objects + 1)


def test_nesting_is_limited() -> None:
    assert read_json(nested(128))
    for depth in (129, 300, 2_000, 100_000):
        with pytest.raises(SmgError, match="deeper than 128 levels"):
            read_json(nested(depth))
    assert read_json(nested(4), nesting_max=4)
    with pytest.raises(SmgError, match="deeper than 4 levels"):
        read_json(nested(5), nesting_max=4)


@pytest.mark.parametrize(("opener", "closer"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("padding", [0, 10_000])
def test_nesting_is_limited_in_short_and_long_bodies(
    opener: bytes, closer: bytes, padding: int
) -> None:
    for depth, allowed in ((127, True), (128, False)):
        inner = opener * depth + b"1" + closer * depth
        body = b'{"text":"' + b"x" * padding + b'","rows":' + inner + b"}"
        if allowed:
            assert read_json(body)
        else:
            with pytest.raises(SmgError, match="deeper than 128 levels"):
                read_json(body)


def test_nesting_without_an_end_is_refused() -> None:
    for opener in (b"[", b'{"a":'):
        with pytest.raises(SmgError):
            read_json(opener * 1_000_000)


@pytest.mark.parametrize("size", [200, 5_000])
def test_brackets_in_text_and_beside_each_other_do_not_nest(size: int) -> None:
    body = {"code": "[{" * size, "rows": [[1], {"a": []}] * size, 'k"[[': '\\"{'}
    assert read_json(json.dumps(body).encode()) == body
