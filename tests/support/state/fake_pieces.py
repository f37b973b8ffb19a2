"""Replicated state as exchanges see it, small enough to look through: keys with versions, the newest counts."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec

from smg_mesh.sync.exchange.piece_interface import REGISTERS, PieceError, PieceState

Entry = tuple[int, bytes]
"""Version and value."""

_summaries = msgspec.msgpack.Decoder(dict[str, int])
_updates = msgspec.msgpack.Decoder(dict[str, tuple[int, bytes]])


class FakePieces:
    """Fulfils `smg_mesh.sync.exchange.piece_interface.Pieces`; `held` is changed by tests at will, through `put`.

    Pieces whose names are in `unknown` cannot be here; updates of those in `poisoned` cannot be taken.
    """

    def __init__(self, *names: str, prefix: str = "k", keys: int = 1, size: int = 10) -> None:
        self.stale = False
        self.history = b""
        self.held: dict[str, dict[str, Entry]] = {}
        self.epochs: dict[str, int] = {}
        self.unknown: frozenset[str] = frozenset()
        self.poisoned: frozenset[str] = frozenset()
        self.merged: list[tuple[str, str, int]] = []
        self.built: list[str] = []
        self.forgotten = 0
        self._sums: dict[str, tuple[bytes, int]] = {}
        for name in names:
            for number in range(keys):
                self.put(name, f"{prefix}{number}", b"v" * size)

    # ── For tests ────────────────────────────────────────────────────────────

    def put(self, name: str, key: str, value: bytes, *, version: int = 1) -> None:
        self.held.setdefault(name, {})[key] = (version, value)
        self._sums.pop(name, None)

    def move(self, name: str, epoch: int) -> None:
        """Begin a piece anew, with what is in it."""
        self.epochs[name] = epoch

    def documents(self) -> Mapping[str, Mapping[str, Entry]]:
        return {name: held for name, held in self.held.items() if held and name != REGISTERS}

    @property
    def merged_bytes(self) -> int:
        return sum(size for _, _, size in self.merged)

    # ── Pieces ───────────────────────────────────────────────────────────────

    def digest(self) -> bytes:
        folded = 0
        for piece in self.holdings(full=False):
            said = f"{piece.name} {piece.epoch} ".encode() + piece.digest
            folded ^= int.from_bytes(blake2b(said, digest_size=8).digest(), "big")
        return folded.to_bytes(8, "big")

    def forget_stale(self) -> None:
        self.forgotten += 1
        self.stale = False
        self.held.clear()
        self._sums.clear()

    def holdings(self, *, full: bool) -> Sequence[PieceState]:
        return [
            PieceState(name, self.epoch(name), *self._sum(name))
            for name in sorted(self.held)
            if self.held[name] and (full or name != REGISTERS)
        ]

    def summary(self, name: str, epoch: int) -> bytes:
        if name in self.unknown:
            raise PieceError("name", f"{name} is no piece of ours")
        if name == REGISTERS:
            return b""
        assert epoch >= self.epoch(name), "nobody asks about the past"
        self.epochs[name] = epoch
        held = self.held.get(name, {})
        return msgspec.msgpack.encode({key: version for key, (version, _) in held.items()})

    def missing(self, name: str, epoch: int, summary: bytes) -> bytes:
        assert epoch == self.epoch(name), "both talk about one epoch"
        self.built.append(name)
        held = self.held.get(name, {})
        if name == REGISTERS:
            return msgspec.msgpack.encode(held) if held else b""
        try:
            said = _summaries.decode(summary)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise PieceError("summary", "this sums up nothing") from error
        lacking = {key: entry for key, entry in held.items() if entry[0] > said.get(key, 0)}
        return msgspec.msgpack.encode(lacking) if lacking else b""

    def merge(self, name: str, epoch: int, update: bytes, *, peer: str) -> None:
        assert epoch == self.epoch(name), "both talk about one epoch"
        if name in self.poisoned:
            raise PieceError("update", "this cannot be taken")
        try:
            entries = _updates.decode(update)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise PieceError("update", "this is no update") from error
        held = self.held.setdefault(name, {})
        for key, entry in entries.items():
            held[key] = max(held.get(key, entry), entry)
        self._sums.pop(name, None)
        self.merged.append((peer, name, len(update)))

    def epoch(self, name: str) -> int:
        return self.epochs.get(name, 0)

    def _sum(self, name: str) -> tuple[bytes, int]:
        found = self._sums.get(name)
        if found is None:
            written = msgspec.msgpack.encode(sorted(self.held[name].items()))
            found = self._sums[name] = (blake2b(written, digest_size=16).digest(), len(written))
        return found


def union(*many: FakePieces) -> dict[str, dict[str, Entry]]:
    """Return what all of them hold together, the registers left out."""
    both: dict[str, dict[str, Entry]] = {}
    for pieces in many:
        for name, held in pieces.documents().items():
            for key, entry in held.items():
                place = both.setdefault(name, {})
                place[key] = max(place.get(key, entry), entry)
    return both


def names(count: int, kind: str = "settings") -> list[str]:
    """Return the names of so many pieces."""
    return [f"{kind}/{number}" for number in range(count)]


def shard(records: Iterable[tuple[str, bytes]], shards: int, kind: str = "workers") -> FakePieces:
    """Return records spread over documents."""
    pieces = FakePieces()
    for number, (key, value) in enumerate(records):
        pieces.put(f"{kind}/{number % shards}", key, value)
    return pieces
