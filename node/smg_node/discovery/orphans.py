"""Orphans: entries of sources that are in nobody's settings any more, and what becomes of them after a minute.

a living node has the source, or the cluster defines it    no orphan
its writer lives                                           an orphan: who wrote it would say so if it had it still
its writer does not live, and the cluster's definition was
removed after it was written                               an orphan: whoever wrote it, it was for that definition
its writer does not live otherwise                         nobody knows: it may come back with the source
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Key: TypeAlias = tuple[str, str]
"""Kind and name of a source."""

TAKEN_OUT_S: Final = 60.0
"""Put back into the settings in time, nothing happened."""


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """Entry of a source about a worker: the node that wrote it, and when, as a version.

    `keep`: its source said that the worker stays; `serves`: it is a reason why the worker exists, and the engine does not end.
    """

    key: Key
    worker_id: str
    by: str
    version: int
    keep: bool = False
    serves: bool = True

    @property
    def stays(self) -> bool:
        """Whether the worker is to stay, as if an operator had added it."""
        return self.keep and self.serves


@dataclass(frozen=True, slots=True)
class Homes:
    """Evidence of a moment: which nodes live, which sources somebody has, and which definitions were removed.

    `removed` returns the version of the removal of the cluster's definition, 0 where none counts.
    """

    living: Collection[str]
    has_home: Callable[[Key], bool]
    removed: Callable[[Key], int]


@dataclass(frozen=True, slots=True)
class Orphans:
    """Since when each source has been in nobody's settings, and the entries whose time is up, in the order given."""

    since_s: Mapping[Key, float]
    due: Sequence[FoundEntry]


def is_orphan(entry: FoundEntry, homes: Homes) -> bool:
    """Return whether the source of an entry is in nobody's settings, as far as that can be known."""
    if not entry.key[1] or homes.has_home(entry.key):
        return False
    return entry.by in homes.living or entry.version < homes.removed(entry.key)


def orphans(
    entries: Sequence[FoundEntry], since_s: Mapping[Key, float], homes: Homes, *, now_s: float
) -> Orphans:
    """Return what follows for these entries; `since_s` is what the look before returned, {} for the first one."""
    found = [entry for entry in entries if is_orphan(entry, homes)]
    since = {key: since_s.get(key, now_s) for key in sorted({entry.key for entry in found})}
    due = [entry for entry in found if now_s - since[entry.key] >= TAKEN_OUT_S]
    return Orphans(since, due)
