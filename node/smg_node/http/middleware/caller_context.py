"""Caller context: caller, deadline, priority and routing hints of a request, from its headers."""

from collections.abc import Sequence
from math import isfinite
from typing import Final

from smg_node.core.errors import invalid
from smg_node.core.request_context import RequestContext
from smg_node.http.http_options import HttpOptions
from smg_node.http.message.head_findings import HeadHints
from smg_node.http.message.http_request import Headers, HttpRequest
from smg_node.http.middleware.authorization import caller_digest
from smg_node.http.middleware.error_replies import family_of
from smg_node.http.middleware.priority import priority_of
from smg_node.http.route_table import is_openais
from smg_node.telemetry.traces.request_scope import NO_TRACE

_HINT_MAX_CHARACTERS: Final = 1024
ROUTING_KEY_MAX_BYTES: Final = 256
_READ_TIMEOUT: Final = "x-stainless-read-timeout"
_TIMEOUT: Final = "x-smg-timeout-ms"
_SERVER_TIMEOUT: Final = "x-server-timeout"
"""As Google's clients have it, in seconds: what they ask of the server, for streams as well."""


def head_hints(request: HttpRequest, options: HttpOptions) -> HeadHints:
    """Return what the head of `request` says about generations."""
    headers, identity = request.headers, request.identity
    stream_s = whole_s = options.request_s
    if _READ_TIMEOUT in headers or _TIMEOUT in headers or _SERVER_TIMEOUT in headers:
        stream_s = min(options.request_s, *_hints(headers, streamed=True))
        whole_s = min(options.request_s, *_hints(headers, streamed=False))
    priority = priority_of(headers, options.claim_max)
    if identity.restrictions is not None:
        from smg_node.http.middleware.restricted_requests import bounded_priority

        priority = bounded_priority(identity.restrictions, priority)
    return HeadHints(
        stream_s=stream_s,
        whole_s=whole_s,
        target_worker=headers.get("x-smg-target-worker", "")[:_HINT_MAX_CHARACTERS] or None,
        caller=caller_digest(request),
        priority=priority,
        tenant=identity.tenant,
        key_id=identity.key_id,
        upstream={} if request.trace.sampled else request.trace.headers(),
        family=family_of(request.route),
        openais=is_openais(request.route),
        shapes=options.expose_routing_headers,
    )


def context_of(request: HttpRequest, options: HttpOptions, *, streamed: bool) -> RequestContext:
    """Return the context of a request, without its body."""
    standing = request.standing
    asked = standing.asked
    if asked is None:
        asked = standing.asked = head_hints(request, options)
    request_id, received_s = request.request_id, request.received_s
    upstream = {"x-request-id": request_id}
    if request.trace is not NO_TRACE:
        upstream = {**(asked.upstream or request.trace.headers()), **upstream}
    # By position, in the order of its fields: it is made for every request.
    return RequestContext(
        request_id,
        received_s,
        received_s + (asked.stream_s if streamed else asked.whole_s),
        asked.target_worker,
        upstream,
        asked.caller,
        request.line.peer,
        asked.priority,
        asked.tenant,
        asked.key_id,
        request.received_ms,
        request.token,
    )


def routing_key(headers: Headers, names: Sequence[str]) -> str:
    """Return the routing key in the first of these headers that is there, "" for none; a longer one
    is refused.
    """
    for name in names:
        key = headers.get(name, "")
        if not key:
            continue
        if len(key.encode("utf-8", "surrogateescape")) > ROUTING_KEY_MAX_BYTES:
            raise invalid(
                f"a routing key has at most {ROUTING_KEY_MAX_BYTES} bytes",
                name,
                "routing_key_too_long",
            )
        return key
    return ""


def _hints(headers: Headers, *, streamed: bool) -> list[float]:
    """Return the client's own timeout in seconds, where it states a sensible one.

    The official SDKs' read timeout limits the pause between bytes (600 s unless set), so it bounds
    an answer that comes in one piece; it does not limit a stream, which comments keep alive.
    """
    hints: list[float] = []
    for name, unit_s in ((_READ_TIMEOUT, 1.0), (_TIMEOUT, 0.001), (_SERVER_TIMEOUT, 1.0)):
        if streamed and name == _READ_TIMEOUT:
            continue
        text = headers.get(name, "")
        if not text:
            continue
        try:
            hint_s = float(text) * unit_s
        except ValueError:
            continue
        if isfinite(hint_s) and hint_s > 0:
            hints.append(hint_s)
    return hints or [float("inf")]
