"""An MCP server of the modern era that writes down what it is asked, and an issuer of tokens beside it."""

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

MODERN = "2026-07-28"


@dataclass
class Asked:
    """One request as it came."""

    method: str
    headers: Mapping[str, str]
    params: Mapping[str, Any]


@dataclass
class Recorder:
    """The server and the issuer. Only bearers in `tokens` are let in, anybody where that is None."""

    url: str = ""
    tokens: set[str] | None = None
    life_s: float = 1000.0
    issuer_status: int = 200
    asked: list[Asked] = field(default_factory=list)
    issued: list[dict[str, str]] = field(default_factory=list)

    @property
    def issuer(self) -> str:
        """Where tokens are made."""
        return self.url.replace("/mcp", "/token")

    def calls(self) -> list[Asked]:
        """Return the calls of tools."""
        return [one for one in self.asked if one.method == "tools/call"]

    async def mcp(self, request: web.Request) -> web.Response:
        """Answer one request."""
        body = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        self.asked.append(Asked(body["method"], headers, body.get("params", {})))
        if self.tokens is not None and bearer not in self.tokens:
            return web.Response(status=401)
        result = self._result(body["method"])
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        return web.json_response(answer)

    def _result(self, method: str) -> Mapping[str, Any]:
        if method == "server/discover":
            server = {"name": "recorder", "version": "1"}
            return {
                "resultType": "complete",
                "supportedVersions": [MODERN],
                "capabilities": {"tools": {}},
                "serverInfo": server,
                "ttlMs": 60_000,
                "cacheScope": "public",
            }
        if method == "tools/list":
            tools = [
                {"name": name, "inputSchema": {"type": "object"}} for name in ("find", "write")
            ]
            return {
                "resultType": "complete",
                "tools": tools,
                "ttlMs": 60_000,
                "cacheScope": "private",
            }
        return {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}

    async def token(self, request: web.Request) -> web.Response:
        """Make a token."""
        form = dict(parse_qsl(await request.text()))
        basic = request.headers.get("authorization", "")
        if basic:
            form["basic"] = b64decode(basic.removeprefix("Basic ")).decode()
        self.issued.append(form)
        if self.issuer_status != 200:
            return web.json_response({"error": "invalid_client"}, status=self.issuer_status)
        token = f"token-{len(self.issued)}"
        if self.tokens is not None:
            self.tokens.add(token)
        body = {"access_token": token, "token_type": "Bearer", "expires_in": self.life_s}
        return web.Response(text=json.dumps(body), content_type="application/json")


@asynccontextmanager
async def recorded(tokens: set[str] | None = None) -> AsyncIterator[Recorder]:
    """Yield a server on the loopback."""
    recorder = Recorder(tokens=tokens)
    app = web.Application()
    app.router.add_post("/mcp", recorder.mcp)
    app.router.add_post("/token", recorder.token)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        yield recorder
    finally:
        await runner.cleanup()
