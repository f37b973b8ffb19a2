"""Relay headers: which pass between a client and an HTTP worker, and which are dropped. Pure.

To a worker go few: those that an answer depends on, the trace, and this node's request id. A
client's key, cookies and address stay here, and some servers let headers steer them. From a worker
pass those that tell how to read its body; its limits, its accounts and its ids are not its client's.
"""

from collections.abc import Mapping, Sequence
from typing import Final

TO_WORKER: Final = ("accept", "accept-language", "user-agent")
VALUE_MAX_CHARACTERS: Final = 4_096
TO_CLIENT: Final = ("content-encoding", "content-language")


def to_worker(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the client's headers that pass to the worker."""
    return _chosen(headers, TO_WORKER)


def from_worker(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's headers that pass to the client; names are in lower case."""
    return _chosen(headers, TO_CLIENT)


def _chosen(headers: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    found = {name: headers.get(name, "")[:VALUE_MAX_CHARACTERS] for name in names}
    return {name: value for name, value in found.items() if value and _fits(value)}


def _fits(value: str) -> bool:
    return value.isprintable() and value.isascii()
