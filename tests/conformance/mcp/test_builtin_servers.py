"""Built-in tools done by a real server: arguments that it takes, and results in every way that its SDK tells them."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import pytest

from smg_node.core.generation.tool_serving import BuiltinKind, RunResult, Source
from smg_node.mcp.builtin.builtin_result import read_builtin
from smg_node.mcp.builtin.server_arguments import arguments_for
from smg_node.mcp.tools.tool import ToolList
from support.mcp.faulty_server import pooled
from support.mcp.real_servers import PROGRAMS, process, python

pytestmark = pytest.mark.conformance
Running: TypeAlias = Callable[[BuiltinKind, str, Mapping[str, Any], Any], Awaitable[RunResult]]


@pytest.fixture
async def run() -> AsyncIterator[Running]:
    """Run a built-in tool by a tool of the server: kind, tool, settings, arguments of the model."""
    target = process(python(), PROGRAMS / "builtin_server.py")
    async with pooled() as pool:
        tools = await pool.list_tools(target)
        assert isinstance(tools, ToolList), tools

        async def running(
            kind: BuiltinKind, tool: str, settings: Mapping[str, Any], asked: Any
        ) -> RunResult:
            text = json.dumps(asked)
            schema = tools.tools[tool].input_schema
            arguments = arguments_for(kind, settings, text, schema=schema)
            assert isinstance(arguments, str), arguments
            result = await pool.call(target, tool, arguments)
            return read_builtin(kind, settings, text, result)

        yield running


async def test_objects_are_sources_and_domains_are_enforced(run: Running) -> None:
    settings = {"type": "web_search", "filters": {"allowed_domains": ["b.org"]}}
    result = await run("web_search", "pages", settings, {"query": "cats"})
    text = "about cats, asked for ['b.org']"
    assert result.sources == (Source(url="https://b.org/2", title="Second", text=text),)
    assert result.text.startswith(f"[1] Second https://b.org/2\n{text}")
    every = await run("web_search", "pages", {}, {"query": "cats"})
    assert len(every.sources) == 2


async def test_what_has_a_type_is_read_like_what_has_none(run: Running) -> None:
    settings = {"user_location": {"type": "approximate", "city": "Bern"}}
    result = await run("web_search", "typed_pages", settings, {"query": "cats"})
    text = "about cats in Bern"
    assert result.sources == (Source(url="https://a.org/1", title="First", text=text),)


@pytest.mark.parametrize("tool", ["written_pages", "linked_pages"])
async def test_texts_and_links_are_sources_too(run: Running, tool: str) -> None:
    result = await run("web_search", tool, {}, {"query": "cats"})
    assert result.sources == (Source(url="https://a.org/1", title="First", text="about cats"),)
    assert result.action == {"query": "cats"}


async def test_files_are_searched_by_one_query_where_a_server_takes_one(run: Running) -> None:
    settings = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    result = await run("file_search", "passages", settings, {"queries": ["red", "cats"]})
    assert result.sources == (
        Source(title="plan.txt", text="red cats", score=0.5, file_id="file_1"),
    )
    assert result.action == {"queries": ["red", "cats"]}


async def test_code_prints_and_draws(run: Running) -> None:
    settings = {"type": "code_interpreter", "container": "c1"}
    result = await run("code_interpreter", "run", settings, {"code": "print(1)"})
    logs, image = result.outputs
    assert logs == {"type": "logs", "logs": "c1: print(1)"}
    assert image["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert result.text == "c1: print(1)\n[image/png, 3 kB]"


async def test_a_container_that_a_server_does_not_take_is_not_told(run: Running) -> None:
    settings = {"type": "code_interpreter", "container": {"type": "auto", "file_ids": []}}
    result = await run("code_interpreter", "run", settings, {"code": "print(1)"})
    assert result.outputs[0] == {"type": "logs", "logs": ": print(1)"}


async def test_code_that_raises_has_failed_and_says_how(run: Running) -> None:
    result = await run("code_interpreter", "run", {"container": "c1"}, {"code": "1/0"})
    assert result.error is not None
    assert result.error.type == "mcp_tool_execution_error"
    assert "division by zero" in result.text


async def test_a_picture_is_made(run: Running) -> None:
    settings = {"type": "image_generation", "size": "large"}
    result = await run("image_generation", "draw", settings, {"prompt": "a cat"})
    assert [output["type"] for output in result.outputs] == ["image"]
    assert result.text == "Made, and shown to the user: [image/png, 3 kB]"


async def test_arguments_that_a_server_refuses_are_a_result(run: Running) -> None:
    result = await run("file_search", "passages", {}, {"queries": ["cats"]})
    assert result.error is not None
    assert "vector_store_ids" in result.text
