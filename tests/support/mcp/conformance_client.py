"""The client that the official conformance suite drives: opens the server it is given, lists its tools, and calls them.

    python -m support.mcp.conformance_client URL

The suite says in the environment which revision is spoken, and for some scenarios which calls are to be made; the others
want every tool called that a client may call.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.failures import Failure
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, Target, server_pool
from smg_node.mcp.revisions import NEWEST_MODERN
from smg_node.mcp.tools.tool import Tool

_VALUES: Final[Mapping[str, Any]] = {
    "string": "x",
    "integer": 3,
    "number": 3,
    "boolean": True,
    "array": [],
    "object": {},
}


async def main(url: str, revision: str, context: Mapping[str, Any]) -> int:
    """Return 0 if the server was opened and listed."""
    modern = revision == NEWEST_MODERN.name
    definition = ServerDefinition("judge", url=url, protocol="auto" if modern else revision)
    # The suite runs dozens of these at once, on whatever cores there are.
    limits = McpLimits(connect_s=60.0, list_s=60.0)
    async with server_pool(id_prefix="judged.1", limits=limits) as pool:
        target = Target(checked(definition))
        listed = await pool.list_tools(target, fresh=True)
        if isinstance(listed, Failure):
            tell(f"not listed: {listed}")
            return 1
        for left in listed.left_out:
            tell(f"left out: {left.name}: {left.why}")
        for name, arguments in calls(context, listed.tools):
            await call(pool, target, name, arguments)
    return 0


def calls(
    context: Mapping[str, Any], tools: Mapping[str, Tool]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the calls that a scenario wants: those it names, or one of each tool."""
    named = context.get("toolCalls")
    if named is not None:
        for one in named:
            yield one["name"], one["arguments"]
        return
    if "json_schema_echo" in tools:
        focal = next(tool for name, tool in tools.items() if name != "json_schema_echo")
        yield "json_schema_echo", {"schema": focal.input_schema}
        return
    for tool in tools.values():
        yield tool.name, made_arguments(tool)


def made_arguments(tool: Tool) -> Mapping[str, Any]:
    """Return some value for each property of a tool's schema."""
    properties = tool.input_schema.get("properties", {})
    return {name: _VALUES.get(part.get("type", "string"), "x") for name, part in properties.items()}


async def call(pool: ServerPool, target: Target, name: str, arguments: Mapping[str, Any]) -> None:
    """Call a tool and print what came of it, for the suite's report."""
    tell(f"{name}: {await pool.call(target, name, json.dumps(arguments))}")


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    environment = os.environ
    said = json.loads(environment.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    wanted = environment.get("MCP_CONFORMANCE_PROTOCOL_VERSION", NEWEST_MODERN.name)
    sys.exit(asyncio.run(main(sys.argv[-1], wanted, said)))
