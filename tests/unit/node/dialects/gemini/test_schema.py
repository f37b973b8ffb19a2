"""Schemas in the API's own form, as JSON Schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.dialects.gemini.schema import json_schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {}),
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "string"}, {"type": "string"}),
        ({"type": ["STRING", "NULL"]}, {"type": ["string", "null"]}),
        ({"type": "TYPE_UNSPECIFIED", "description": "x"}, {"description": "x"}),
        ({"type": "INTEGER", "format": "int64"}, {"type": "integer"}),
        ({"type": "STRING", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        ({"type": "NULL", "nullable": True}, {"type": "null"}),
        (
            {"type": "STRING", "format": "enum", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"anyOf": [{"type": "STRING"}], "nullable": True},
            {"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"any_of": [{"type": "NUMBER"}]}, {"anyOf": [{"type": "number"}]}),
        ({"type": "STRING", "minLength": "2", "max_length": 3}, {"type": "string", "minLength": 2, "maxLength": 3}),
        ({"type": "ARRAY", "items": {"type": "BOOLEAN"}}, {"type": "array", "items": {"type": "boolean"}}),
        ({"defs": {"a": {"type": "STRING"}}, "ref": "#/$defs/a"}, {"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}),
        ({"type": "OBJECT", "additionalProperties": False, "example": 1}, {"type": "object", "additionalProperties": False}),
        ({"type": "OBJECT", "title": None}, {"type": "object"}),
        ({"type": 5, "items": 7, "properties": [], "anyOf": {}}, {"type": 5, "items": 7, "properties": [], "anyOf": {}}),
    ],
)  # fmt: skip
def test_a_schema_says_the_same_in_json_schema(
    schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert json_schema(schema) == expected


def test_properties_stand_in_the_order_that_is_asked_for() -> None:
    properties = {"a": {"type": "STRING"}, "b": {"type": "STRING"}, "c": {"type": "STRING"}}
    made = json_schema(
        {"type": "OBJECT", "properties": properties, "propertyOrdering": ["c", "x", 1, "a"]}
    )
    assert list(made["properties"]) == ["c", "a", "b"]
    assert "propertyOrdering" not in made


def test_a_property_may_be_called_like_a_keyword() -> None:
    properties = {"nullable": {"type": "BOOLEAN"}, "any_of": {"type": "STRING"}}
    made = json_schema({"type": "OBJECT", "properties": properties})
    assert made["properties"] == {"nullable": {"type": "boolean"}, "any_of": {"type": "string"}}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "items", "properties", "anyOf", "nullable", "enum", "propertyOrdering", "minItems", "defs", "x"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["type", "anyOf", "properties", "nullable"]), _JSON))
def test_whatever_a_schema_holds_it_is_converted(schema: dict[str, Any]) -> None:
    made = json_schema(schema)
    assert "nullable" not in made
    assert json_schema(made) == made
