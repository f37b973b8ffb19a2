"""A WebSocket client, the `websockets` library's, for a node of `http_node`."""

import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket

from support.http import raw_http

PATH = "/v1/responses"


@contextlib.asynccontextmanager
async def socket(port: int, path: str = PATH, **options: Any) -> AsyncIterator[ClientConnection]:
    """Connect, over TLS where the test's connections are."""
    trust: ssl.SSLContext | None = raw_http.TLS
    scheme = "ws" if trust is None else "wss"
    options.setdefault("compression", None)
    url = f"{scheme}://127.0.0.1:{port}{path}"
    async with connect_socket(
        url, ssl=trust, server_hostname="localhost" if trust else None, **options
    ) as client:
        yield client


async def say(client: ClientConnection, **fields: Any) -> None:
    """Send one JSON object."""
    await client.send(json.dumps(fields))


async def create(client: ClientConnection, **fields: Any) -> None:
    """Ask for a response."""
    await say(client, **{"type": "response.create", "model": "m", **fields})


async def heard(client: ClientConnection) -> dict[str, Any]:
    """Return the next event."""
    event: dict[str, Any] = json.loads(await client.recv())
    return event


async def turn(client: ClientConnection) -> list[dict[str, Any]]:
    """Return the events up to the end of a response, or an error."""
    events = [await heard(client)]
    while not ends(events[-1]):
        events.append(await heard(client))
    return events


def ends(event: dict[str, Any]) -> bool:
    """Return whether nothing more comes of a response."""
    last = ("response.completed", "response.incomplete", "response.failed", "error")
    return event["type"] in last


def text_of(events: list[dict[str, Any]]) -> str:
    """Return the text of a response that was told."""
    response = events[-1]["response"]
    return "".join(part["text"] for item in response["output"] for part in item["content"])
