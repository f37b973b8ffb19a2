"""Discovery port: sources of workers, and what each node that is configured with one says of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

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


class DefinedSource(msgspec.Struct, frozen=True):
    """What operators defined under a name for the whole cluster; `spec` is empty where this node cannot read it."""

    kind: str
    name: str
    version: str
    spec: Mapping[str, Any]


class SourceChange(msgspec.Struct, frozen=True):
    """The cluster's definition before a change and after, None where there was or is none."""

    before: DefinedSource | None
    after: DefinedSource | None


class SourceView(msgspec.Struct, frozen=True):
    """One source. `writer` writes what it shows, `standby` watches as well; "" where there is nobody.

    `registered`: workers that it is a reason for; `removed`: those an operator removed, which stay away. `trouble` says
    what is wrong with it as a whole, "" if nothing. `defined`: which settings are in force, the cluster's or those of the
    nodes that have it, "" where no living node has it any more; `overridden`: the asked node's own settings have one of
    that name too, which does not count.
    """

    kind: str
    name: str
    writer: str
    standby: str
    registered: int
    removed: int
    trouble: str
    members: Sequence[SourceMember]
    defined: Literal["cluster", "node", ""] = ""
    definition: DefinedSource | None = None
    overridden: bool = False


class DiscoveryView(msgspec.Struct, frozen=True):
    """All sources that the cluster or any living node has, or that workers are registered for.

    `unreadable`: why the asked node does not follow definitions of the cluster, by KIND/NAME.
    """

    node: str
    sources: Sequence[SourceView]
    unreadable: Mapping[str, str] = {}


class DiscoveryService(Protocol):
    """Tells of discovery, and defines sources for the whole cluster."""

    def view(self) -> DiscoveryView:
        """Return all sources, by kind and name."""
        ...

    def check(self, kind: str, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a definition as it is kept; INVALID_REQUEST names the field that is wrong. Slow: for a thread."""
        ...

    def define(
        self, kind: str, name: str, checked: Mapping[str, Any], *, version: int | None
    ) -> SourceChange:
        """Define a source on all nodes, as it was checked; CONFLICT `stale` for another version than there is."""
        ...

    def remove(self, kind: str, name: str, *, version: int | None) -> SourceChange:
        """Take the cluster's definition away; NOT_FOUND `source_not_found`, CONFLICT `stale`."""
        ...

    def is_own(self, kind: str, name: str) -> bool:
        """Whether the asked node's own settings have a source of that name."""
        ...
