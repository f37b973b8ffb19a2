"""Discovery port: sources of workers, and what each node that is configured with one says of it."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class SourceMember(msgspec.Struct, frozen=True):
    """One node's word on one source.

    `standing`: `waiting` (others watch), `starting`, `ok`, `recovering`, `failing`, or `aside` (it takes no new work), for
    `since_ms`. `age_ms`: how long ago its view was complete, null before the first. `held`: what is kept or kept away,
    and why; `unusable`: what is shown and no worker.
    """

    node: str
    standing: str
    since_ms: int
    writing: bool
    sightings: int
    age_ms: int | None
    waiting: int
    refused: int
    trouble: str
    held: str
    unusable: str


class SourceView(msgspec.Struct, frozen=True):
    """One source. `writer` writes what it shows, `standby` watches as well; "" where there is nobody.

    `registered`: workers that it is a reason for; `removed`: those an operator removed, which stay away. `trouble` says
    what is wrong with it as a whole, "" if nothing.
    """

    kind: str
    name: str
    writer: str
    standby: str
    registered: int
    removed: int
    trouble: str
    members: Sequence[SourceMember]


class DiscoveryView(msgspec.Struct, frozen=True):
    """All sources that any living node is configured with, or that workers are registered for."""

    node: str
    sources: Sequence[SourceView]


class DiscoveryViews(Protocol):
    """Tells of discovery."""

    def view(self) -> DiscoveryView:
        """Return all sources, by kind and name."""
        ...
