"""Status mapping: the error kind, blame and client message for each HTTP status of a worker. Pure.

2xx                   the answer
401, 402, 403, 407    this node's key is wrong there, which its client can do nothing about
408, 429, 500..504    the worker is full or has failed
3xx, 1xx              redirects are never followed
404, 405              no such API or model there
other 4xx             the client's mistake: it is told so in the worker's own words
"""

from collections.abc import Mapping
from math import isfinite
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError

ASKED_PAUSE_MAX_S: Final = 60.0
_DENIED: Final = frozenset({401, 402, 403, 407})


def is_answer(status: int) -> bool:
    """Return whether the status is one of success, or blames the request."""
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


def seen(path: str, status: int) -> str:
    """Return what a page of a worker answered, other than that it is well, in words for operators."""
    if status in _DENIED:
        why = "the worker does not let this node in; is its api_key right?"
    elif status in (404, 405, 501):
        why = "no server with the OpenAI API is there"
    elif status == 503:
        why = "the worker is starting, or not well"
    elif 300 <= status < 400:
        why = "redirects are not followed; register the address that it sends to"
    elif status == 200:
        why = "but no list of models"
    else:
        why = "the worker is not well"
    return f"{path} answers {status}: {why}"


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
