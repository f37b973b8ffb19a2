"""Content of results: as one text, in parts, and cut where it is too much."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.tools.content import ContentPart, cut_text, parts_of, text_of, unescaped
from smg_node.mcp.tools.tool_result import CallResult

PNG = base64.b64encode(b"x" * 12_000).decode()
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


def text(*content: Any, structured: bytes = b"") -> str:
    return text_of(CallResult(content, structured), bytes_max=10_000)


def test_texts_are_joined_by_line_feeds() -> None:
    assert text({"type": "text", "text": "a"}, {"type": "text", "text": "b"}) == "a\nb"


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        (IMAGE, "[image/png, 12 kB]"),
        ({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}, "[audio/wav, 3 B]"),
        ({"type": "image"}, "[application/octet-stream, 0 B]"),
        ({"type": "resource_link", "uri": "file:///a", "name": "a"}, "[a: file:///a]"),
        ({"type": "resource_link", "uri": "file:///a"}, "[resource: file:///a]"),
        ({"type": "resource", "resource": {"uri": "u", "text": "inside"}}, "inside"),
        (
            {"type": "resource", "resource": {"uri": "u", "blob": "AAAA", "mimeType": "a/b"}},
            "[u: a/b, 3 B]",
        ),
        ({"type": "hologram"}, "[content of the unknown kind 'hologram']"),
        ({}, "[content of the unknown kind '']"),
        ({"type": "text", "text": 3}, ""),
    ],
)
def test_each_kind_of_content_has_a_text(block: Any, shown: str) -> None:
    assert text(block) == shown


def test_structured_content_alone_is_its_json() -> None:
    assert text(structured=b'{"a":1}') == '{"a":1}'
    assert text({"type": "text", "text": "t"}, structured=b'{"a":1}') == "t"
    assert text() == ""


def test_parts_have_images_only_where_they_are_taken() -> None:
    result = CallResult(({"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}))
    assert parts_of(result, bytes_max=100) == [ContentPart("text", "a\n[image/png, 12 kB]\nb")]
    assert parts_of(result, takes=("image",), bytes_max=100) == [
        ContentPart("text", "a"),
        ContentPart("image", "", "image/png", PNG),
        ContentPart("text", "b"),
    ]


def test_an_image_that_is_no_base64_is_only_named() -> None:
    result = CallResult(({"type": "image", "data": "?", "mimeType": "image/png"},))
    assert parts_of(result, takes=("image",), bytes_max=100)[0].kind == "text"


def test_a_long_text_ends_at_a_line_and_says_what_is_missing() -> None:
    lines = "\n".join(f"line {number}" for number in range(100))
    cut = cut_text(lines, 50)
    assert cut.startswith("line 0\nline 1\n")
    assert cut.endswith("bytes left out]")
    shown, _, remark = cut.rpartition("\n")
    assert lines.startswith(shown + "\n")
    assert remark == f"[… {len(lines) - len(shown)} of {len(lines)} bytes left out]"


def test_one_long_line_is_cut_inside_it() -> None:
    assert cut_text("ä" * 100, 51).startswith("ä" * 25 + "\n[…")


@given(st.text(max_size=300), st.integers(0, 300))
def test_no_text_is_longer_than_the_limit_and_its_remark(whole: str, most: int) -> None:
    cut = cut_text(whole, most)
    assert cut == whole or len(cut.encode("utf-8", "replace")) <= most + 60


def test_all_parts_together_have_the_limit() -> None:
    result = CallResult(
        ({"type": "text", "text": "a" * 80}, IMAGE, {"type": "text", "text": "b" * 80})
    )
    parts = parts_of(result, takes=("image",), bytes_max=100)
    assert parts[0].text == "a" * 80
    assert parts[2].text == "b" * 20 + "\n[… 60 of 80 bytes left out]"


@pytest.mark.parametrize(
    ("spelled", "shown"),
    [
        ('{"a":"\\u8a00\\u2014"}', '{"a":"言—"}'),
        ('"\\ud83d\\ude00"', '"😀"'),
        ('"\\ud83d x \\ude00"', '"\\ud83d x \\ude00"'),
        ('"\\u0022\\u005c\\u000a\\u0041"', '"\\u0022\\u005c\\u000aA"'),
        ('"\\\\u8a00"', '"\\\\u8a00"'),
        ('"\\n"', '"\\n"'),
    ],
)
def test_escapes_of_structured_content_stand_for_themselves_where_they_may(
    spelled: str, shown: str
) -> None:
    assert text(structured=spelled.encode()) == shown
    assert json.loads(shown) == json.loads(spelled)


@given(st.text())
def test_any_string_keeps_its_meaning_without_escapes(value: str) -> None:
    assert json.loads(unescaped(json.dumps(value))) == value
