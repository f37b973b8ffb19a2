"""Relay headers: which pass between a client and an HTTP worker, and which are dropped. Pure.

To a worker go few: those that an answer depends on, the trace, and this node's request id. A
client's key, cookies and address stay here, and some servers let headers steer them. From a worker
all pass but those of its connection, its keys, and those that this node sets itself.
"""

from collections.abc import Iterable, Mapping
from typing import Final

TO_WORKER: Final = ("accept", "accept-language", "user-agent")
HEADERS_MAX: Final = 64
VALUE_MAX_CHARACTERS: Final = 4_096
_STAY: Final = frozenset(
    {
        # the connection
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        # keys
        "set-cookie",
        "set-cookie2",
        "www-authenticate",
        "proxy-authenticate",
        "proxy-authorization",
        "authentication-info",
        "authorization",
        "x-api-key",
        # what is said here
        "date",
        "server",
        "via",
        "location",
        "alt-svc",
        "strict-transport-security",
        "x-request-id",
        "request-id",
        "content-type",
        "retry-after",
    }
)
_STAY_BEGINNINGS: Final = ("x-smg-", "access-control-", "proxy-")


def to_worker(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the client's headers that pass to the worker."""
    found = {name: headers.get(name, "")[:VALUE_MAX_CHARACTERS] for name in TO_WORKER}
    return {name: value for name, value in found.items() if value and _fits(value)}


def from_worker(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's headers that pass to the client, at most 64; names are in lower case."""
    named = _words(headers.get("connection", ""))
    found: dict[str, str] = {}
    for name, value in headers.items():
        if len(found) >= HEADERS_MAX:
            break
        if name in _STAY or name in named or name.startswith(_STAY_BEGINNINGS):
            continue
        if len(value) <= VALUE_MAX_CHARACTERS and _fits(value) and _is_name(name):
            found[name] = value
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in text.split(","))


def _fits(value: str) -> bool:
    return value.isprintable() and value.isascii()


def _is_name(name: str) -> bool:
    return name.isascii() and _all_in(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.")


def _all_in(text: str, letters: Iterable[str]) -> bool:
    return bool(text) and set(text) <= set(letters)
