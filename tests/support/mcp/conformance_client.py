"""The client that the official conformance suite drives: opens the server it is given, lists its tools, and calls them.

    python -m support.mcp.conformance_client URL

The suite says in the environment which revision is spoken, and for some scenarios which calls are to be made; the others
want every tool called that a client may call.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import ClientSession

from smg_node.cluster.mcp.client_tokens import ClientTokens
from smg_node.cluster.mcp.token_fetch import token_fetch
from smg_node.mcp.definition import NO_CREDENTIAL, ServerDefinition, bearer, checked
from smg_node.mcp.failures import Failure
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, Target, server_pool
from smg_node.mcp.revisions import NEWEST_MODERN
from smg_node.mcp.server_spec import TokenIssuer
from smg_node.mcp.tools.tool import Tool

CREDENTIALS: Final = "auth/client-credentials"
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
        credential = NO_CREDENTIAL
        if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith(CREDENTIALS):
            made = await token(url, context)
            if isinstance(made, Failure):
                tell(f"no token: {made}")
                return 1
            credential = bearer(made)
        target = Target(checked(definition), credential)
        listed = await pool.list_tools(target, fresh=True)
        if isinstance(listed, Failure):
            tell(f"not listed: {listed}")
            return 1
        for left in listed.left_out:
            tell(f"left out: {left.name}: {left.why}")
        for name, arguments in calls(context, listed.tools):
            await call(pool, target, name, arguments)
    return 0


async def token(url: str, context: Mapping[str, Any]) -> str | Failure:
    """Return a token of client credentials.

    Operators name the issuer of a server's tokens; here it is what the server names, as the suite has no operator.
    """
    place = urlsplit(url)
    origin = f"{place.scheme}://{place.netloc}"
    resource = await said_at(f"{origin}/.well-known/oauth-protected-resource{place.path}")
    issuer = urlsplit(resource["authorization_servers"][0])
    known = f"/.well-known/oauth-authorization-server{issuer.path.rstrip('/')}"
    metadata = await said_at(f"{issuer.scheme}://{issuer.netloc}{known}")
    scope = " ".join(resource.get("scopes_supported") or [])
    at = TokenIssuer(metadata["token_endpoint"], context["client_id"], scope, resource["resource"])
    return await ClientTokens(token_fetch(), time.monotonic).token(at, context["client_secret"])


async def said_at(url: str) -> Any:
    """Return the JSON at a URL."""
    async with ClientSession() as session, session.get(url) as answer:
        return await answer.json()


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
