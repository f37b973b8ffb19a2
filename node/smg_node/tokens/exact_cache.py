"""L0: the ids of whole prompts that were encoded before.

The key is a 128-bit hash of the text under a seed that is drawn once per process, with the text's
length, the vocabulary it was encoded with, and whether special tokens went around it. Nobody outside
knows the seed, so nobody can prepare two texts that share a key. Bounded by entries and by bytes; what
was not asked for longest goes first.

One cache may serve many models. It belongs to one thread, the event loop's.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from xxhash import xxh3_128_digest

from smg_node.core.request import TokenIds
from smg_node.tokens.foreign import whole_unicode

ENTRY_BYTES: Final = 400
"""What an entry weighs besides its ids: key, array and table slot, as measured on CPython 3.11."""


@dataclass(frozen=True, slots=True)
class ExactLimits:
    """How much is kept at most; zero of either keeps nothing."""

    entries: int
    bytes: int


Key = tuple[bytes, int, str, bool]


class ExactCache:
    """Whole texts to ids. The arrays are shared: whoever gets one must not change it."""

    def __init__(self, limits: ExactLimits, *, seed: int) -> None:
        self._limits = limits
        self._seed = seed & 0xFFFF_FFFF_FFFF_FFFF
        self._entries: OrderedDict[Key, TokenIds] = OrderedDict()
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

    def get(self, key: Key) -> "TokenIds | None":
        """Return the ids kept under `key`, and keep them longer."""
        ids = self._entries.get(key)
        if ids is not None:
            self._entries.move_to_end(key)
        return ids

    def put(self, key: Key, ids: TokenIds) -> None:
        """Keep `ids` under `key`, unless they alone are over the limit."""
        weight = _weight(ids)
        if weight > self._limits.bytes or not self._limits.entries:
            return
        old = self._entries.pop(key, None)
        if old is not None:
            self.bytes -= _weight(old)
        self._entries[key] = ids
        self.bytes += weight
        while self.bytes > self._limits.bytes or len(self._entries) > self._limits.entries:
            _, gone = self._entries.popitem(last=False)
            self.bytes -= _weight(gone)
            self.evictions += 1


def _weight(ids: TokenIds) -> int:
    return ENTRY_BYTES + len(ids) * ids.itemsize
