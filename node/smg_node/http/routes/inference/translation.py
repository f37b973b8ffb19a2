"""Translation: a client's request for a model at a vendor, read only where the vendor does not speak the client's API."""

from collections.abc import Mapping
from typing import Any

from smg_node.dialects.dialect import Dialect
from smg_node.dialects.gemini.methods import STREAM, asked_of
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.http_request import HttpRequest
from smg_node.pipeline.relay.relay_context import Asks, Translation

_GEMINI = "gemini"
_MESSAGES = "messages"


def model_asked(dialect: str, body: Mapping[str, Any], request: HttpRequest) -> object:
    """Return the model that a request names: in its path in Google's API, else in its body."""
    return asked_of(request.values["id"])[0] if dialect == _GEMINI else body.get("model")


def streams_asked(dialect: str, body: Mapping[str, Any], request: HttpRequest) -> bool | None:
    """Return whether a stream is asked for; None where the body says so."""
    return asked_of(request.values["id"])[1] == STREAM if dialect == _GEMINI else None


def names_own_servers(dialect: str, body: Mapping[str, Any]) -> bool:
    """Whether a body of Messages names a server of tools without its URL: no vendor knows what an operator defined."""
    servers = body.get("mcp_servers") if dialect == _MESSAGES else None
    return type(servers) is list and any(
        type(server) is dict and server.get("url") is None for server in servers
    )


def asks_of(
    parts: HttpParts,
    dialect: Dialect,
    request: HttpRequest,
    body: dict[str, Any],
    *,
    streamed: bool,
) -> Asks:
    """Return where a relayed request comes from."""

    def translate() -> Translation:
        reading = dialect.read(body, request)
        return Translation(reading.request, dialect.presenter(reading, request))

    return Asks(
        dialect.name,
        streamed,
        parts.ids.new(""),
        translate=translate,
        headers=request.headers,
    )
