"""Status mapping: the error kind, blame and client message for each HTTP status of a worker. Pure.

2xx                   the answer
401, 403, 407         this node's key is wrong there, which its client can do nothing about
408, 429, 500..504    the worker is full or has failed
3xx, 1xx              redirects are never followed
other 4xx             the client's mistake: it is told so in the worker's own words
"""

from collections.abc import Mapping
from math import isfinite
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError

ASKED_PAUSE_MAX_S: Final = 60.0
_DENIED: Final = frozenset({401, 403, 407})


def is_answer(status: int) -> bool:
    """Return whether a client gets the worker's answer itself, instead of an error made of it."""
    return 200 <= status < 300 or (400 <= status < 500 and status not in {*_DENIED, 408, 429})


def failure(status: int, headers: Mapping[str, str]) -> SmgError:
    """Return the error for an answer that is none. Of the worker's text only its requested pause is
    kept.
    """
    assert not is_answer(status)
    if status in _DENIED:
        return SmgError(
            ErrorKind.UPSTREAM_FAILED,
            "the worker does not let this node in",
            code="upstream_denied",
        )
    if status in (429, 503):
        return SmgError(
            ErrorKind.RATE_LIMITED if status == 429 else ErrorKind.OVERLOADED,
            "the worker is full",
            code="rate_limit_exceeded" if status == 429 else "overloaded",
            retry_after_s=pause_s(headers),
        )
    if status == 501:
        return not_implemented("the worker cannot do this")
    if status in (408, 504):
        return SmgError(ErrorKind.UPSTREAM_TIMEOUT, "the worker took too long")
    return SmgError(ErrorKind.UPSTREAM_FAILED, f"the worker failed with status {status}")


def not_implemented(message: str) -> SmgError:
    """Return the error for an operation that a worker, or all of them, cannot do."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, message, code="not_implemented", status=501)


def pause_s(headers: Mapping[str, str]) -> float | None:
    """Return the pause a worker asks for, at most a minute; None if it does not say in seconds."""
    text = headers.get("retry-after", "").strip()
    try:
        wanted_s = float(text)
    except ValueError:
        return None
    return min(wanted_s, ASKED_PAUSE_MAX_S) if isfinite(wanted_s) and wanted_s >= 0 else None
