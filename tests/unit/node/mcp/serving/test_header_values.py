from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.serving.header_values import decoded_header, differing_argument
from smg_node.mcp.tools.mirrored_arguments import mirrored_in, mirrored_values
from smg_node.mcp.wire.headers import header_value

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
    },
}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("Hello", "Hello"),
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("=?base64?SGVsbG8?=", None),
        ("=?base64?SGVs!!!bG8=?=", None),
        ("=?base64?/w==?=", None),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("=?base64??=", ""),
    ],
)
def test_values_in_base64_are_told_from_others(value: str, plain: str | None) -> None:
    assert decoded_header(value) == plain


@given(st.text())
def test_what_a_client_spells_is_read_as_it_was(value: str) -> None:
    try:
        spelled = header_value(value)
    except UnicodeEncodeError:
        return
    assert decoded_header(spelled) == value


@pytest.mark.parametrize(
    ("arguments", "headers", "differs"),
    [
        ({}, {}, ""),
        ({"region": "eu"}, {"mcp-param-region": "eu"}, ""),
        ({"region": "eu"}, {"mcp-param-region": " eu "}, ""),
        ({"region": "eu"}, {"mcp-param-region": "=?base64?ZXU=?="}, ""),
        ({"region": "eu"}, {}, "mcp-param-region"),
        ({"region": "eu"}, {"mcp-param-region": "us"}, "mcp-param-region"),
        ({"region": "eu"}, {"mcp-param-region": "=?base64?!?="}, "mcp-param-region"),
        ({}, {"mcp-param-region": "eu"}, "mcp-param-region"),
        ({"region": None}, {}, ""),
        ({"region": ["eu"]}, {"mcp-param-region": "eu"}, "mcp-param-region"),
        ({"region": "42"}, {"mcp-param-region": "42.0"}, "mcp-param-region"),
        ({"count": 42}, {"mcp-param-count": "42"}, ""),
        ({"count": 42}, {"mcp-param-count": "42.0"}, ""),
        ({"count": 42.0}, {"mcp-param-count": "42"}, ""),
        ({"count": 42}, {"mcp-param-count": "42.5"}, "mcp-param-count"),
        ({"count": 42}, {"mcp-param-count": "4.2e1"}, "mcp-param-count"),
        ({"count": 10**30}, {"mcp-param-count": str(10**30)}, ""),
        ({"count": 1.5}, {}, ""),
        ({"deep": {"on": True}}, {"mcp-param-on": "true"}, ""),
        ({"deep": {"on": True}}, {"mcp-param-on": "1"}, "mcp-param-on"),
        ({"deep": 3}, {}, ""),
        ({}, {"mcp-param-other": "x"}, ""),
    ],
)
def test_mirrored_arguments_and_their_headers(
    arguments: dict[str, Any], headers: dict[str, str], differs: str
) -> None:
    assert differing_argument(SCHEMA, arguments, headers) == differs


def test_a_schema_against_the_rules_demands_nothing() -> None:
    schema = {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    assert differing_argument(schema, {"a": 1}, {}) == ""


@given(st.text(max_size=20), st.integers(), st.booleans())
def test_what_our_own_client_sends_is_taken(region: str, count: int, on: bool) -> None:
    arguments = {"region": region, "count": count % 10**30, "deep": {"on": on}}
    try:
        sent = mirrored_values(mirrored_in(SCHEMA), arguments)
    except UnicodeEncodeError:
        return
    headers = {f"mcp-param-{token.lower()}": value for token, value in sent}
    assert differing_argument(SCHEMA, arguments, headers) == ""
