"""Worker registry of the cluster: added anywhere, usable everywhere, and gone once removed.

A worker belongs to the cluster, not to the node that wrote it down: it exists while one source says so,
whatever happens to that node. A removal beats every entry that is earlier, also one that arrives later; an
entry that is later than the removal makes a new worker of it, undrained and as its sources describe it.

A node that lists workers for itself (its flags, its files) remembers in the namespace what it listed, so
that listing the same again after a restart does not bring back what an operator removed meanwhile. What
one node finds for all (`find`) is remembered as well: whoever watches its source sees by `found` what an
operator removed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq
from typing import Final

import msgspec

from smg_mesh.config import StateOptions
from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.crdt.namespace import Heard, Namespace
from smg_mesh.state.prober_selection import probers
from smg_mesh.state.unknown_versions import Unreadable
from smg_mesh.state.workers.worker_cleanup import forget_listings, reseal, tidy
from smg_mesh.state.workers.worker_index import WorkerIndex
from smg_mesh.state.workers.worker_keys import (
    DRAIN,
    IDENTITY,
    LISTINGS,
    PATCH,
    SHARED,
    Listing,
    Source,
    own_key,
    part_of,
)
from smg_mesh.state.workers.worker_record import Part, Parts, WorkerRecord
from smg_mesh.state.workers.worker_spec import (
    INSTANCE_CHARACTERS_MAX,
    READY,
    STATES,
    SourceEntry,
    WorkerSpec,
    encode_drain,
    encode_source,
    fields_of,
    patch_of,
    spec_of,
)

__all__ = ["Found", "Listed", "Listing", "Source", "WorkerRecord", "WorkerRegistry", "WorkerSpec"]

ORPHAN_AGE_MS: Final = 60_000
"""A patch or drain of a worker without sources belongs to none if nothing has come of it for so long."""

SameKey = Callable[[bytes, bytes], bool]
"""Whether two sealed keys are the same key: sealing one twice gives different bytes."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Result of a listing, as ids, sorted. `held_back`: an operator
    removed them, and they stay away.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    held_back: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Entry of a shared source about a worker.

    `counts`: it is a reason why the worker exists; otherwise an operator removed the worker, and it only remembers
    what was there. `exists`: the worker does, by whichever word.
    """

    worker_id: str
    name: str
    spec: WorkerSpec
    state: str
    instance: str
    counts: bool
    exists: bool
    by: str
    version: int
    keep: bool = False
    released: bool = False


class WorkerRegistry:
    """The namespace `workers` as node `me` reads and writes it. StateError as in `Namespace`."""

    def __init__(
        self,
        namespace: Namespace,
        me: str,
        *,
        settle_after_ms: int = StateOptions().removed_keep_ms // 2,
    ) -> None:
        self._namespace: Final = namespace
        self._me: Final = me
        self._settle_after_ms: Final = settle_after_ms
        self._index: Final = WorkerIndex(namespace)

    # ── Reading ──────────────────────────────────────────────────────────────

    def get(self, worker_id: str) -> WorkerRecord | None:
        """Return the worker, None if there is none."""
        return self._index.get(worker_id)

    def records(self) -> Sequence[WorkerRecord]:
        """Return all workers, sorted by id."""
        return self._index.records()

    def shared(self) -> Sequence[str]:
        """Return the ids of workers about which shared sources say something, in no order."""
        return self._index.shared()

    def found(self, worker_id: str, source: Source) -> Found | None:
        """Return what a shared source says of a worker; None if it says nothing, or nothing that can be read."""
        assert source in SHARED
        parts = self._index.parts(worker_id)
        part = parts.live.get(source)
        said = None if part is None else part.said
        if part is None or said is None or said.spec is None:
            return None
        told = (said.name, said.spec, said.state, said.instance)
        exists = parts.record is not None
        wrote = (said.by, part.held.version, said.keep, said.released)
        return Found(worker_id, *told, parts.is_up(part), exists, *wrote)

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the ids of workers that came, changed or went. It may read and must not write."""
        self._index.watch(heard)

    def unreadable(self) -> Sequence[Unreadable]:
        """Return what this version cannot read, sorted by key; it is kept and passed on."""
        return self._index.unreadable()

    def sealed(self) -> Sequence[bytes]:
        """Return all sealed API keys that are held, also of what does not count now."""
        said = (part.said for parts in self._index.all_parts() for part in parts.live.values())
        return [one.sealed_key for one in said if one is not None and one.sealed_key]

    def __len__(self) -> int:
        return len(self._index)

    # ── Writing ──────────────────────────────────────────────────────────────

    def add(self, worker_id: str, source: Source, spec: WorkerSpec) -> WorkerRecord:
        """Say that a worker exists, later than any removal of it; ValueError for what cannot be."""
        return self._add(worker_id, source, fields_of(spec))

    def _add(
        self,
        worker_id: str,
        source: Source,
        fields: Mapping[str, object],
        name: str = "",
        state: str = READY,
        instance: str = "",
        *,
        keep: bool = False,
        released: bool = False,
    ) -> WorkerRecord:
        key = own_key(worker_id, part_of(source, self._me))
        parts = self._index.parts(worker_id)
        orphans = parts.orphans
        said = SourceEntry(
            fields,
            self._me,
            name=name,
            state=state,
            instance=instance,
            keep=keep,
            released=released,
        )
        held = self._say(key, said, parts)
        # What was changed a moment ago belongs to a source that is still on its way.
        orphaned_ms = hlc_ms(held.version) - ORPHAN_AGE_MS
        for orphan in orphans:
            if hlc_ms(orphan.held.version) < orphaned_ms:
                self._remove(str(orphan.key))
        return self._known(worker_id)

    def find(
        self,
        worker_id: str,
        source: Source,
        spec: WorkerSpec,
        *,
        name: str,
        state: str = READY,
        instance: str = "",
        keep: bool = False,
        released: bool = False,
    ) -> WorkerRecord:
        """Say that the shared source `name` shows a worker, later than any removal of it; ValueError as in `add`.

        `released`: it shows it no more, and another source may have it. `keep`: see `SourceEntry`.
        """
        assert source in SHARED
        assert name, "an operator's removal is remembered for the source of that name"
        if state not in STATES or len(instance) > INSTANCE_CHARACTERS_MAX:
            raise ValueError(f"{state[:32]!r} of {instance[:64]!r} cannot be said of a worker")
        said = fields_of(spec)
        return self._add(
            worker_id, source, said, name, state, instance, keep=keep, released=released
        )

    def inherit(self, worker_id: str, source: Source, *, name: str) -> bool:
        """Let the shared source `name` remember that an operator removed the worker; return whether there was what to take over."""
        assert source in SHARED
        part = self._index.parts(worker_id).live.get(source)
        if part is None or part.said is None or not part.said.withheld or part.said.name == name:
            return False
        said = replace(part.said, name=name, by=self._me)
        key = str(part.key)
        self._namespace.put(key, encode_source(said, onto=part.held.value or b""))
        self._index.look_at([key])
        return True

    def drop(self, worker_id: str, source: Source) -> bool:
        """Say that a source does not know the worker any more; return whether it did."""
        parts = self._index.parts(worker_id)
        part = parts.live.get(part_of(source, self._me))
        if part is None:
            return False
        self._remove(str(part.key))
        for orphan in parts.orphans:
            self._remove(str(orphan.key))
        return True

    def list_own(
        self,
        source: Listing,
        specs: Mapping[str, WorkerSpec],
        *,
        same_key: SameKey = eq,
    ) -> Listed:
        """Say that exactly these are what this node lists itself.

        Call it when the cluster's state is here. What is unchanged is not written again. What it
        listed before and does not list now is dropped. What an operator removed is held back until
        its listing changes or the worker exists again by another source's word; a node that lists
        for the first time is held back by equal listings of others, for it may be an old one under
        a new name.
        """
        assert source in LISTINGS
        part = part_of(source, self._me)
        before = [parts.worker_id for parts in self._index.all_parts() if part in parts.live]
        removed = [worker_id for worker_id in before if worker_id not in specs]
        for worker_id in removed:
            self.drop(worker_id, source)
        added, held_back = [], []
        for worker_id in sorted(specs):
            parts = self._index.parts(worker_id)
            same = [one for one in parts.listings(part) if _same(one, specs[worker_id], same_key)]
            if any(one.key.part == part and parts.is_up(one) for one in same):
                continue
            if same and parts.record is None:
                held_back.append(worker_id)
            else:
                self.add(worker_id, source, specs[worker_id])
                added.append(worker_id)
        return Listed(tuple(added), tuple(removed), tuple(held_back))

    def change(self, worker_id: str, **fields: object) -> WorkerRecord:
        """Change fields of a spec, except its url, over whatever its sources say of them.

        LookupError for an unknown worker; ValueError for a field or a value that cannot be.
        """
        parts = self._existing(worker_id)
        said = patch_of(fields)
        patch = parts.live.get(PATCH)
        if patch is not None and patch.said and parts.counts(patch):
            said = {**patch.said.fields, **said}
        self._say(own_key(worker_id, PATCH), SourceEntry(said, self._me), parts)
        return self._known(worker_id)

    def drain(self, worker_id: str, *, on: bool) -> WorkerRecord:
        """Say whether the worker gets no new work; LookupError for an unknown one."""
        parts = self._existing(worker_id)
        key = own_key(worker_id, DRAIN)
        value = encode_drain(on=on, by=self._me, onto=_kept(parts, DRAIN))
        self._namespace.put(key, value)
        self._index.look_at([key])
        return self._known(worker_id)

    def remove(self, worker_id: str) -> WorkerRecord:
        """Remove the worker everywhere, and return what it was; LookupError for an unknown one."""
        parts = self._existing(worker_id)
        record = self._known(worker_id)
        self._remove(own_key(worker_id, IDENTITY))
        tidy(self._namespace, [parts], me=self._me)
        return record

    # ── Tending ──────────────────────────────────────────────────────────────

    def tidy(self, wall_ms: int, *, living: Sequence[str] = (), writes_max: int = 256) -> int:
        """Clear away what counts for nothing; return how many writes that took.

        Call it about once a second, outside of any watcher: then a removal may be forgotten after its
        time, and nothing that it beat comes back. `living`: the names of all nodes that live; one of
        them sees to what the dead removed.
        """
        return tidy(
            self._namespace,
            self._index.untidy(),
            me=self._me,
            living=living,
            settled_ms=wall_ms - self._settle_after_ms,
            orphaned_ms=wall_ms - ORPHAN_AGE_MS,
            writes_max=writes_max,
        )

    def forget_node(self, name: str, *, living: Sequence[str]) -> int:
        """Take away what a node listed that never comes back; return how many writes that took.

        No worker goes with it: what only that node listed stays listed. Call it on every node when
        the member is forgotten; one of the living does it.
        """
        candidates = [(node, "") for node in living if node != name]
        if probers(name, candidates, count=1, all_up_to=1) != (self._me,):
            return 0
        return forget_listings(self._namespace, list(self._index.all_parts()), name)

    def reseal(
        self,
        renew: Callable[[bytes], bytes | None],
        mine: Callable[[str], bool],
        *,
        writes_max: int = 64,
    ) -> int:
        """Write API keys sealed anew where `renew` gives other bytes, everything else unchanged.

        Only entries whose owner is `mine`. Returns how many were written; call again until it is 0.
        """
        parts = self._index.all_parts()
        return reseal(self._namespace, parts, renew, mine, writes_max=writes_max)

    # ── Inside ───────────────────────────────────────────────────────────────

    def _say(self, key: str, said: SourceEntry, parts: Parts) -> Held:
        """Write a source or a patch; what is unknown here in the entry it replaces stays in it."""
        onto = _kept(parts, key.partition("/")[2])
        held = self._namespace.put(key, encode_source(said, onto=onto))
        self._index.look_at([key])
        return held

    def _remove(self, key: str) -> None:
        self._namespace.remove(key)
        self._index.look_at([key])

    def _existing(self, worker_id: str) -> Parts:
        parts = self._index.parts(worker_id)
        if parts.record is None:
            raise LookupError(f"there is no worker {worker_id[:128]}")
        return parts

    def _known(self, worker_id: str) -> WorkerRecord:
        record = self.get(worker_id)
        assert record is not None
        return record


def _kept(parts: Parts, name: str) -> bytes:
    """Return the bytes of an entry that still counts, b"" if there is none."""
    part = parts.live.get(name)
    return b"" if part is None or not parts.counts(part) else part.held.value or b""


def _same(part: Part, spec: WorkerSpec, same_key: SameKey) -> bool:
    """Return whether a listing says this spec, whatever the bytes of its sealed key are."""
    if part.said is None:
        return False
    before = spec_of(part.said.fields)
    bare = msgspec.structs.replace(before, sealed_key=spec.sealed_key)
    return bare == spec and same_key(before.sealed_key, spec.sealed_key)
