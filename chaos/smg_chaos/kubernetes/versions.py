"""Versioned objects: what a store such as etcd keeps of an API server, with its history.

Every write gets the next version. A list is the state at one version, a watch the writes after one; what was compacted
is known no more. A backup that is restored goes back to its version, and the next writes use the same numbers again.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, str]
"""Resource, namespace, name."""


class CompactedError(Exception):
    """The version asked for is older than what is kept."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write: the object before and after it, None where there was or is none."""

    version: int
    key: Key
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Backup:
    """All objects at one version."""

    version: int
    objects: Mapping[Key, Mapping[str, Any]]


@dataclass(slots=True)
class Versions:
    """All objects and their history. Objects that are given out are not to be changed."""

    version: int = 1
    compacted: int = 0
    objects: dict[Key, Mapping[str, Any]] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)

    def write(self, key: Key, after: Object | None) -> Mapping[str, Any] | None:
        """Write an object, or remove it; return it with its version."""
        self.version += 1
        before = self.objects.pop(key, None)
        kept: Mapping[str, Any] | None = None
        if after is not None:
            kept = copy.deepcopy(after)
            kept["metadata"]["resourceVersion"] = str(self.version)
            self.objects[key] = kept
        self.writes.append(Write(self.version, key, before, kept))
        return kept

    def state_at(self, version: int) -> dict[Key, Mapping[str, Any]]:
        """Return all objects at a version; CompactedError if it is too old, ValueError if it is to come."""
        if version < self.compacted:
            raise CompactedError
        if version > self.version:
            raise ValueError("the version is to come")
        state = dict(self.objects)
        for write in reversed(self.writes):
            if write.version <= version:
                break
            if write.before is None:
                state.pop(write.key, None)
            else:
                state[write.key] = write.before
        return state

    def writes_after(self, version: int) -> Iterator[Write]:
        """Yield the writes after a version, the oldest first; CompactedError if some of them are not known any more."""
        if version < self.compacted:
            raise CompactedError
        at = len(self.writes)
        while at and self.writes[at - 1].version > version:
            at -= 1
        yield from self.writes[at:]

    def compact(self) -> None:
        """Forget all history."""
        self.compacted = self.version
        self.writes.clear()

    def backup(self) -> Backup:
        """Return all objects as they are."""
        return Backup(self.version, dict(self.objects))

    def restore(self, backup: Backup) -> None:
        """Go back to a backup, with its version and without history."""
        self.version = self.compacted = backup.version
        self.objects = dict(backup.objects)
        self.writes.clear()
