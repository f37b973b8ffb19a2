"""A server of the Python SDK that keeps sessions, and says on stderr what becomes of each.

It prints `opened ID`, `ran TOOL ID`, `unknown ID` for a request in a session that it does not know, and `ended ID`.
"""

import asyncio
import socket
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

SESSION = b"mcp-session-id"
WORDS: dict[str, list[str]] = defaultdict(list)


def say(*told: str) -> None:
    """Print at once."""
    sys.stderr.write(" ".join(told) + "\n")
    sys.stderr.flush()


def session_of(ctx: Context) -> str:
    """Return the session that a call is in."""
    return str((ctx.headers or {}).get("mcp-session-id", "none"))


def remember(word: str, ctx: Context) -> str:
    """Remember a word in this session; return all that it remembers."""
    session = session_of(ctx)
    say("ran", "remember", session)
    WORDS[session].append(word)
    return " ".join(WORDS[session])


async def slow(tenths: int, ctx: Context) -> str:
    """Take so many tenths of a second, with progress."""
    say("ran", "slow", session_of(ctx))
    for step in range(tenths):
        await asyncio.sleep(0.1)
        await ctx.report_progress(step + 1, tenths)
    return "done"


def watched(app: Any) -> Callable[..., Awaitable[None]]:
    """Return an ASGI app that says what becomes of sessions."""

    async def call(scope: dict[str, Any], receive: Any, send: Any) -> None:
        asked = dict(scope.get("headers", ())).get(SESSION, b"").decode()

        async def heard(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = dict(message["headers"]).get(SESSION, b"").decode()
                if not asked and given and message["status"] == 200:
                    say("opened", given)
                if asked and message["status"] == 404:
                    say("unknown", asked)
                if asked and scope["method"] == "DELETE" and message["status"] == 200:
                    say("ended", asked)
            await send(message)

        await app(scope, receive, heard if scope["type"] == "http" else send)

    return call


def main() -> None:
    """Serve until somebody ends it."""
    server = MCPServer("stateful")
    for tool in (remember, slow):
        server.add_tool(tool)
    listening = socket.create_server(("127.0.0.1", 0))
    say(f"listening on 127.0.0.1:{listening.getsockname()[1]}")
    app = watched(server.streamable_http_app())
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
