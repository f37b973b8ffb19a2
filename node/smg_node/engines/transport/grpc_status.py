"""gRPC status table: maps an engine's status code to an error kind, its blame and what the breaker
makes of it. Pure.

The engine's own text reaches a client only where it speaks about the client's input; anything else may
hold addresses, paths or stack traces and stays in the chained `TransportError`, for logs.

What a breaker makes of an error (spec: failures open it, pressure makes it wait, the rest is neither)
is a function of the error alone, so every later judge agrees.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from smg_node.core.context_limit import (
    TOO_LONG_CODE,
    excess_in,
    is_too_long_message,
    prompt_too_long,
)
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.engines.transport.transport import StatusCode, TransportError

RELAYED_MAX_BYTES: Final = 2048
RETRY_AFTER_S: Final = 1.0
"""What a client is told when an engine is full; an engine step frees a slot within that."""

CONSTRAINT_TRAILER: Final = "smg-constraint-failed"
"""Set by servicers whose engine could not go on under the request's own grammar."""

PUSHBACK_TRAILER: Final = "grpc-retry-pushback-ms"
"""Milliseconds that a server wants to be left alone for."""

LOGPROBS_MISSING_CODE: Final = "upstream_logprobs_missing"
"""Log probabilities that were asked for were not given, or not all of them."""
UNREACHABLE_CODE: Final = "upstream_unavailable"
"""The error code of a call that found nobody at the other end."""
PROVIDER_UNREACHABLE_CODE: Final = "provider_unreachable"
"""The same of a vendor's: no engine that is started anew, so nobody waits for it to come back."""

CLOSED_CODE: Final = "worker_removed"
"""Code of a call that this node dropped itself, because its worker is not to be used any more."""
DEADLINE_CODE: Final = "deadline_exceeded"
FIRST_EVENT_CODE: Final = "first_event_timeout"
"""The error code of a request whose own time was up: nobody's fault but the clock's."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """One row of the table. `status` is None where the kind's own HTTP status applies."""

    kind: ErrorKind
    code: str
    message: str
    status: int | None = None
    relayed: bool = False
    retry_after_s: float | None = None


_FAILED: Final = ErrorKind.UPSTREAM_FAILED

MEANINGS: Final[dict[StatusCode, Meaning]] = {
    # An engine that ends OK without an answer has broken its contract.
    StatusCode.OK: Meaning(_FAILED, "upstream_error", "the engine ended without an answer"),
    # Our own cancels never come here: see `remote_engine`.
    StatusCode.CANCELLED: Meaning(_FAILED, "upstream_error", "the engine cancelled the request"),
    StatusCode.UNKNOWN: Meaning(_FAILED, "upstream_error", "the engine failed"),
    StatusCode.INVALID_ARGUMENT: Meaning(
        ErrorKind.INVALID_REQUEST,
        "invalid_value",
        "the engine refused the request",
        relayed=True,
    ),
    StatusCode.DEADLINE_EXCEEDED: Meaning(
        ErrorKind.UPSTREAM_TIMEOUT, "upstream_timeout", "the engine took too long"
    ),
    # Ids and models are ours to know, so an engine that misses one is not the client's mistake.
    StatusCode.NOT_FOUND: Meaning(
        ErrorKind.NOT_FOUND, "not_found", "the engine does not know what the request names"
    ),
    StatusCode.ALREADY_EXISTS: Meaning(
        ErrorKind.INTERNAL, "internal_error", "the engine has a request of this id already"
    ),
    # The client's credentials never reach an engine: being shut out is our setup's fault.
    StatusCode.PERMISSION_DENIED: Meaning(
        _FAILED, "upstream_denied", "the engine does not let this node in"
    ),
    StatusCode.RESOURCE_EXHAUSTED: Meaning(
        ErrorKind.OVERLOADED, "overloaded", "the engine is full", retry_after_s=RETRY_AFTER_S
    ),
    StatusCode.FAILED_PRECONDITION: Meaning(
        _FAILED, "upstream_error", "the engine is not in a state to answer"
    ),
    StatusCode.ABORTED: Meaning(_FAILED, "upstream_error", "the engine dropped the request"),
    StatusCode.OUT_OF_RANGE: Meaning(
        ErrorKind.INVALID_REQUEST,
        "invalid_value",
        "the engine refused the request",
        relayed=True,
    ),
    StatusCode.UNIMPLEMENTED: Meaning(
        _FAILED, "upstream_unimplemented", "the engine cannot do this", status=501
    ),
    StatusCode.INTERNAL: Meaning(_FAILED, "upstream_error", "the engine failed"),
    StatusCode.UNAVAILABLE: Meaning(_FAILED, UNREACHABLE_CODE, "the engine cannot be reached"),
    StatusCode.DATA_LOSS: Meaning(_FAILED, "upstream_error", "the engine's answer is damaged"),
    StatusCode.UNAUTHENTICATED: Meaning(
        _FAILED, "upstream_denied", "the engine does not let this node in"
    ),
}

