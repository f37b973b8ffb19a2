"""Failures of MCP calls: one table of what can go wrong, and how each dialect and each metric names it. Pure.

A failed call never fails the response it belongs to: it is a value that a model and a client are shown. No failure holds
a secret or a header of the server's answer.
"""

import http
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from smg_node.mcp.limits import MESSAGE_CHARACTERS_MAX

NOT_RUN: Final = -32001
"""Code of calls that rules of this node keep from being sent, or whose answer they refuse."""
PARSE_ERROR: Final = -32700
INVALID_PARAMS: Final = -32602
METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022


class FailureKind(Enum):
    """Kinds of failure, each a row of `FAILURE_ROWS`."""

    PROTOCOL = "protocol"
    """The server answered with a JSON-RPC error, or with what is no answer at all."""
    HTTP = "http"
    """It answered with a status and no JSON-RPC error."""
    TIMEOUT = "timeout"
    LOST = "lost"
    """The connection could not be made, or broke."""
    REFUSED = "refused"
    """A rule of this node says no."""
    LIMITED = "limited"
    """A limit on runs of tools is used up."""
    CROWDED = "crowded"
    """Too many others wait already."""


class FailureRow(NamedTuple):
    """How a kind of failure is named: `type` in Responses, `lead` before its message for a model, `outcome` in metrics."""

    type: str
    lead: str
    outcome: str


FAILURE_ROWS: Final[Mapping[FailureKind, FailureRow]] = {
    FailureKind.PROTOCOL: FailureRow("mcp_protocol_error", "tool failed", "protocol"),
    FailureKind.HTTP: FailureRow("http_error", "tool failed", "http"),
    FailureKind.TIMEOUT: FailureRow("http_error", "tool failed", "timeout"),
    FailureKind.LOST: FailureRow("http_error", "tool failed", "lost"),
    FailureKind.REFUSED: FailureRow("mcp_protocol_error", "not run", "refused"),
    FailureKind.LIMITED: FailureRow("mcp_protocol_error", "not run", "limited"),
    FailureKind.CROWDED: FailureRow("http_error", "tool failed", "refused"),
}
TOOL_ERROR_TYPE: Final = "mcp_tool_execution_error"
"""Type in Responses of a result in which the tool itself says that it failed."""


class Failure(msgspec.Struct, frozen=True):
    """One failed request. `code` is a JSON-RPC code, or an HTTP status, as its row says.

    `sent`: something of the request may have reached the server, so a tool may have run. `error_data` is the JSON of
    a JSON-RPC error's `data`. `status` is that of the HTTP answer, 0 where there was none.
    """

    kind: FailureKind
    code: int
    message: str
    sent: bool = True
    error_data: bytes = b""
    status: int = 0
    retry_after_s: float | None = None

    @property
    def row(self) -> FailureRow:
        """How it is named."""
        return FAILURE_ROWS[self.kind]

    @property
    def outcome(self) -> str:
        """The word in metrics: a token that ran out is counted apart."""
        return "auth" if self.status == 401 else self.row.outcome

    def with_note(self, note: str) -> "Failure":
        """Return it with a remark at the end of its message."""
        return msgspec.structs.replace(self, message=f"{self.message}; {note}")


def responses_error(failure: Failure) -> dict[str, Any]:
    """Return the object that `mcp_call.error` is in Responses."""
    return {"type": failure.row.type, "code": failure.code, "message": failure.message}


def responses_tool_error(content: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return that object for a result in which the tool says that it failed."""
    return {"type": TOOL_ERROR_TYPE, "content": list(content)}


def prompt_text(failure: Failure) -> str:
    """Return what a model and Messages are shown."""
    return f"{failure.row.lead}: {failure.message}"


def timed_out(what: str, *, sent: bool = True) -> Failure:
    """Return the failure of a request that took too long; `what` says which limit."""
    return Failure(FailureKind.TIMEOUT, 504, what, sent=sent)


def lost(why: str, *, sent: bool) -> Failure:
    """Return the failure of a connection that broke or was never made."""
    return Failure(FailureKind.LOST, 502, why, sent=sent)


def refused(rule: str, *, sent: bool = False) -> Failure:
    """Return the failure of a request that a rule or limit of this node stops."""
    return Failure(FailureKind.REFUSED, NOT_RUN, rule, sent=sent)


def crowded(why: str) -> Failure:
    """Return the failure of a request that would wait where too many wait already: 429, and nothing was run."""
    return Failure(FailureKind.CROWDED, 429, f"429, not run: {why}", sent=False)


def unreadable(why: str, status: int = 0) -> Failure:
    """Return the failure of an answer that is none."""
    return Failure(FailureKind.PROTOCOL, PARSE_ERROR, why, status=status)


def too_large(limit: int) -> Failure:
    """Return the failure of an answer above the limit of bytes: the request has been worked on."""
    message = f"the answer is larger than {limit} bytes (mcp.answer_bytes_max)"
    return Failure(FailureKind.PROTOCOL, NOT_RUN, message)


def bare_status(status: int, retry_after_s: float | None = None) -> Failure:
    """Return the failure of an answer that is nothing but its HTTP status."""
    try:
        phrase = f"{status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        phrase = str(status)
    return Failure(
        FailureKind.HTTP,
        status,
        f"the server answered {phrase}",
        status=status,
        retry_after_s=retry_after_s,
    )


_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]"
)


def plain_text(text: str, characters_max: int = MESSAGE_CHARACTERS_MAX) -> str:
    """Return a stranger's text without control characters, and no longer than that."""
    text = _CONTROL.sub(" ", text[: characters_max + 1])
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"
