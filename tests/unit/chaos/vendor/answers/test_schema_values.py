"""Values that fit a schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.vendor.answers.schema_values import value_of


@pytest.mark.parametrize(
    ("schema", "given", "value"),
    [
        ({"type": "string"}, {}, "text"),
        ({"type": "STRING"}, {}, "text"),
        ({"type": ["integer", "null"]}, {}, 1),
        ({"const": 7}, {}, 7),
        ({"enum": ["a", "b"]}, {}, "a"),
        ({"enum": [None]}, {}, None),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, {}, True),
        ({"type": "array", "items": {"type": "number"}}, {}, [1.5]),
        ({"properties": {"n": {"type": "integer"}}}, {"n": "5"}, {"n": 5}),
        ({"properties": {"n": {"type": "integer"}}}, {"n": "five"}, {"n": 1}),
        ({"properties": {"on": {"type": "boolean"}}}, {"on": "false"}, {"on": False}),
        ({"properties": {"e": {"enum": ["a", "b"]}}}, {"e": "b"}, {"e": "b"}),
        (
            {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["a"]},
            {"c": "x"},
            {"a": "text", "c": "x"},
        ),
        ({"type": "object"}, {}, {}),
        (True, {}, None),
    ],
)
def test_a_value_fits_its_schema(schema: Any, given: dict[str, str], value: Any) -> None:
    assert value_of(schema, given) == value


def test_a_schema_that_never_ends_does() -> None:
    endless: dict[str, Any] = {"type": "array"}
    endless["items"] = endless
    assert isinstance(value_of(endless, {}), list)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "enum", "anyOf", "properties", "items", "required", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(JSON)
def test_whatever_a_client_calls_a_schema_gives_a_value(schema: Any) -> None:
    value_of(schema, {})