_CONSTRAINT_FAILED: Final = Meaning(
    ErrorKind.INVALID_REQUEST,
    "constraint_failed",
    "the engine could not go on under the request's constraint",
    relayed=True,
)
_TOO_LARGE: Final = Meaning(
    ErrorKind.TOO_LARGE, "request_too_large", "the request is larger than the engine takes at once"
)


def smg_error(error: TransportError) -> SmgError:
    """Return the error that callers of a failed call get; chain `error` to it when raising."""
    meaning = _meaning(error)
    message = meaning.message
    if meaning.relayed and is_too_long_message(error.message):
        return _too_long(error.message)
    if meaning.relayed and error.message:
        message = f"{message}: {cut(error.message)}"
    return SmgError(
        meaning.kind,
        message,
        code=meaning.code,
        status=meaning.status,
        retry_after_s=meaning.retry_after_s,
    )


def _too_long(words: str) -> SmgError:
    excess = excess_in(words)
    if excess is not None:
        return prompt_too_long(excess.tokens, excess.most, None, context=excess.context)
    return invalid(f"prompt is too long for the engine: {cut(words)}", None, TOO_LONG_CODE)


def closed_here() -> SmgError:
    """Return the error of a call that this node dropped."""
    return SmgError(
        _FAILED, "the worker was removed before the answer was complete", code=CLOSED_CODE
    )


def _meaning(error: TransportError) -> Meaning:
    if error.status is StatusCode.FAILED_PRECONDITION and CONSTRAINT_TRAILER in error.trailers:
        return _CONSTRAINT_FAILED
    if error.status is StatusCode.RESOURCE_EXHAUSTED and "message larger than max" in error.message:
        # gRPC says so of a request over the server's message limit; the engine is not full at all.
        return _TOO_LARGE
    return MEANINGS[error.status]


def cut(text: str) -> str:
    """Return `text` cut to 2 KiB of UTF-8, whole characters only."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= RELAYED_MAX_BYTES:
        return text
    return raw[: RELAYED_MAX_BYTES - 3].decode("utf-8", "ignore") + "…"


def asked_pause_s(error: SmgError) -> float | None:
    """Return the pause that the worker itself asked for; None if it did not say."""
    cause = error.__cause__
    if not isinstance(cause, TransportError):
        return error.retry_after_s
    # The trailer that gRPC defines for retries; a negative number means: not at all, so no time is named.
    said = cause.trailers.get(PUSHBACK_TRAILER, "")
    return int(said) / 1000 if said.isascii() and said.isdigit() and len(said) <= 9 else None


class Verdict(Enum):
    """Meaning of an error for the worker it came from."""

    FAILURE = "failure"
    PRESSURE = "pressure"
    NEITHER = "neither"


def verdict(error: SmgError) -> Verdict:
    """Return whether `error` counts against its worker, asks for a pause, or says nothing of it.

    A caller's mistake, a caller who left, a request whose own time was up, a missing ability (501) and a
    connection that this node closed say nothing.
    """
    match error.kind:
        case ErrorKind.OVERLOADED | ErrorKind.RATE_LIMITED:
            return Verdict.PRESSURE
        case ErrorKind.UPSTREAM_FAILED:
            ours = error.status == 501 or error.code == CLOSED_CODE
            return Verdict.NEITHER if ours else Verdict.FAILURE
        case ErrorKind.UPSTREAM_TIMEOUT:
            return Verdict.NEITHER if error.code == DEADLINE_CODE else Verdict.FAILURE
        case _:
            return Verdict.NEITHER
