"""LWW table: rows that all nodes write (last writer wins), kept for as long as they are used.

    key → (content, hlc, owner, ttl)        of two writes the larger (hlc, owner) counts

A write counts here at once and travels by rumor; a node that missed the rumor gets the row in an
exchange, a shard at a time. A row is over `ttl_ms` after it was last written or touched; a removal
is a row without content and is over at its time like any other. A row that replaces another never
ends before it would have: so no node that missed the newer one can bring the older one back.

A row from a clock far ahead is held, since digests must become equal, but does not count before its time:
until then the latest other row that was heard of its key does.

Guaranteed: replicas that heard the same rows, in whatever order and however often, hold the same
(see `table_shard`). Not guaranteed: that a row stays when a shard has more rows than it may: the
least recently written goes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Final, TypeAlias

from smg_mesh.config import BriefTable, StateOptions
from smg_mesh.crdt.hybrid_clock import HybridClock
from smg_mesh.crdt.tables.table_rows import (
    KEY_CHARS_MAX,
    MARK_BYTES,
    ROW_BYTES_MAX,
    TTL_MS_MAX,
    UPDATE_BYTES_MAX,
    Row,
    TableError,
    decode_row,
    decode_summary,
    decode_update,
    encode_row,
    encode_summary,
    encode_update,
)
from smg_mesh.crdt.tables.table_shard import Shard, floor_by_clock

__all__ = ["Row", "Table", "TableError"]

TOUCHES_PER_TTL: Final = 8
"""Using a row puts its end off at most that often: a touch costs a rumor."""

Heard: TypeAlias = Callable[[Sequence[str]], None]
"""Hears of keys whose rows changed or went, sorted, after the change. May read and must not write."""


class Table:
    """One table of one node. `wrote` hears of each write of this node, to spread it.

    Rows of a `brief` one go as soon as they are over: no digest is over them, so that clocks need not agree.
    """

    def __init__(
        self,
        name: str,
        me: str,
        *,
        shards: int,
        options: StateOptions,
        clock: HybridClock,
        wrote: Callable[[Row], None],
        brief: BriefTable | None = None,
    ) -> None:
        rows_max = options.table_rows_max if brief is None else brief.rows_max
        self.name: Final = name
        self._me: Final = me
        self._ttl_ms: Final = options.table_ttl_ms if brief is None else brief.ttl_ms
        self._brief: Final = brief is not None
        self._rows_max: Final = max(1, -(-rows_max // shards))
        self._clock: Final = clock
        self._wrote: Final = wrote
        self._watchers: list[Heard] = []
        self._shards = [Shard(rows_max=self._rows_max) for _ in range(shards)]
        self._ahead: dict[str, Row | None] = {}
        """Keys whose row does not count yet, and what counts instead."""
        self._counts: dict[str, int] = {"garbage": 0, "future": 0}

    def __len__(self) -> int:
        """How many rows are held; removals count until their time is over."""
        return sum(len(shard) for shard in self._shards)

    # ── Reading ──────────────────────────────────────────────────────────────

    def get(self, key: str, wall_ms: int) -> Row | None:
        """Return the row; None if there is none, it was removed or it is over."""
        row = self._of(key).get(key)
        if row is not None and key in self._ahead:
            row = self._counting(row, wall_ms)
        return row if row is not None and row.content and wall_ms <= row.ends_ms else None

    def items(self, prefix: str, wall_ms: int) -> Sequence[Row]:
        """Return the rows that count and whose keys begin so, sorted by key."""
        held = chain.from_iterable(shard.rows() for shard in self._shards)
        keys = sorted(row.key for row in held if row.key.startswith(prefix))
        found = [self.get(key, wall_ms) for key in keys]
        return [row for row in found if row is not None]

    def watch(self, heard: Heard) -> None:
        """Tell `heard` of all changes from now on, of this node and of others."""
        self._watchers.append(heard)

    def counts(self) -> Mapping[str, int]:
        """Return how much of what was heard was no row, or came from a clock too far ahead."""
        return self._counts

    # ── Writing ──────────────────────────────────────────────────────────────

    def put(self, key: str, content: bytes, wall_ms: int, *, ttl_ms: int | None = None) -> Row:
        """Write a row; TableError for one that no rumor could carry, or without content."""
        if not content:
            raise TableError("a row without content is a removal")
        return self._write(key, content, wall_ms, ttl_ms or self._ttl_ms)

    def touch(self, key: str, wall_ms: int) -> Row | None:
        """Put the end of a row off; None if that is not due yet, or there is no such row."""
        row = self.get(key, wall_ms)
        if row is None or wall_ms - row.written_ms < row.ttl_ms // TOUCHES_PER_TTL:
            return None
        return self._write(key, row.content, wall_ms, row.ttl_ms)

    def remove(self, key: str, wall_ms: int) -> Row | None:
        """Take a row away, on all nodes; None if there is none."""
        row = self.get(key, wall_ms)
        return None if row is None else self._write(key, b"", wall_ms, row.ttl_ms)

    def clear(self) -> None:
        """Forget everything here, which removes nothing elsewhere."""
        keys = [row.key for shard in self._shards for row in shard.rows()]
        self._shards = [Shard(rows_max=self._rows_max) for _ in self._shards]
        self._ahead.clear()
        self._tell(keys)

    def _write(self, key: str, content: bytes, wall_ms: int, ttl_ms: int) -> Row:
        shard = self._of(key)
        held = shard.get(key)
        if held is not None:
            # It may have come from a clock that was ahead, and its time is here only now.
            self._clock.witness(held.hlc, wall_ms)
            ttl_ms = max(ttl_ms, held.ends_ms - wall_ms)
        ttl_ms = min(ttl_ms, TTL_MS_MAX)
        row = Row(key, content, self._clock.tick(wall_ms), self._me, ttl_ms)
        fits = 0 < len(key) <= KEY_CHARS_MAX and len(encode_row(row)) <= ROW_BYTES_MAX
        if not fits or ttl_ms <= 0:
            raise TableError(f"{key[:64]!r}: no key, no time, or too long for a rumor")
        self._tell(self._take(shard, row, wall_ms))
        self._wrote(row)
        return row

    # ── Rumors ───────────────────────────────────────────────────────────────

    def pack(self, row: Row) -> bytes:
        """Return what a rumor says of a row, at most 448 bytes."""
        return encode_row(row)

    def hear(self, data: bytes, wall_ms: int) -> str | None:
        """Take a rumor; return its key if that changed something, None if not or if it makes no sense."""
        try:
            row = decode_row(data)
        except TableError:
            self._counts["garbage"] += 1
            return None
        changed = self._take(self._of(row.key), row, wall_ms)
        self._tell(changed)
        return row.key if changed else None

    # ── Rows from clocks that are ahead ──────────────────────────────────────

    def _take(self, shard: Shard, row: Row, wall_ms: int) -> list[str]:
        """Take a row; return the keys for which another row is held or counts."""
        held = shard.get(row.key)
        is_ahead = not self._clock.witness(row.hlc, wall_ms)
        hidden = held is not None and row.key in self._ahead and row.order < held.order
        if held is not None and hidden and self._clock.is_future(held.hlc, wall_ms):
            return [] if is_ahead else self._stand_in(row)
        changed = shard.take(row)
        if row.key in changed:
            before = self._ahead.pop(row.key, held)
            if is_ahead:
                self._counts["future"] += 1
                self._ahead[row.key] = before
        for key in changed[1:]:
            self._ahead.pop(key, None)
        return changed

    def _stand_in(self, row: Row) -> list[str]:
        """Let a row count until the time of the one that is held has come."""
        before = self._ahead[row.key]
        if before is not None and before.order >= row.order:
            return []
        self._ahead[row.key] = row
        return [row.key]

    def _counting(self, held: Row, wall_ms: int) -> Row | None:
        return self._ahead[held.key] if self._clock.is_future(held.hlc, wall_ms) else held

    def _arrived(self, wall_ms: int) -> list[str]:
        """Return the keys whose row's time has come."""
        found: list[str] = []
        for key in list(self._ahead):
            row = self._of(key).get(key)
            if row is None or not self._clock.is_future(row.hlc, wall_ms):
                del self._ahead[key]
                found.append(key)
        return found

    # ── Shards: what exchanges and the disk carry ────────────────────────────

    def shard_of(self, key: str) -> int:
        """Return in which shard a key is, the same on all nodes."""
        number = int.from_bytes(blake2b(key.encode(), digest_size=4).digest(), "big")
        return number % len(self._shards)

    def digest(self, shard: int) -> bytes:
        """Return 16 bytes over the rows of a shard; zeros if it is empty."""
        return self._shards[shard].digest

    def pieces(self) -> Sequence[tuple[int, bytes, int]]:
        """Return number, digest and size of each shard that is not empty."""
        return [
            (number, shard.digest, shard.size_bytes)
            for number, shard in enumerate(self._shards)
            if len(shard)
        ]

    def summary(self, shard: int) -> bytes:
        """Return which rows of a shard are here."""
        held = self._shards[shard]
        return encode_summary(held.floor_ms, b"".join(mark for mark, _, _ in held.marked()))

    def missing(self, shard: int, summary: bytes) -> bytes:
        """Return what a side that said `summary` lacks, b"" if nothing; TableError if it makes no sense."""
        theirs = decode_summary(summary)
        held = self._shards[shard]
        marks = theirs.marks
        known = {marks[at : at + MARK_BYTES] for at in range(0, len(marks), MARK_BYTES)}
        lacked: list[Row] = []
        shared = 0
        left_bytes = UPDATE_BYTES_MAX
        for mark, row, size_bytes in held.marked():
            if mark in known:
                shared += 1
            elif row.ends_ms >= theirs.floor_ms and (left_bytes := left_bytes - size_bytes) >= 0:
                lacked.append(row)
        their_floor_is_behind = held.floor_ms > theirs.floor_ms and shared < len(known)
        if not (lacked or their_floor_is_behind):
            return b""
        return encode_update(held.floor_ms, lacked)

    def merge(self, shard: int, data: bytes, wall_ms: int) -> bool:
        """Take in what a peer sent; return whether that changed something. TableError if it is no update."""
        try:
            update = decode_update(data)
            if any(self.shard_of(row.key) != shard for row in update.rows):
                raise TableError("a row of another shard")
        except TableError:
            self._counts["garbage"] += 1
            raise
        held = self._shards[shard]
        changed = list(held.raise_floor(min(update.floor_ms, wall_ms)))
        for row in update.rows:
            changed += self._take(held, row, wall_ms)
        self._tell(changed)
        return bool(changed)

    def dump(self, shard: int) -> bytes:
        """Return all of a shard; b"" if it is empty."""
        held = self._shards[shard]
        return encode_update(held.floor_ms, list(held.rows())) if len(held) else b""

    def load(self, shard: int, data: bytes, wall_ms: int) -> None:
        """Take in what an earlier life kept; TableError if it is damaged."""
        self.merge(shard, data, wall_ms)

    # ── Time ─────────────────────────────────────────────────────────────────

    def expire(self, wall_ms: int) -> Sequence[int]:
        """Drop what has long been over; return the shards that changed. Now and then is often enough."""
        floor_ms = wall_ms if self._brief else floor_by_clock(wall_ms)
        changed: list[int] = []
        dropped = self._arrived(wall_ms)
        for number, shard in enumerate(self._shards):
            keys = shard.raise_floor(floor_ms) if len(shard) else []
            if keys:
                changed.append(number)
                dropped += keys
        self._tell(dropped)
        return changed

    def _of(self, key: str) -> Shard:
        return self._shards[self.shard_of(key)]

    def _tell(self, keys: Collection[str]) -> None:
        if keys:
            told = sorted(dict.fromkeys(keys))
            for heard in self._watchers:
                heard(told)
