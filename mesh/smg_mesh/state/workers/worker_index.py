"""Worker index: what is held about every worker, read once and kept current worker by worker."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Final

from smg_mesh.crdt.namespace import Heard, Namespace
from smg_mesh.state.unknown_versions import Unreadable, unreadable
from smg_mesh.state.workers.worker_keys import IDENTITY, SHARED, WorkerKey, read_key
from smg_mesh.state.workers.worker_record import Parts, WorkerRecord, read_part


class WorkerIndex:
    """The namespace `workers`, by worker. Follows the namespace; writes nothing."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace: Final = namespace
        self._parts: dict[str, Parts] = {}
        self._strange: dict[str, Unreadable] = {}
        self._ids: list[str] = []
        """Of the workers that exist, sorted."""
        self._records: tuple[WorkerRecord, ...] | None = None
        self._untidy: dict[str, None] = {}
        self._shared: dict[str, None] = {}
        """Workers about which shared sources say something, whether or not it counts."""
        self._heard: list[Heard] = []
        self.look_at([held.key for held in namespace.items()])
        namespace.watch(self.look_at)

    # ── Reading ──────────────────────────────────────────────────────────────

    def get(self, worker_id: str) -> WorkerRecord | None:
        """Return the worker, None if there is none."""
        parts = self._parts.get(worker_id)
        return None if parts is None else parts.record

    def records(self) -> Sequence[WorkerRecord]:
        """Return all workers, sorted by id."""
        if self._records is None:
            found = (self.get(worker_id) for worker_id in self._ids)
            self._records = tuple(record for record in found if record is not None)
        return self._records

    def parts(self, worker_id: str) -> Parts:
        """Return what is held about a worker, nothing for one never heard of."""
        return self._parts.get(worker_id) or Parts(worker_id)

    def all_parts(self) -> Iterator[Parts]:
        """Return what is held about each worker, in the order of their ids."""
        for worker_id in sorted(self._parts):
            yield self._parts[worker_id]

    def untidy(self) -> Sequence[Parts]:
        """Return the workers with entries that count for nothing, in the order of their ids."""
        return [self._parts[worker_id] for worker_id in sorted(self._untidy)]

    def shared(self) -> Sequence[str]:
        """Return the ids of workers about which shared sources say something, in no order."""
        return list(self._shared)

    def unreadable(self) -> Sequence[Unreadable]:
        """Return what this version cannot read, sorted by key."""
        return [self._strange[key] for key in sorted(self._strange)]

    def watch(self, heard: Heard) -> None:
        """Tell `heard` of the ids of workers that came, changed or went, sorted."""
        self._heard.append(heard)

    def __len__(self) -> int:
        return len(self._ids)

    # ── Following ────────────────────────────────────────────────────────────

    def look_at(self, keys: Sequence[str]) -> None:
        """Read these keys again, and tell watchers which workers are not as they were."""
        touched: dict[str, None] = {}
        findings = self._findings(keys)
        for key in keys:
            known = read_key(key)
            self._strange.pop(key, None)
            if known is None:
                self._look_at_unknown(key)
            else:
                touched[known.worker_id] = None
                self._look_at_known(known)
        # What a shared source says is news to those who watch it, also where the worker stays as it is.
        other = {worker_id for worker_id, _ in findings ^ self._findings(keys)}
        built = [(worker_id, self._build(worker_id)) for worker_id in sorted(touched)]
        changed = [worker_id for worker_id, differs in built if differs or worker_id in other]
        if changed:
            self._records = None
            for heard in self._heard:
                heard(changed)

    def _findings(self, keys: Sequence[str]) -> set[tuple[str, int]]:
        """Return the versions of what shared sources say under these keys, by worker."""
        found: set[tuple[str, int]] = set()
        for key in keys:
            worker_id, _, part = key.partition("/")
            parts = self._parts.get(worker_id) if part in SHARED else None
            entry = None if parts is None else parts.live.get(part)
            if entry is not None:
                found.add((worker_id, entry.held.version))
        return found

    def _look_at_unknown(self, key: str) -> None:
        held = self._namespace.get(key)
        if held is not None:
            self._strange[key] = unreadable(held, "key")

    def _look_at_known(self, key: WorkerKey) -> None:
        parts = self._parts.get(key.worker_id)
        if parts is None:
            # A removal heard of long ago may be all there is, and has no live entry to be found by.
            parts = self._parts[key.worker_id] = Parts(key.worker_id)
            self._look_at_identity(parts)
        if key.part == IDENTITY:
            self._look_at_identity(parts)
            return
        held = self._namespace.get(str(key))
        if held is None:
            parts.live.pop(key.part, None)
            return
        part = parts.live[key.part] = read_part(key, held)
        if part.strange is not None:
            self._strange[str(key)] = part.strange

    def _look_at_identity(self, parts: Parts) -> None:
        """Note when the worker was removed. A live value is not ours: what it replaced still holds."""
        held = self._namespace.latest(parts.worker_id)
        if held is None:
            parts.removed_hlc = 0
        elif held.value is None:
            parts.removed_hlc = held.version
        else:
            parts.removed_hlc = held.entry.seen
            self._strange[parts.worker_id] = unreadable(held, "key")

    def _build(self, worker_id: str) -> bool:
        """Make the record of a worker anew; return whether it is another one."""
        parts = self._parts[worker_id]
        before = parts.record
        after = parts.build()
        if any(name in parts.live for name in SHARED):
            self._shared[worker_id] = None
        else:
            self._shared.pop(worker_id, None)
        if parts.untidy:
            self._untidy[worker_id] = None
        else:
            self._untidy.pop(worker_id, None)
        if parts.empty:
            del self._parts[worker_id]
        if before is None and after is not None:
            insort(self._ids, worker_id)
        elif before is not None and after is None:
            del self._ids[bisect_left(self._ids, worker_id)]
        return before != after
