"""Worker record: one worker as all its sources together describe it.

An entry counts if it is later than the removal of the worker's identity. A worker exists while one source
counts. Of its sources the more trusted one decides about each field it has said, then the later one; what an
operator changed decides over all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from smg_mesh.crdt.entry import Held
from smg_mesh.state.unknown_versions import Unreadable, unreadable
from smg_mesh.state.workers.worker_keys import DRAIN, LISTINGS, PATCH, SHARED, SOURCES, WorkerKey
from smg_mesh.state.workers.worker_spec import (
    STATES,
    SourceEntry,
    WorkerSpec,
    read_drain,
    read_patch,
    read_source,
    spec_of,
)


class WorkerRecord(msgspec.Struct, frozen=True):
    """A worker of the cluster, not of a node.

    `sources`: who says that it exists, the most trusted first. `registered_by`: the node that wrote
    that one. `version`: the hybrid time of the latest entry that counts. `state`: what its sources say of it, the
    best of them. `instance`: what tells the engine there from another one, empty where no source can.
    """

    id: str
    spec: WorkerSpec
    sources: tuple[str, ...]
    draining: bool
    registered_by: str
    version: int
    state: str = STATES[0]
    instance: str = ""


class Part(msgspec.Struct, frozen=True):
    """One live entry about a worker, read: `said` by sources and patches, `on` by drains.

    One that cannot be read says neither.
    """

    key: WorkerKey
    held: Held
    said: SourceEntry | None = None
    on: bool | None = None
    strange: Unreadable | None = None

    @property
    def is_source(self) -> bool:
        """Whether it says that the worker exists."""
        return self.said is not None and self.key.source is not None and not self.said.withheld

    @property
    def is_listing(self) -> bool:
        """Whether it stands for what a node lists for itself."""
        return self.key.source in LISTINGS

    @property
    def is_remembered(self) -> bool:
        """Whether it stays when an operator removes the worker: who says the same again does not bring it back."""
        found = self.said is not None and bool(self.said.name) and self.key.source in SHARED
        return self.is_listing or found

    def is_listing_of(self, node: str) -> bool:
        """Whether it stands for what that node lists."""
        return self.is_listing and self.key.part.endswith(f"@{node}")

    @property
    def is_withheld(self) -> bool:
        """Whether it only remembers what was listed."""
        return self.said is not None and self.said.withheld


def read_part(key: WorkerKey, held: Held) -> Part:
    """Return what an entry says, whatever its bytes are."""
    assert held.value is not None
    try:
        if key.part == DRAIN:
            on, names = read_drain(held.value)
            return Part(key, held, on=on, strange=_strange(held, names))
        said = read_patch(held.value) if key.part == PATCH else read_source(held.value)
        return Part(key, held, said, strange=_strange(held, said.strange))
    except ValueError as error:
        return Part(key, held, strange=unreadable(held, "value", str(error)))


def _strange(held: Held, names: Sequence[str]) -> Unreadable | None:
    return unreadable(held, "fields", ", ".join(names)) if names else None


@dataclass(slots=True)
class Parts:
    """All that is held about one worker, and what comes of it."""

    worker_id: str
    removed_hlc: int = 0
    """When its identity was last removed; 0: never."""
    live: dict[str, Part] = field(default_factory=dict)
    """By what stands behind the slash of the key."""
    record: WorkerRecord | None = None

    def counts(self, part: Part) -> bool:
        """Return whether this entry is later than the removal of the worker."""
        return part.held.version > self.removed_hlc

    @property
    def beaten(self) -> Sequence[Part]:
        """Entries that the removal of the worker made void, and that still lie there."""
        return [part for part in self.live.values() if not (self.counts(part) or part.is_withheld)]

    def listings(self, part: str) -> Sequence[Part]:
        """Return the own listing under `part` if there is one, else those of others of the same kind."""
        own = self.live.get(part)
        kind = part.partition("@")[0]
        return [own] if own else [one for one in self.live.values() if one.key.source == kind]

    def is_up(self, part: Part) -> bool:
        """Return whether this entry is a reason why the worker exists."""
        return part.is_source and self.counts(part)

    @property
    def orphans(self) -> Sequence[Part]:
        """What was changed about a worker that does not exist: no removal, but its sources are gone."""
        if any(part.key.source and not part.is_withheld for part in self.live.values()):
            return ()
        return [part for part in self.live.values() if not part.key.source and self.counts(part)]

    @property
    def untidy(self) -> bool:
        """Whether there is something that counts for nothing."""
        if self.record is not None and all(map(self.counts, self.live.values())):
            return False
        return bool(self.beaten or self.orphans)

    @property
    def empty(self) -> bool:
        """Whether nothing is held about it, not even that it was removed."""
        return not self.live and self.removed_hlc == 0

    def build(self) -> WorkerRecord | None:
        """Make the record anew, from the few entries of this worker; None if no source counts."""
        counting = [part for part in self.live.values() if self.counts(part)]
        sources = [part for part in counting if part.is_source]
        self.record = self._of(sorted(sources, key=_trust), counting) if sources else None
        return self.record

    def _of(self, sources: Sequence[Part], counting: Iterable[Part]) -> WorkerRecord:
        """Return the record of these sources, the most trusted first."""
        patch: SourceEntry | None = None
        draining = False
        version = max([part.held.version for part in sources])
        for part in counting:
            if part.key.part == PATCH and part.said:
                patch = part.said
            elif part.on is not None:
                draining = part.on
            else:
                continue
            version = max(version, part.held.version)
        said = sources[0].said
        assert said is not None
        names = tuple([part.key.part for part in sources])
        spec = _spec(sources, patch)
        found = [part.said for part in sources if part.said]
        state = min([one.state for one in found], key=STATES.index)
        instance = next((one.instance for one in found if one.instance), "")
        return WorkerRecord(
            self.worker_id, spec, names, draining, said.by, version, state, instance
        )


def _trust(part: Part) -> tuple[int, int, str]:
    """Return what sorts sources, the most trusted first."""
    assert part.key.source is not None
    return (SOURCES.index(part.key.source), -part.held.version, part.key.part)


def _spec(sources: Sequence[Part], patch: SourceEntry | None) -> WorkerSpec:
    """Return what all of them say together, the first of the sources before the others."""
    said = [part.said for part in sources if part.said]
    if patch is None and len(said) == 1 and said[0].spec is not None:
        return said[0].spec
    return spec_of(_merged([one.fields for one in said]) | dict(patch.fields if patch else {}))


def _merged(fields: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the fields of all, the first one's before the others'; labels label by label."""
    merged: dict[str, object] = {}
    labels: dict[object, object] = {}
    for said in reversed(fields):
        merged |= said
        more = said.get("labels")
        labels |= more if isinstance(more, dict) else {}
    return merged | {"labels": labels}
