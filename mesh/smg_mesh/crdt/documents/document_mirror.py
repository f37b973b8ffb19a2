"""Document mirror: contents of a document in Python, so that nothing is
read from the document itself.

The mirror follows what the library reports of each array, splice for splice, and adds up as it goes: how
many entries there are, what they weigh, and a digest over them. The digest is the sum of 128 bits of
BLAKE2b of (root, name, bytes) of each entry; a sum and no exclusive or, so that an entry that lies there
twice counts.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from smg_mesh.crdt.documents.document_slot import Slot, prefix_of

DIGEST_BYTES: Final = 16
_MODULUS: Final = 1 << (8 * DIGEST_BYTES)


class Row:
    """One owner's array. None stands for what is no entry: it has a place and nothing else."""

    __slots__ = ("_named", "_prefix", "items", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.items: list[Slot | None] = []
        self._prefix = prefix_of(name)
        self._named: dict[str, list[Slot]] | None = None  # made when first asked for

    def splice(
        self, delta: Sequence[Mapping[str, Any]], added: list[Slot], dropped: list[Slot]
    ) -> int:
        """Follow what the library reports; return how many items came, entries or not."""
        items, at, inserted = self.items, 0, 0
        for step in delta:
            if "retain" in step:
                at += step["retain"]
            elif "delete" in step:
                end = at + step["delete"]
                gone = [slot for slot in items[at:end] if slot is not None]
                self._forget(gone)
                dropped += gone
                del items[at:end]
            else:
                fresh = [self.read(value) for value in step["insert"]]
                known = [slot for slot in fresh if slot is not None]
                self._remember(known)
                added += known
                items[at:at] = fresh
                at += len(fresh)
                inserted += len(fresh)
        return inserted

    def read(self, item: Any) -> Slot | None:
        """Return the slot of one item of an array, None if it is no entry."""
        if type(item) is not list or len(item) != 2:
            return None
        name, value = item
        if type(name) is not str or type(value) is not bytearray:
            return None
        return Slot(self.name, self._prefix, name, bytes(value))

    def named(self, name: str) -> Sequence[Slot]:
        """Return what lies under a name: nothing, one entry, or several by mistake."""
        if self._named is None:
            self._named = {}
            self._remember([slot for slot in self.items if slot is not None])
        return self._named.get(name, ())

    def places(self, slots: Collection[Slot]) -> list[int]:
        """Return where these lie, sorted."""
        return sorted(self.items.index(slot) for slot in slots)

    def replace(self, gone: Sequence[int], fresh: Mapping[str, bytes]) -> list[Slot]:
        """Take the places `gone` away and append entries; return those that came."""
        self._forget([slot for place in gone if (slot := self.items[place]) is not None])
        for place in reversed(gone):
            del self.items[place]
        added = [Slot(self.name, self._prefix, name, value) for name, value in fresh.items()]
        self._remember(added)
        self.items += added
        return added

    def _remember(self, slots: Sequence[Slot]) -> None:
        if self._named is not None:
            for slot in slots:
                self._named.setdefault(slot.name, []).append(slot)

    def _forget(self, slots: Sequence[Slot]) -> None:
        if self._named is not None:
            for slot in slots:
                named = self._named[slot.name]
                named.remove(slot)
                if not named:
                    del self._named[slot.name]


class Mirror:
    """All arrays of one document, and what they add up to."""

    def __init__(self) -> None:
        self.rows: Final[dict[str, Row]] = {}
        self.live = 0
        """How many entries there are."""
        self.weight = 0
        """What they count for, in bytes."""
        self.text_bytes = 0
        """What an encoded document of nothing else would have."""
        self._sum = 0

    @property
    def digest(self) -> bytes:
        """16 bytes over all entries, in whatever order they came."""
        return self._sum.to_bytes(DIGEST_BYTES)

    def slots(self) -> Sequence[Slot]:
        """Return all entries, by owner and then in the order of the document."""
        rows = (self.rows[name] for name in sorted(self.rows))
        return [slot for row in rows for slot in row.items if slot is not None]

    def count(self, added: Sequence[Slot], dropped: Sequence[Slot]) -> int:
        """Add these up; return how many bytes of text went."""
        total, weight, grown_bytes = self._sum, self.weight, 0
        for slot in added:
            total += slot.mark
            weight += slot.weight
            grown_bytes += slot.text_bytes
        gone_bytes = 0
        for slot in dropped:
            total -= slot.mark
            weight -= slot.weight
            gone_bytes += slot.text_bytes
        self._sum = total % _MODULUS
        self.weight = weight
        self.text_bytes += grown_bytes - gone_bytes
        self.live += len(added) - len(dropped)
        return gone_bytes
