"""The text by which a tool is found: four fields, however its schema is made, and bounded."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_serving import ListedTool
from smg_node.mcp.search.searched_tool import (
    SEARCHED_TOOLS_MAX,
    SearchedTool,
    ordered,
    tool_text,
)


def parameters(schema: Any) -> list[str]:
    text = tool_text(SearchedTool("t", ListedTool("t", "", schema))).parameters
    return text.split("\n") if text else []


def test_the_fields_of_a_tool() -> None:
    schema = {"type": "object", "properties": {"city": {"description": "Name of the city"}}}
    tool = SearchedTool("weather__now", ListedTool("now", "The weather", schema), "weather")
    assert tool_text(tool) == ("now", "weather", "The weather", "city: Name of the city")
    assert tool_text(tool).rest == "The weather\ncity: Name of the city\nweather"


def test_parameters_inside_others_are_found_the_outer_ones_first() -> None:
    schema = {
        "properties": {
            "filter": {"properties": {"owner": {"description": "Who has it"}}},
            "rows": {"type": "array", "items": {"properties": {"cell": {}}}},
            "either": {"anyOf": [{"properties": {"left": {}}}, {"properties": {"right": {}}}]},
        },
        "$defs": {"Place": {"properties": {"street": True}}},
    }
    assert parameters(schema) == [
        "filter",
        "rows",
        "either",
        "owner: Who has it",
        "street",
        "cell",
        "left",
        "right",
    ]


def test_a_schema_that_is_none_has_no_parameters() -> None:
    schemas: tuple[Any, ...] = ({}, {"properties": 3}, {"anyOf": {}}, {"$defs": []})
    for schema in schemas:
        assert parameters(schema) == []


def test_a_schema_without_end_is_followed_so_far() -> None:
    inner: dict[str, Any] = {}
    schema: dict[str, Any] = {"properties": {"a": inner}}
    inner["properties"] = {"b": schema}
    assert len(parameters(schema)) <= 20
    wide = {"properties": {f"p{n}": {"description": "x" * 100} for n in range(5_000)}}
    assert sum(map(len, parameters(wide))) <= 8_192


def test_the_order_of_tools_is_that_of_their_names() -> None:
    tools = [
        SearchedTool(called, ListedTool("t"), server)
        for called, server in [("b", "x"), ("a", "y"), ("a", "x")]
    ]
    assert [(one.called, one.server) for one in ordered(tools)] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
    ]
    assert ordered(reversed(tools)) == ordered(tools)
    many = [SearchedTool(f"{n:06}", ListedTool("t")) for n in range(SEARCHED_TOOLS_MAX + 5)]
    assert len(ordered(many)) == SEARCHED_TOOLS_MAX


_SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "$defs", "description", "a", "b"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["properties", "items", "allOf"]), _SCHEMAS, max_size=3))
def test_any_schema_has_a_text(schema: Any) -> None:
    assert all(isinstance(line, str) for line in parameters(schema))
