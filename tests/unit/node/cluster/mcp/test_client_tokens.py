"""Tokens of client credentials: one for many calls, made anew where it is refused."""

import asyncio
from typing import Any

from smg_node.mcp.failures import Failure
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.recording_server import Recorder, recorded
from support.mcp.server_steps import call, define, on, resolved, world


def issued(server: Recorder, **more: Any) -> dict[str, Any]:
    return {
        "kind": "client_credentials",
        "token_url": server.issuer,
        "client_id": "node",
        "client_secret": "the-clients-secret",
        "scope": "tools",
        **more,
    }


async def test_one_token_serves_many_calls_and_one_that_is_refused_is_made_anew() -> None:
    state = world()
    async with recorded(set()) as server:
        define(state, "docs", server.url, auth=issued(server))
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            outcomes = await asyncio.gather(*(call(servers, found) for _ in range(5)))
            assert all(isinstance(one, CallResult) for one in outcomes)
            assert len(server.issued) == 1
            assert server.tokens is not None
            server.tokens.clear()
            assert isinstance(await call(servers, found), CallResult)
            assert isinstance(await servers.list_tools(found), ToolList)
        assert len(server.issued) == 2
    assert server.issued[0]["basic"] == "node:the-clients-secret"
    assert server.issued[0]["scope"] == "tools"
    assert server.calls()[-1].headers["authorization"] == "Bearer token-2"


async def test_an_issuer_that_refuses_is_a_failure_of_the_call_without_any_secret() -> None:
    state = world()
    async with recorded(set()) as server:
        server.issuer_status = 401
        define(state, "docs", server.url, auth=issued(server, in_body=True))
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            outcomes = [await call(servers, found) for _ in range(3)]
    for outcome in outcomes:
        assert isinstance(outcome, Failure)
        assert (outcome.outcome, outcome.sent) == ("auth", False)
        assert "invalid_client" in outcome.message
        assert "secret" not in outcome.message
    assert not server.calls()
    assert len(server.issued) == 1, "an issuer that failed is left alone for a moment"
    assert server.issued[0]["client_secret"] == "the-clients-secret"
