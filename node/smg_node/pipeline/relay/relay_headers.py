"""Relay headers: which pass between a client and an HTTP worker, and which are dropped. Pure.

To a worker go few: those that an answer depends on, the trace, and this node's request id. A
client's key, cookies and address stay here, and some servers let headers steer them. From a worker
pass those that tell how to read its body; its limits, its accounts and its ids are not its client's.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.core.request_context import RequestContext

TO_WORKER: Final = ("accept", "accept-language", "user-agent")
VALUE_MAX_CHARACTERS: Final = 4_096
TO_CLIENT: Final = ("content-encoding", "content-language")


def to_worker(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the client's headers that pass to the worker."""
    return _chosen(headers, TO_WORKER)


def of_call(
    passed: Mapping[str, str], context: RequestContext, trace: Mapping[str, str], own_id: str
) -> dict[str, str]:
    """Return all headers of one call: the client's that pass, the trace, and the ids."""
    return {
        **passed,
        **context.upstream_headers,
        **trace,
        # Servers make their own id of this one, and two of one id are mixed up by some.
        "x-request-id": own_id,
        "x-smg-request-id": context.request_id,
    }


def from_worker(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's headers that pass to the client; names are in lower case."""
    return _chosen(headers, TO_CLIENT)


def call_headers(
    headers: Mapping[str, str], context: RequestContext, trace: Mapping[str, str], call_id: str
) -> dict[str, str]:
    """Return the headers of one call: the client's own, then what is known of the request elsewhere."""
    return {
        **headers,
        **context.upstream_headers,
        **trace,
        # Servers make their own id of this one, and two of one id are mixed up by some.
        "x-request-id": call_id,
        "x-smg-request-id": context.request_id,
    }


def _chosen(headers: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    found = {name: headers.get(name, "")[:VALUE_MAX_CHARACTERS] for name in names}
    return {name: value for name, value in found.items() if value and _fits(value)}


def _fits(value: str) -> bool:
    return value.isprintable() and value.isascii()
