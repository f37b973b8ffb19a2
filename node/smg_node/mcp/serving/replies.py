"""Replies of the node's own MCP server: JSON-RPC results, errors and notifications, and the HTTP status of each. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from smg_node.mcp.failures import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)

INVALID_REQUEST: Final = -32600
MISSING_CAPABILITY: Final = -32021
NO_ID: Final = b"null"
"""Id of an error whose request could not be read."""
_STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
_ALWAYS: Final = (PARSE_ERROR, INVALID_REQUEST)
_encode: Final = msgspec.json.Encoder().encode


class Refusal(msgspec.Struct, frozen=True):
    """Error that a request is answered with. `id` is the request's as JSON, `about` the error's `data`.

    `modern`: it is of a request of that era, whose clients read the HTTP status too.
    """

    code: int
    message: str
    id: bytes = NO_ID
    about: Mapping[str, Any] | None = None
    modern: bool = False

    @property
    def status(self) -> int:
        """The HTTP status. Clients of the handshake era take 404 for the end of a session, and get 200 instead."""
        return _STATUS.get(self.code, 200) if self.modern or self.code in _ALWAYS else 200

    @property
    def body(self) -> bytes:
        """The message in one line."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.about is not None:
            error["data"] = self.about
        return _encode({"jsonrpc": "2.0", "id": Raw(self.id), "error": error})


class Result(msgspec.Struct, frozen=True):
    """Result that a request is answered with."""

    id: bytes
    value: Mapping[str, Any]

    @property
    def status(self) -> int:
        """The HTTP status."""
        return 200

    @property
    def body(self) -> bytes:
        """The message in one line."""
        return _encode({"jsonrpc": "2.0", "id": Raw(self.id), "result": self.value})


def batch_body(replies: Sequence[Result | Refusal]) -> bytes:
    """Return the body that answers a batch."""
    return b"[%b]" % b",".join(reply.body for reply in replies)


def progress_frame(token: str | int, done: float, total: float | None, message: str) -> bytes:
    """Return the server-sent event of a notification that a request has come that far."""
    params: dict[str, Any] = {"progressToken": token, "progress": done}
    if total is not None:
        params["total"] = total
    if message:
        params["message"] = message
    return frame(_encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))


def frame(body: bytes) -> bytes:
    """Return the server-sent event of a message in one line."""
    return b"event: message\ndata: %b\n\n" % body
