"""Document namespace: spreads keys over documents; indexes what counts,
and tells watchers of changes.

    key ──BLAKE2b──▶ document settings/17 ──▶ its registers, one root per owner ──▶ the winner

Documents come into being with their first key. Winners are indexed as they change, so that reading costs
a dictionary and comparing two nodes costs eight bytes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents.owned_registers import OwnedRegisters, Written
from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.hybrid_clock import HybridClock, hlc_ms
from smg_mesh.crdt.namespace import KEY_BYTES_MAX, VALUE_BYTES_MAX, Heard, StateError
from smg_mesh.swim.effects import Rng

Wrote = Callable[[str, Written], None]
"""Hears of an own write: the document's name and what is to be spread of it."""


class DocumentNamespace:
    """All keys of one kind; a `crdt.namespace.Namespace`."""

    def __init__(
        self,
        name: str,
        me: str,
        *,
        documents: int,
        options: StateOptions,
        clock: HybridClock,
        rng: Rng,
        wall_ms: Callable[[], int],
        wrote: Wrote,
        full: Callable[[str], None],
    ) -> None:
        assert documents > 0
        self._name: Final = name
        self._me: Final = me
        self._count: Final = documents
        self._by_head: Final = name in options.documents_by_head
        self._options: Final = options
        self._clock: Final = clock
        self._rng: Final = rng
        self._wall_ms: Final = wall_ms
        self._wrote: Final = wrote
        self._full: Final = full
        self._boot = 0
        self._documents: dict[int, OwnedRegisters] = {}
        self._winners: dict[str, Held] = {}
        """By key, removals too."""
        self._live = 0
        self._pieces: dict[str, int] = {}
        self._digest = 0
        self._heard: list[Heard] = []
        self._telling = False

    # ── Reading ──────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        """Name of this kind of keys."""
        return self._name

    def get(self, key: str) -> Held | None:
        """Return the winner, None if there is none or it is a removal."""
        winner = self._winners.get(key)
        return None if winner is None or winner.value is None else winner

    def latest(self, key: str) -> Held | None:
        """Return the winner even if it is a removal."""
        return self._winners.get(key)

    def items(self, prefix: str = "") -> Sequence[Held]:
        """Return the live winners whose keys begin so, sorted by key."""
        found = [
            held
            for key, held in self._winners.items()
            if held.value is not None and key.startswith(prefix)
        ]
        return sorted(found, key=lambda held: held.key)

    def conflicts(self, key: str) -> Sequence[Held]:
        """Return what is concurrent with the winner, or from the future; newest first."""
        document = self._documents.get(self.index_of(key))
        return () if document is None else document.conflicts(key, self._wall_ms())

    def digest(self) -> bytes:
        """Return 8 bytes over live keys and winning values."""
        return self._digest.to_bytes(8, "big")

    def __len__(self) -> int:
        return self._live

    # ── Writing ──────────────────────────────────────────────────────────────

    def put(self, key: str, value: bytes, *, seen: int | None = None) -> Held:
        """Write, and return what counts now; StateError."""
        if len(value) > VALUE_BYTES_MAX:
            over = f"{key[:64]} has {len(value)} bytes, at most {VALUE_BYTES_MAX} are allowed"
            raise StateError("too_large", over)
        return self._write(key, value, seen)

    def remove(self, key: str, *, seen: int | None = None) -> Held:
        """Write a removal, also of a key that is not there."""
        return self._write(key, None, seen)

    def retire(self, key: str) -> None:
        """Take this node's own entry away without a trace."""
        self._may_write()
        document = self._documents.get(self.index_of(key))
        written = None if document is None else document.retire(key)
        if document is not None and written is not None:
            self._wrote(document.name, written)
            self.changed(document, [key])

    def _write(self, key: str, value: bytes | None, seen: int | None) -> Held:
        self._may_write()
        if not 0 < len(key.encode()) <= KEY_BYTES_MAX:
            raise StateError("too_large", f"a key has 1 to {KEY_BYTES_MAX} bytes")
        wall_ms = self._wall_ms()
        document = self.document(self.index_of(key))
        before = document.winner(key, wall_ms)
        if seen is not None and seen != _version(before):
            raise StateError("stale", f"{key[:64]} was changed meanwhile", current=before)
        if before is not None and before.owner == self._me:
            # An earlier life may have written it, by a clock that was ahead of this one.
            self._clock.recall(before.entry.hlc, wall_ms)
        elif before is not None:
            # It may have come from the future until just now.
            self._clock.witness(before.entry.hlc, wall_ms)
        hlc = self._clock.tick(wall_ms)
        before_hlc = 0 if before is None else before.entry.hlc
        try:
            written = document.write(key, value, hlc=hlc, seen=before_hlc, wall_ms=wall_ms)
        except StateError as error:
            if error.reason == "full":
                self._full(document.name)
            raise
        self._wrote(document.name, written)
        self.changed(document, [key])
        held = document.winner(key, wall_ms)
        assert held is not None
        return held

    def _may_write(self) -> None:
        assert not self._telling, "who hears of a change may not write"

    # ── Its documents ────────────────────────────────────────────────────────

    def begin(self, boot: int) -> None:
        """Write as that life from now on."""
        self._boot = boot
        for document in self._documents.values():
            document.boot = boot

    def index_of(self, key: str) -> int:
        """Return in which document a key lives: the same on every node."""
        head = key.partition("/")[0] if self._by_head else key
        digest = blake2b(head.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self._count

    def document(self, index: int) -> OwnedRegisters:
        """Return that document, a new one if nothing was ever in it."""
        found = self._documents.get(index)
        if found is None:
            found = self._documents[index] = OwnedRegisters(
                f"{self._name}/{index}", self._me, self._boot, options=self._options, rng=self._rng
            )
        return found

    def held(self, index: int) -> OwnedRegisters | None:
        """Return that document if there is one."""
        return self._documents.get(index)

    def has(self, index: int) -> bool:
        """Return whether there can be such a document."""
        return 0 <= index < self._count

    def documents(self) -> Iterator[tuple[int, OwnedRegisters]]:
        """Return all documents there are, in order."""
        for index in sorted(self._documents):
            yield index, self._documents[index]

    def changed(self, document: OwnedRegisters, keys: Iterable[str]) -> None:
        """Look at these keys again, and tell watchers if others count now."""
        wall_ms = self._wall_ms()
        changed = [key for key in sorted(set(keys)) if self._index(document, key, wall_ms)]
        if not changed or not self._heard:
            return
        self._telling = True
        try:
            for heard in self._heard:
                heard(changed)
        finally:
            self._telling = False

    def forget(self, *, older_than_ms: int) -> None:
        """Forget everything but this node's own entries that are not older than that."""
        documents, self._documents = self._documents, {}
        wall_ms = self._wall_ms()
        for index in sorted(documents):
            keys = documents[index].keys()
            for key in keys:
                held = self._winners.get(key)
                if held is None or held.owner != self._me:
                    continue
                if hlc_ms(held.entry.hlc) >= older_than_ms:
                    fresh = self.document(index)
                    entry = held.entry
                    written = fresh.write(
                        key, entry.value, hlc=entry.hlc, seen=entry.seen, wall_ms=wall_ms
                    )
                    self._wrote(fresh.name, written)
            self.changed(self.document(index), keys)

    def date_again(self) -> None:
        """Write this node's own entries again that a wrong clock has dated far ahead: as of now."""
        wall_ms = self._wall_ms()
        ahead_ms = wall_ms + self._options.future_ms
        for key in sorted(self._winners):
            held = self._winners[key]
            if held.owner == self._me and hlc_ms(held.entry.hlc) > ahead_ms:
                document = self.document(self.index_of(key))
                hlc = self._clock.tick(wall_ms)
                seen = min(held.entry.seen, hlc - 1)
                value = held.entry.value
                written = document.write(key, value, hlc=hlc, seen=seen, wall_ms=wall_ms)
                self._wrote(document.name, written)
                self.changed(document, [key])

    def watch(self, heard: Heard) -> None:
        """Tell `heard` of every change from now on."""
        self._heard.append(heard)

    def _index(self, document: OwnedRegisters, key: str, wall_ms: int) -> bool:
        winner = document.winner(key, wall_ms)
        before = self._winners.get(key)
        if winner is not None and winner.owner != self._me:
            self._clock.witness(winner.entry.hlc, wall_ms)
        if _same(winner, before):
            return False
        was, now = _value(before), _value(winner)
        self._live += (now is not None) - (was is not None)
        self._digest ^= self._pieces.pop(key, 0)
        if now is not None:
            self._pieces[key] = piece = _piece(key, now)
            self._digest ^= piece
        if winner is None:
            del self._winners[key]
        else:
            self._winners[key] = winner
        return True


def _value(held: Held | None) -> bytes | None:
    return None if held is None else held.value


def _same(one: Held | None, other: Held | None) -> bool:
    """Whether the same write counts; whose root holds it may change when a node adopts a dead one's."""
    if one is None or other is None:
        return one is other
    return one.entry == other.entry


def _version(held: Held | None) -> int:
    """Return what a writer who knows this says it has seen: 0 where nothing is to be seen."""
    return 0 if held is None or held.value is None else held.version


def _piece(key: str, value: bytes) -> int:
    content = len(key.encode("utf-8", "surrogatepass")).to_bytes(2, "big")
    content += key.encode("utf-8", "surrogatepass") + value
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "big")
