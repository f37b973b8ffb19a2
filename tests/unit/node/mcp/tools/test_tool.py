"""Listed tools: what is taken of them, what is cut, and which are left out while the others stay."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from smg_node.mcp.tools.tool import ToolPage, read_page
from smg_node.mcp.wire.messages import WireError


def page(*tools: Any, modern: bool = True, by_http: bool = True, **more: Any) -> ToolPage:
    text = json.dumps({"tools": list(tools), **more}).encode()
    return read_page(Raw(text), modern=modern, by_http=by_http)


def test_a_tool_is_taken_with_all_that_it_says() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "x-mcp-header": "Q"}}}
    read = page(
        {
            "name": "search",
            "description": "Finds.",
            "inputSchema": schema,
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
        nextCursor="2",
        ttlMs=5000,
        cacheScope="public",
    )
    (tool,) = read.tools
    assert (tool.name, tool.description, tool.input_schema) == ("search", "Finds.", schema)
    assert tool.output_schema == {"type": "object"}
    assert tool.annotations == {"readOnlyHint": True}
    assert [one.token for one in tool.mirrored] == ["Q"]
    assert (read.cursor, read.ttl_s, read.is_public) == ("2", 5.0, True)


def test_the_least_tool_is_one() -> None:
    (tool,) = page({"name": "t", "inputSchema": {}}, {"nothing": 1}).tools
    assert (tool.name, tool.description, tool.output_schema) == ("t", "", None)


def test_marks_count_by_http_in_the_modern_era_only() -> None:
    wrong = {"name": "t", "inputSchema": {"x-mcp-header": "R"}}
    assert [one.name for one in page(wrong).left_out] == ["t"]
    assert len(page(wrong, modern=False).tools) == 1
    assert len(page(wrong, by_http=False).tools) == 1


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ({"name": "", "inputSchema": {}}, "name"),
        ({"name": "x" * 257, "inputSchema": {}}, "name"),
        ({"name": "a\nb", "inputSchema": {}}, "name"),
        ({"name": "t", "inputSchema": []}, "no object"),
        ({"name": "t", "inputSchema": {"x": "y" * 17_000}}, "bytes"),
        ({"name": 3, "inputSchema": {}}, "no tool"),
        ({"inputSchema": {}}, "no tool"),
        ("t", "no tool"),
        (None, "no tool"),
    ],
)
def test_what_is_of_no_use_is_left_out_and_the_rest_stays(tool: Any, why: str) -> None:
    read = page(tool, {"name": "good", "inputSchema": {}})
    assert [one.name for one in read.tools] == ["good"]
    (left,) = read.left_out
    assert why in left.why


def test_tools_that_only_run_as_tasks_of_2025_are_left_out_there() -> None:
    tool = {"name": "t", "inputSchema": {}, "execution": {"taskSupport": "required"}}
    assert len(page(tool, modern=False).left_out) == 1
    assert len(page(tool, modern=True).tools) == 1
    optional = {"name": "t", "inputSchema": {}, "execution": {"taskSupport": "optional"}}
    assert len(page(optional, modern=False).tools) == 1


def test_descriptions_are_cut_and_cleaned() -> None:
    (tool,) = page({"name": "t", "description": "\x1b[31mä" * 2000, "inputSchema": {}}).tools
    assert len(tool.description.encode()) <= 2048
    assert "\x1b" not in tool.description


@pytest.mark.parametrize(
    ("ttl_ms", "ttl_s"), [(None, None), (0, 0.0), (-5, 0.0), (1e15, 86_400.0), (1500, 1.5)]
)
def test_a_time_to_live_has_bounds(ttl_ms: Any, ttl_s: Any) -> None:
    assert page(ttlMs=ttl_ms).ttl_s == ttl_s


@given(st.binary(max_size=60) | st.sampled_from([b'{"tools":3}', b"[]", b'{"tools":[[[]]]}']))
def test_any_bytes_are_a_page_or_an_error(text: bytes) -> None:
    with contextlib.suppress(WireError):
        assert isinstance(read_page(Raw(text), modern=True, by_http=True), ToolPage)
