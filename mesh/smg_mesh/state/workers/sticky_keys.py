"""Sticky keys: the worker of a routing key, where that is not what
every node would compute by itself.

    table row: key → msgpack [worker, why]

The node that places a key writes it, and of two nodes that place one key at the same moment the
later write counts, on all nodes. A key that is not used for the table's time (four hours) is
forgotten; using it costs a write only every half an hour.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from smg_mesh.crdt.tables.table_rows import Row
from smg_mesh.state.workers.worker_ids import WORKER_ID_CHARS_MAX
from smg_mesh.sync.bound_views import BoundTable

WHY_CHARS_MAX: Final = 64


class _Content(msgspec.Struct, frozen=True, array_like=True):
    """What a row says."""

    worker_id: Annotated[str, Meta(min_length=1, max_length=WORKER_ID_CHARS_MAX)]
    why: Annotated[str, Meta(max_length=WHY_CHARS_MAX)] = ""


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Content)


@dataclass(frozen=True, slots=True)
class StickyRow:
    """A key's worker, and which node put it there or used it last. Times are of its wall clock."""

    key: str
    worker: str
    why: str
    node: str
    time_ms: int
    expires_ms: int


class Sticky:
    """The bindings of all nodes, over one table."""

    def __init__(self, table: BoundTable) -> None:
        self._table: Final = table
        self._worker_of: dict[str, str] = {}
        self._keys_of: dict[str, dict[str, None]] = {}
        self._look_again([row.key for row in table.items()])
        table.watch(self._look_again)

    def __len__(self) -> int:
        """How many keys are bound, or were until not long ago."""
        return len(self._worker_of)

    def worker_of(self, key: str) -> str | None:
        """Return the worker of a key, None if it has none."""
        row = self._table.get(key)
        content = None if row is None else _content(row)
        return None if content is None else content.worker_id

    def row(self, key: str) -> StickyRow | None:
        """Return the worker of a key, which node set it, and why."""
        row = self._table.get(key)
        content = None if row is None else _content(row)
        if row is None or content is None:
            return None
        return StickyRow(
            key, content.worker_id, content.why, row.owner, row.written_ms, row.ends_ms
        )

    def bind(self, key: str, worker_id: str, why: str = "") -> None:
        """Let a key belong to a worker, on all nodes; ValueError for an id that is too long or empty."""
        if not 0 < len(worker_id) <= WORKER_ID_CHARS_MAX:
            raise ValueError(f"{worker_id[:80]!r} is no worker")
        self._table.put(key, _encoder.encode(_Content(worker_id, why[:WHY_CHARS_MAX])))

    def touch(self, key: str) -> None:
        """Keep a binding that is used: cheap, and seldom a write."""
        self._table.touch(key)

    def release(self, key: str) -> None:
        """Let a key belong to no worker, on all nodes."""
        self._table.remove(key)

    def of_worker(self, worker_id: str) -> Sequence[str]:
        """Return the keys of a worker, sorted."""
        keys = sorted(self._keys_of.get(worker_id, ()))
        return [key for key in keys if self.worker_of(key) == worker_id]

    def keys_at(self, worker_id: str) -> int:
        """Return how many keys a worker has, or had until not long ago."""
        return len(self._keys_of.get(worker_id, ()))

    def rows(self) -> Sequence[StickyRow]:
        """Return all bindings, sorted by key."""
        rows = (self.row(key) for key in sorted(self._worker_of))
        return [row for row in rows if row is not None]

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` the keys that are bound, or used, or bound no more. It may read and must not write."""
        self._table.watch(heard)

    def _look_again(self, keys: Sequence[str]) -> None:
        for key in keys:
            row = self._table.get(key)
            content = None if row is None else _content(row)
            self._note(key, None if content is None else content.worker_id)

    def _note(self, key: str, worker_id: str | None) -> None:
        before = self._worker_of.get(key)
        if before == worker_id:
            return
        if before is not None:
            del self._worker_of[key]
            held = self._keys_of[before]
            del held[key]
            if not held:
                del self._keys_of[before]
        if worker_id is not None:
            self._worker_of[key] = worker_id
            self._keys_of.setdefault(worker_id, {})[key] = None


def _content(row: Row) -> _Content | None:
    """Return what a row says; None if it makes no sense to this version."""
    try:
        return _decoder.decode(row.content)
    except (ValueError, RecursionError):
        return None
