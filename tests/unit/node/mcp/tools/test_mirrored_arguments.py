"""Mirrored arguments: which a schema marks, which marks make a tool unusable, and what headers hold."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.tools.mirrored_arguments import (
    MirroredArgument,
    MirrorError,
    mirrored_in,
    mirrored_values,
)


def marked(type_: Any = "string", token: Any = "Region") -> dict[str, Any]:
    return {"type": type_, "x-mcp-header": token}


def test_marked_properties_are_found_at_any_depth_of_properties() -> None:
    schema = {
        "properties": {
            "region": marked(),
            "a": {"properties": {"b": marked("integer", "Depth")}},
            "plain": {"type": "string", "default": {"x-mcp-header": "Not-A-Mark"}},
        },
        "enum": [{"x-mcp-header": "Nor-This"}],
    }
    assert mirrored_in(schema) == (
        MirroredArgument(("region",), "Region"),
        MirroredArgument(("a", "b"), "Depth"),
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "Root", "type": "string"},
        {"properties": {"a": marked("number")}},
        {"properties": {"a": marked(["string", "null"])}},
        {"properties": {"a": marked("object")}},
        {"properties": {"a": {"x-mcp-header": "NoType"}}},
        {"properties": {"a": marked(token="")}},
        {"properties": {"a": marked(token="My Region")}},
        {"properties": {"a": marked(token="Région")}},
        {"properties": {"a": marked(token="R\n")}},
        {"properties": {"a": marked(token=7)}},
        {"properties": {"a": marked(), "b": marked(token="REGION")}},
        {"properties": {"a": {"items": {"properties": {"b": marked()}}}}},
        {"anyOf": [{"properties": {"b": marked()}}]},
        {"$defs": {"x": marked()}},
        {"patternProperties": {"^x": marked()}},
        {"additionalProperties": marked()},
        {"if": {"properties": {"b": marked()}}},
    ],
)
def test_a_mark_against_the_rules_is_an_error(schema: dict[str, Any]) -> None:
    with pytest.raises(MirrorError):
        mirrored_in(schema)


def test_a_schema_without_an_end_is_an_error() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"not": deep}
    with pytest.raises(MirrorError, match="levels"):
        mirrored_in(deep)


def test_headers_hold_what_a_call_has() -> None:
    mirrored = mirrored_in(
        {
            "properties": {
                "s": marked(token="S"),
                "i": marked("integer", "I"),
                "b": marked("boolean", "B"),
                "n": {"properties": {"x": marked(token="X")}},
            }
        }
    )
    values = {"s": " a", "i": 2**70, "b": False, "n": {"x": "y"}}
    assert mirrored_values(mirrored, values) == [
        ("S", "=?base64?IGE=?="),
        ("I", str(2**70)),
        ("B", "false"),
        ("X", "y"),
    ]
    assert mirrored_values(mirrored, {"s": None, "i": 1.5, "n": "x"}) == []
    assert mirrored_values(mirrored, {}) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "x-mcp-header", "type", "$defs", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_schema_is_read_or_that_error(schema: Any) -> None:
    with contextlib.suppress(MirrorError):
        assert isinstance(mirrored_in(schema), tuple)
