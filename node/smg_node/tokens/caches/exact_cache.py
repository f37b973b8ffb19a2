"""Exact cache (L0): token ids of whole prompts and their encoded form for engines, evicted by 2Q.

The key is a 128-bit hash of the text under a seed of its own for each vocabulary it is encoded
with, and for whether special tokens go around it; these come from one that is drawn once per
process. No client knows it, so none can prepare two texts that share a key. Bounded by entries and
by bytes.

Most prompts never come again, and those must not fill what is meant for the others. So a prompt is
a *newcomer* at first, and newcomers share a sixteenth of the room, the oldest going first. One that
is asked for there, or comes again after its eviction, is *proven* and may use all of the rest; of
the proven, the least recently used goes first. An evicted one is remembered by 64 bits of its hash
alone, in a table that is written over. This is 2Q (Johnson and Shasha, VLDB 1994), with its list of
evicted keys as a table. The cost: a prompt that comes again only after many others is encoded
twice.

10,000 prompts of 2 KB that never come again took 50 MB; they take 3.

One cache may serve many models. It belongs to one thread, the event loop's.
"""

from array import array
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

from smg_node.core.generation.request import TokenIds
from smg_node.tokens.library_errors import not_whole

ID_BYTES: Final = 4
"""What an id takes: uint32 from end to end."""

ENTRY_BYTES: Final = 464
"""What an entry weighs at most besides its ids and bytes: key, both objects and table slot, on CPython 3.11."""

NEWCOMERS: Final = 16
"""One part in so many is for prompts that came once: enough for a retry, or for a crowd that asks the same at a time."""

LEFT_MAX: Final = 1 << 20
"""Most places in the table of who left: 8 MiB."""


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """A text as ids, and these as varints (`token_ids`); b"" while they have not been packed.

    Shared: its array must not be changed.
    """

    ids: TokenIds
    packed: bytes = b""


@dataclass(frozen=True, slots=True)
class ExactLimits:
    """Largest number and size of entries; zero of either keeps nothing."""

    entries: int
    bytes: int


Key: TypeAlias = int
"""128 bits: a text under the seed of its vocabulary."""


def key_of(text: str, seed: int) -> Key:
    """Return the key of `text` under a seed of `ExactCache.seed_for`; INVALID_REQUEST if it is not whole Unicode."""
    try:
        return xxh3_128_intdigest(text.encode(), seed)
    except UnicodeEncodeError as error:
        raise not_whole(error) from error


class _Part:
    """Some of the entries, in the order in which they would be evicted, and their size."""

    __slots__ = ("bytes", "entries")

    def __init__(self) -> None:
        self.entries: OrderedDict[Key, Encoded] = OrderedDict()
        self.bytes = 0

    def add(self, key: Key, encoded: Encoded, weight: int) -> None:
        self.entries[key] = encoded
        self.bytes += weight

    def take(self, key: Key) -> None:
        """Remove `key`, if it is here."""
        gone = self.entries.pop(key, None)
        if gone is not None:
            self.bytes -= _weight(gone)

    def take_next(self) -> Key:
        """Remove the next one to be evicted, and return its key."""
        key, gone = self.entries.popitem(last=False)
        self.bytes -= _weight(gone)
        return key


