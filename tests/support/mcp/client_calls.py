"""Requests of an MCP client by HTTP, in both eras, as bytes that a test sees."""

import json
from collections.abc import Mapping
from typing import Any, Final

from support.http.raw_http import Response, ask

MODERN: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"


async def old(
    port: int,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    path: str = "/mcp",
    headers: Mapping[str, str] | None = None,
    id_: Any = 1,
) -> Response:
    """Ask as a client of 2025-11-25."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id_ is not None:
        message["id"] = id_
    if params is not None:
        message["params"] = params
    sent = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        **(headers or {}),
    }
    return await ask(port, "POST", path, json.dumps(message).encode(), sent)


async def new(
    port: int,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    path: str = "/mcp",
    headers: Mapping[str, str] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    token: str = "",
) -> Response:
    """Ask as a client of 2026-07-28, with the headers that it wants."""
    params = dict(params or {})
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities or {}}
    if token:
        meta["progressToken"] = token
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    sent = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        **({"mcp-name": params["name"]} if "name" in params else {}),
        **(headers or {}),
    }
    return await ask(port, "POST", path, json.dumps(message).encode(), sent)


def events(response: Response) -> list[Any]:
    """Return the messages of a stream of events."""
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = response.body.decode().split("\n\n")
    lines = [line for block in blocks for line in block.split("\n")]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
