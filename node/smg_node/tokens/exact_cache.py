"""L0: the ids of whole prompts that were encoded before, and what an engine is sent of them.

The key is a 128-bit hash of the text under a seed that is drawn once per process, with the text's
length, the vocabulary it was encoded with, and whether special tokens went around it. Nobody outside
knows the seed, so nobody can prepare two texts that share a key. Bounded by entries and by bytes; what
was not asked for longest goes first.

One cache may serve many models. It belongs to one thread, the event loop's.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import msgspec
from xxhash import xxh3_128_digest

from smg_node.core.request import TokenIds
from smg_node.tokens.foreign import whole_unicode

ID_BYTES: Final = 4
"""What an id takes: uint32 from end to end."""

ENTRY_BYTES: Final = 464
"""What an entry weighs besides its ids and bytes: key, both objects and table slot, as measured on CPython 3.11."""


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """A text as ids, and these as varints (`packing.ids`); b"" while nobody has packed them.

    Shared: whoever gets one must not change its array.
    """

    ids: TokenIds
    packed: bytes = b""


@dataclass(frozen=True, slots=True)
class ExactLimits:
    """How much is kept at most; zero of either keeps nothing."""

    entries: int
    bytes: int


Key = tuple[bytes, int, str, bool]


class ExactCache:
    """Whole texts, encoded. What it holds is shared, see `Encoded`."""

    def __init__(self, limits: ExactLimits, *, seed: int) -> None:
        self._limits = limits
        self._seed = seed & 0xFFFF_FFFF_FFFF_FFFF
        self._entries: OrderedDict[Key, Encoded] = OrderedDict()
        self.bytes = 0
        """What the entries weigh now."""
        self.evictions = 0
        """Entries that were given up for others, since the start."""

    def __len__(self) -> int:
        return len(self._entries)

    def key(self, text: str, *, digest: str, add_special_tokens: bool) -> Key:
        """Return the key of `text`; INVALID_REQUEST if it is not whole Unicode."""
        name = xxh3_128_digest(whole_unicode(text), seed=self._seed)
        return name, len(text), digest, add_special_tokens

    def get(self, key: Key) -> Encoded | None:
        """Return what is kept under `key`, and keep it longer."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Key, encoded: Encoded) -> None:
        """Keep `encoded` under `key`, unless it alone is over the limit."""
        limits, entries, weight = self._limits, self._entries, _weight(encoded)
        if weight > limits.bytes or not limits.entries:
            return
        if key in entries:
            weight -= _weight(entries.pop(key))
        entries[key] = encoded
        self.bytes = total = self.bytes + weight
        if total > limits.bytes or len(entries) > limits.entries:
            self._shrink()

    def _shrink(self) -> None:
        limits, entries = self._limits, self._entries
        while self.bytes > limits.bytes or len(entries) > limits.entries:
            _, gone = entries.popitem(last=False)
            self.bytes -= _weight(gone)
            self.evictions += 1


def _weight(encoded: Encoded) -> int:
    return ENTRY_BYTES + len(encoded.ids) * ID_BYTES + len(encoded.packed)
