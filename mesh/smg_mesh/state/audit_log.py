"""Audit log: who changed what, from where; every node writes it, and
every node can be asked about it.

A row has a key of its own, and its node takes it away without a trace when it is too old. Two bounds hold,
and every node sees alike what is over them: a node keeps so many of its latest rows, and the newest rows of
all nodes together have so many bytes that the documents keep room. Where there is none nevertheless, a new
row takes the place of one of the oldest.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Final

from smg_mesh.crdt.namespace import Namespace, StateError
from smg_mesh.state.audit_row import AuditRow, Kept, encode_row, read_row
from smg_mesh.state.prober_selection import probers
from smg_mesh.state.unknown_versions import Unreadable, unreadable

__all__ = ["Audit", "AuditRow"]

ROWS_ASKED_MAX: Final = 1000
_FRESH_TRIES: Final = 24
"""Keys lie in documents by hash: of so many, one is in a document with room if a few have any."""
_PLACES_TRIES: Final = 8
_OLD_ROWS: Final = 64


class Audit:
    """The namespace `audit` as node `me` reads and writes it."""

    def __init__(
        self,
        namespace: Namespace,
        me: str,
        *,
        rows_max: int = 512,
        bytes_max: int = 2_097_152,
    ) -> None:
        self._namespace: Final = namespace
        self._me: Final = me
        self._rows_max: Final = rows_max
        self._bytes_max: Final = bytes_max
        self._bytes = 0
        self._by_key: dict[str, Kept] = {}
        self._by_id: dict[str, Kept] = {}
        self._ids: list[str] = []
        """Of all rows, the oldest first."""
        self._own: list[str] = []
        """Of the rows this node wrote, the oldest first."""
        self._strange: dict[str, Unreadable] = {}
        self._look_at([held.key for held in namespace.items()])
        namespace.watch(self._look_at)

    # ── Reading ──────────────────────────────────────────────────────────────

    def rows(
        self,
        *,
        before: str = "",
        after: str = "",
        action: str = "",
        subject: str = "",
        who: str = "",
        node: str = "",
        limit: int = 100,
    ) -> Sequence[AuditRow]:
        """Return rows, the newest first, at most `limit` and never more than a thousand.

        `before` and `after` are ids: only older, only newer rows. `action` is a whole one or its noun:
        `worker` finds `worker.add`. The others have to be equal; empty means any.
        """
        asked = {"subject": subject, "who": who, "node": node}
        wanted = {name: value for name, value in asked.items() if value}

        def fits(row: AuditRow) -> bool:
            if action and row.action != action and not row.action.startswith(f"{action}."):
                return False
            return all(getattr(row, name) == value for name, value in wanted.items())

        found = (row for row in self._newest(before, after) if fits(row))
        return list(islice(found, max(0, min(limit, ROWS_ASKED_MAX))))

    def row(self, row_id: str) -> AuditRow | None:
        """Return the row of that id, None if there is none any more."""
        kept = self._by_id.get(row_id)
        return None if kept is None else kept.row

    def unreadable(self) -> Sequence[Unreadable]:
        """Return what this version cannot read, sorted by key; it is kept and passed on."""
        return [self._strange[key] for key in sorted(self._strange)]

    def __len__(self) -> int:
        return len(self._ids)

    def _newest(self, before: str, after: str) -> Iterator[AuditRow]:
        first = bisect_right(self._ids, after) if after else 0
        last = bisect_left(self._ids, before) if before else len(self._ids)
        for place in range(last - 1, first - 1, -1):
            yield self._by_id[self._ids[place]].row

    # ── Writing ──────────────────────────────────────────────────────────────

    def append(
        self,
        *,
        who: str,
        action: str,
        subject: str = "",
        address: str = "",
        before: object = None,
        after: object = None,
        request_id: str = "",
    ) -> AuditRow:
        """Write a row, and return it.

        Long texts are cut, large values to a digest; ValueError for a value that JSON cannot say.
        StateError "full" only if not even the oldest rows could make room for a row of digests.
        """
        texts = (who, address, action, subject, request_id)
        value = encode_row(self._me, texts=texts, values=(before, after))
        try:
            key = self._put(value)
        except StateError as error:
            if error.reason != "full":
                raise
            short = encode_row(self._me, texts=texts, values=(before, after), cut_above_bytes=64)
            key = self._put(short)
        self._look_at([key])
        kept = self._by_key[key]
        self.tidy()
        return kept.row

    def tidy(self, *, living: Sequence[str] = (), writes_max: int = 64) -> int:
        """Take away rows that are over a bound; return how many. Never in a watcher.

        Each node takes away its own; of those that nodes not `living` wrote, one of the living does.
        """
        over = self._own[: max(0, len(self._own) - self._rows_max)]
        excess = self._bytes - self._bytes_max
        for row_id in self._ids:
            if excess <= 0:
                break
            over.append(row_id)
            excess -= self._by_id[row_id].size_bytes
        retired = 0
        for row_id in sorted(set(over)):
            if retired == writes_max:
                break
            kept = self._by_id[row_id]
            if self._falls_to_me(kept, living):
                retired += self._remove(kept.key)
            else:
                retired += self._retire(kept.key)
        return retired

    def _falls_to_me(self, kept: Kept, living: Sequence[str]) -> bool:
        if not living or kept.row.node in living:
            return False
        return probers(kept.key, [(n, "") for n in living], count=1, all_up_to=1) == (self._me,)

    def _remove(self, key: str) -> int:
        try:
            self._namespace.remove(key)
        except StateError:
            return 0
        self._look_at([key])
        return 1

    def _retire(self, key: str) -> int:
        held = self._namespace.get(key)
        if held is None or held.owner != self._me:
            return 0
        self._namespace.retire(key)
        self._look_at([key])
        return 1

    def _put(self, value: bytes) -> str:
        """Write under a new key, or where there is no room in the place of an old row; StateError."""
        for attempt in range(_FRESH_TRIES):
            key = self._fresh_key(value, attempt)
            if self._namespace.latest(key) is None and self._fits(key, value):
                return key
        for key in self._places():
            if self._fits(key, value):
                return key
            # The bytes of the old row may be what is missing.
            if self._retire(key) and self._fits(key, value):
                return key
        raise StateError("full", "the audit log has no room for one more row")

    def _places(self) -> Sequence[str]:
        """Return the keys of old rows whose places a new one may take, the best first.

        Its own, if this node has its share of the rows. Of others' each node prefers other ones: of two
        rows in one place only one is kept.
        """
        own = [self._by_id[row_id].key for row_id in self._own[:_PLACES_TRIES]]
        old = [self._by_id[row_id] for row_id in self._ids[:_OLD_ROWS]]
        others = [kept.key for kept in old if kept.row.node != self._me]
        others.sort(key=lambda key: blake2b(f"{self._me} {key}".encode(), digest_size=8).digest())
        nodes = len({kept.row.node for kept in self._by_id.values()})
        has_share = len(self._own) * nodes >= len(self._ids)
        return [*own, *others] if has_share else [*others[:_PLACES_TRIES], *own, *others]

    def _fits(self, key: str, value: bytes) -> bool:
        try:
            self._namespace.put(key, value)
        except StateError as error:
            if error.reason != "full":
                raise
            return False
        return True

    def _fresh_key(self, value: bytes, attempt: int) -> str:
        newest = self._ids[-1] if self._ids else ""
        said = f"{newest} {len(self._ids)} {attempt} ".encode() + value
        return f"{self._me}/{blake2b(said, digest_size=8).hexdigest()}"

    # ── Following ────────────────────────────────────────────────────────────

    def _look_at(self, keys: Sequence[str]) -> None:
        """Read these keys again."""
        for key in keys:
            self._forget(key)
            held = self._namespace.get(key)
            if held is None:
                continue
            try:
                kept, strange = read_row(held)
            except ValueError as error:
                self._strange[key] = unreadable(held, "value", str(error))
                continue
            if strange:
                self._strange[key] = unreadable(held, "fields", ", ".join(strange))
            self._keep(kept)

    def _keep(self, kept: Kept) -> None:
        # A row under two keys is one row: the copy of somebody who meddled.
        if kept.row.id in self._by_id:
            return
        self._by_key[kept.key] = self._by_id[kept.row.id] = kept
        self._bytes += kept.size_bytes
        for ids in self._lists_of(kept.row):
            ids.insert(bisect_left(ids, kept.row.id), kept.row.id)

    def _forget(self, key: str) -> None:
        self._strange.pop(key, None)
        kept = self._by_key.pop(key, None)
        if kept is None:
            return
        del self._by_id[kept.row.id]
        self._bytes -= kept.size_bytes
        for ids in self._lists_of(kept.row):
            del ids[bisect_left(ids, kept.row.id)]

    def _lists_of(self, row: AuditRow) -> Sequence[list[str]]:
        return [self._ids, self._own] if row.node == self._me else [self._ids]
