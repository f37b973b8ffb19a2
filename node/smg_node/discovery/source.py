"""Source of workers: the interface of what watches Kubernetes, DNS or a file and shows views."""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from smg_node.discovery.sighting import View

SourceKind: TypeAlias = Literal["kubernetes", "dns", "file"]
"""Kinds of sources, as the worker registry names them in a worker's `sources`."""
Show: TypeAlias = Callable[[View], None]
"""Takes a view whenever one differs from the one before, or is known to be whole up to a later moment. Never blocks."""


def label_of(kind: str, name: str, node: str) -> str:
    """Return how metrics and logs call a source: `kubernetes/chat`; a list of a node's own is `file@NODE` or `command@NODE`."""
    return f"{name}@{node}" if kind == "file" else f"{kind}/{name}"


class Source(Protocol):
    """One configured place to look for workers."""

    @property
    def kind(self) -> SourceKind:
        """Which kind it is of."""
        ...

    @property
    def name(self) -> str:
        """Its name in the configuration; unique within its kind."""
        ...

    async def run(self, show: Show) -> None:
        """Watch until cancelled; show views, and never raise for what the source answers or does not answer.

        Whoever calls it again, after a cancellation, gets a view from the start.
        """
        ...
