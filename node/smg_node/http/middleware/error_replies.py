"""Error replies: turn an SmgError into status, headers and a dialect's error body; the only place.

An error outside any dialect gets the OpenAI envelope, because that is what most clients parse.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from smg_node.admission.header_values import Family
from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects import openai_errors
from smg_node.dialects.dialect import Dialect
from smg_node.http.message.head_findings import NO_HEADERS
from smg_node.http.message.http_request import Headers
from smg_node.http.message.reply import Reply
from smg_node.http.ports.limits import StaleLimitError
from smg_node.http.ports.shared_state import StaleSettingError, StaleValueError
from smg_node.http.route_table import BY_CLIENT, Route, UpgradeRequiredError, WrongMethodError

if TYPE_CHECKING:
    from smg_node.dialects.interactions.errors import InteractionErrors

RETRY_AFTER_MAX_S: Final = 60.0
"""Above 120 s one official client gives up and another sleeps as told, so we never ask for so much."""
_RETRY_DEFAULT_S: Final = 1.0
_HOPELESS: Final = frozenset({"storage_quota"})
"""Codes of errors that only somebody's doing ends: asking again does not."""
_STALE: Final = (StaleSettingError, StaleLimitError, StaleValueError)
_encode: Final = msgspec.json.Encoder().encode


def internal() -> SmgError:
    """Return the error for an internal mistake; it reveals no detail."""
    return SmgError(ErrorKind.INTERNAL, "the node made a mistake; it has been logged")


def error_reply(
    error: SmgError,
    *,
    route: Route | None,
    dialects: Mapping[str, Dialect],
    request_id: str,
    named: str = "",
    headers: Headers | None = None,
) -> Reply:
    """Return the reply for `error`, in the envelope of its dialect: that of the route, or `named` where there is none;
    `headers` are the request's.
    """
    name = named if route is None else route.dialect
    if name == BY_CLIENT:
        name = dialect_of_client(headers or NO_HEADERS)
    dialect = _envelope(name, dialects)
    if isinstance(error, _STALE):
        body = _encode({"error": openai_errors.error_object(error), "current": error.current})
    elif dialect is None:
        body = openai_errors.error_body(error)
    else:
        body = dialect.error_body(error, request_id)
    status = error.status if dialect is None else dialect.error_status(error)
    told = {"x-smg-error-code": error.code, **_retry_headers(error)}
    if isinstance(error, _STALE):
        told["etag"] = f'"{error.version}"'
    if isinstance(error, LimitedError):
        told.update(error.headers(family_of(route)))
    if isinstance(error, WrongMethodError):
        told["allow"] = error.allow
    if isinstance(error, UpgradeRequiredError):
        told.update(error.headers)
    if error.status == 401 or error.challenge:
        told["www-authenticate"] = f"Bearer {error.challenge}".rstrip()
    return Reply(status, body, headers=told)


def dialect_of_client(headers: Headers) -> str:
    """Return the dialect that a client shows by its headers, where the path does not tell; "" is OpenAI's."""
    if "x-goog-api-key" in headers:
        return "gemini"
    return "messages" if "anthropic-version" in headers else ""


def _envelope(name: str, dialects: Mapping[str, Dialect]) -> "Dialect | InteractionErrors | None":
    """Return who renders errors of the API of that name; None for the OpenAI envelope."""
    if name == "interactions":
        # Imported here: most nodes never need it.
        from smg_node.dialects.interactions.errors import InteractionErrors

        return InteractionErrors()
    return dialects.get(name)


def family_of(route: Route | None) -> Family:
    """Return the family of limit header names, by the route."""
    return "anthropic" if route is not None and route.dialect == "messages" else "openai"


def _retry_headers(error: SmgError) -> dict[str, str]:
    """Return the headers that tell the official clients whether to retry, and when."""
    if error.once or error.status == 501 or (error.status == 409 and error.retry_after_s is None):
        return {"x-should-retry": "false"}
    if error.status not in (409, 429, 503):
        return {}
    hopeless = error.code in _HOPELESS or (isinstance(error, LimitedError) and error.hopeless)
    wish_s = _RETRY_DEFAULT_S if error.retry_after_s is None else error.retry_after_s
    after_s = min(max(wish_s, 0.0), RETRY_AFTER_MAX_S)
    return {
        "retry-after": str(math.ceil(after_s)),
        "retry-after-ms": str(math.ceil(after_s * 1000)),
        "x-should-retry": "false" if hopeless else "true",
    }
