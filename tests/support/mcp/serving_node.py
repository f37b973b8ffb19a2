"""A node whose own MCP server has one real server of tools behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from smg_chaos.mcp.http_server import HttpServer
from smg_node.mcp.serving.call_state import APPROVAL
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask
from support.mcp.faulty_server import served
from support.mcp.pooled_tools import PooledTools, spec, tools_of

TOOLS: Final = ("add", "asks", "big", "echo", "fail", "media", "routed", "slow", "task", "write")
ACCEPTED: Final = {APPROVAL: {"action": "accept"}}
ASKABLE: Final = {"elicitation": {"form": dict[str, Any]()}}


@asynccontextmanager
async def world(
    *faults: str, era: str = "both", answers: str = "json", page: int = 100, **said: Any
) -> AsyncIterator[tuple[Node, HttpServer, PooledTools]]:
    """A node with one server of tools named s; yields node, server and what is between."""
    async with (
        served(era, *faults, answers=answers, page=page) as server,
        tools_of(spec("s", server.url, **said)) as tools,
        node() as at,
    ):
        at.parts.offered_tools = lambda: tools
        yield at, server, tools


def text(response: Response) -> str:
    """Return the first text of a call's result."""
    told: str = response.json()["result"]["content"][0]["text"]
    return told


async def keys_of(at: Node, *tenants: str) -> list[dict[str, str]]:
    """Close a node to callers without a key; return the headers of a key for each of these tenants."""
    admin = (await ask(at.port, "POST", "/v1/cluster/keys", {"role": "admin"})).json()["key"]
    bearer = {"authorization": f"Bearer {admin}"}
    made = []
    for tenant in tenants:
        wish = {"tenant": tenant, "name": "x"}
        answer = await ask(at.port, "POST", "/v1/cluster/keys", wish, bearer)
        made.append({"authorization": f"Bearer {answer.json()['key']}"})
    return made