class ExactCache:
    """Whole texts, encoded. What it holds is shared, see `Encoded`."""

    def __init__(self, limits: ExactLimits, *, seed: int) -> None:
        self._limits = limits
        self._seed = seed & 0xFFFF_FFFF_FFFF_FFFF
        self._proven = _Part()
        self._newcomers = _Part()
        self._newcomer_entries: Final = limits.entries // NEWCOMERS
        self._newcomer_bytes: Final = limits.bytes // NEWCOMERS
        places = min(1 << (2 * limits.entries).bit_length(), LEFT_MAX)
        self._left = array("Q")
        """Made with the first entry: a node without requests has none."""
        self._left_mask: Final = places - 1
        self._room_bytes, self._room_entries = -1, 0
        """Room for nothing, so that the first entry is left to `put`."""
        self.evictions = 0
        """Entries that were given up for others, since the start."""

    def __len__(self) -> int:
        return len(self._proven.entries) + len(self._newcomers.entries)

    @property
    def bytes(self) -> int:
        """Present size of the entries."""
        return self._proven.bytes + self._newcomers.bytes

    def seed_for(self, *, digest: str, add_special_tokens: bool) -> int:
        """Return the hash seed for texts of this vocabulary, see `key_of`."""
        name = f"{digest} {add_special_tokens}"
        return xxh3_64_intdigest(name.encode(), self._seed)

    def key(self, text: str, *, digest: str, add_special_tokens: bool) -> Key:
        """Return the key of `text`; INVALID_REQUEST if it is not whole Unicode."""
        return key_of(text, self.seed_for(digest=digest, add_special_tokens=add_special_tokens))

    def get(self, key: Key) -> Encoded | None:
        """Return what is kept under `key`, and keep it longer."""
        proven = self._proven.entries
        found = proven.get(key)
        if found is not None:
            proven.move_to_end(key)
            return found
        found = self._newcomers.entries.get(key)
        if found is not None:
            self._newcomers.take(key)
            self._proven.add(key, found, _weight(found))
            self._measure()
        return found

    def admit(self, key: Key, encoded: Encoded) -> None:
        """Keep `encoded`, as `put` does; `get` has just found nothing under `key`.

        The step of a new prompt: it is one more newcomer, for which the oldest goes where there are
        as many as may be. Whatever is not that simple is left to `put`.
        """
        newcomers, left, mask = self._newcomers, self._left, self._left_mask
        entries = newcomers.entries
        held = newcomers.bytes + ENTRY_BYTES + len(encoded.ids) * ID_BYTES + len(encoded.packed)
        if held > self._room_bytes or left[key & mask] == key >> 64:
            self.put(key, encoded)
            return
        if len(entries) >= self._room_entries:
            if self._room_entries != self._newcomer_entries or not entries:
                self.put(key, encoded)
                return
            gone, was = entries.popitem(False)
            held -= ENTRY_BYTES + len(was.ids) * ID_BYTES + len(was.packed)
            left[gone & mask] = gone >> 64
            self.evictions += 1
        entries[key] = encoded
        newcomers.bytes = held

    def put(self, key: Key, encoded: Encoded) -> None:
        """Keep `encoded` under `key`, unless it alone is over the limit."""
        limits, proven, newcomers = self._limits, self._proven, self._newcomers
        weight = _weight(encoded)
        if weight > limits.bytes or not limits.entries:
            return
        if not self._left:
            self._left = array("Q", bytes(8 * (self._left_mask + 1)))
        if key in proven.entries or key in newcomers.entries:
            proven.take(key)
            newcomers.take(key)
            proven.add(key, encoded, weight)
        elif self._left[key & self._left_mask] == key >> 64:
            proven.add(key, encoded, weight)
        else:
            newcomers.add(key, encoded, weight)
            self._let_newcomers_go()
        while self.bytes > limits.bytes or len(self) > limits.entries:
            self._let_go(proven if proven.entries else newcomers)
        self._measure()

    def _let_newcomers_go(self) -> None:
        """Evict newcomers down to their share; the last one stays, however large, while it is the
        last.
        """
        newcomers, most, most_bytes = (
            self._newcomers,
            self._newcomer_entries,
            self._newcomer_bytes,
        )
        entries = newcomers.entries
        while len(entries) > 1 and (len(entries) > most or newcomers.bytes > most_bytes):
            self._let_go(newcomers)

    def _let_go(self, part: _Part) -> None:
        key = part.take_next()
        # The upper half of the hash: a key mistaken for another one by it is only kept too early.
        self._left[key & self._left_mask] = key >> 64
        self.evictions += 1

    def _measure(self) -> None:
        """Note how many newcomers there may be, and of what size, before any is evicted: see
        `admit`.
        """
        limits, proven = self._limits, self._proven
        self._room_bytes = min(self._newcomer_bytes, limits.bytes - proven.bytes)
        self._room_entries = min(self._newcomer_entries, limits.entries - len(proven.entries))


def _weight(encoded: Encoded) -> int:
    return ENTRY_BYTES + len(encoded.ids) * ID_BYTES + len(encoded.packed)
