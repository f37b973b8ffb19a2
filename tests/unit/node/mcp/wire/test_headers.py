"""Headers of requests: what each revision wants, and values that no header can hold as they are."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.revisions import REVISIONS, revision_named
from smg_node.mcp.wire.headers import header_value, request_headers, session_id_of


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("us-west1", "us-west1"),
        ("us west 1", "us west 1"),
        ("", ""),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("a\nb", "=?base64?YQpi?="),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ],
)
def test_a_value_is_itself_where_a_header_can_hold_it(value: str, spelled: str) -> None:
    assert header_value(value) == spelled


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_every_value_is_printable_and_can_be_had_back(value: str) -> None:
    spelled = header_value(value)
    assert spelled.isascii()
    assert spelled.isprintable()
    if spelled.startswith("=?base64?"):
        assert base64.b64decode(spelled[9:-2]).decode() == value
    else:
        assert spelled == value


def test_the_handshake_era_names_its_revision_from_2025_06_18_on() -> None:
    named = [
        request_headers(one, "tools/call", {"name": "t"}).get("mcp-protocol-version")
        for one in REVISIONS
    ]
    assert named == [None, None, "2025-06-18", "2025-11-25", "2026-07-28"]


def test_initialize_names_no_revision() -> None:
    revision = revision_named("2025-11-25")
    assert revision is not None
    assert "mcp-protocol-version" not in request_headers(revision, "initialize", {})


def test_the_modern_era_repeats_method_name_and_marked_arguments() -> None:
    headers = request_headers(REVISIONS[-1], "tools/call", {"name": "t ü"}, [("Region", "eu")])
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "=?base64?dCDDvA==?="
    assert headers["mcp-param-region"] == "eu"
    task = request_headers(REVISIONS[-1], "tasks/get", {"taskId": "7"})
    assert task["mcp-name"] == "7"


def test_a_session_id_is_visible_ascii() -> None:
    assert session_id_of("a-1") == "a-1"
    assert [session_id_of(one) for one in ("", "a b", "ä", "a\n", "x" * 1025)] == [None] * 5
