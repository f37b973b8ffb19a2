"""Cached encoder: the encoder of one model behind its caches: whole prompts (L0), then shared
pieces (L1).

The owner is the event loop, and only it changes anything: `lookup` and `store` are its side, and
`encode_missing` is the part a worker thread may do in between, for texts that `long` says would hold
the loop up. `encode` is all of it at once, for the others.
"""

from typing import Final

from smg_node.native.token_ids import COMPILED, Ids, pack_ids
from smg_node.tokens.caches.exact_cache import Encoded, ExactCache, Key, key_of
from smg_node.tokens.caches.prefix_cache import PrefixCache, PrefixFigures
from smg_node.tokens.tokenizer import Tokenizer

SLOWNESS: Final = {"fastokens": 1, "tiktoken": 4, "tokenizers": 24}
"""How much longer than the fast encoder each takes for the same text, rounded down."""
_PACKED_AT_ONCE: Final = 32_768
"""Ids; a thread that packs more of them in one call keeps the loop waiting for longer than 2 ms."""
_PACKED_ON_LOOP_MAX: Final = 16_384
"""Ids that plain Python packs in about 5 ms; of more of them protobuf does it, each time."""


def _packed(ids: Ids) -> bytes:
    """Return `pack_ids` of ids, however many, in steps between which other threads run."""
    steps = range(0, len(ids), _PACKED_AT_ONCE)
    return b"".join([pack_ids(ids[at : at + _PACKED_AT_ONCE]) for at in steps])


class CachedEncoder:
    """Text to ids for one model.

    `long_above_bytes` is the size of text that the fast encoder encodes in 1 ms at worst, which no
    stream notices: a hop to a thread costs 0.1 ms more, and a thread waits for the interpreter like
    all others. For slower encoders the border is lower by as much. What comes out may be shared
    with the cache and must not be changed.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        l0: ExactCache | None = None,
        l1: PrefixCache | None = None,
        *,
        long_above_bytes: int = 49_152,
    ) -> None:
        self._tokenizer = tokenizer
        self._l0 = l0
        if l0 is not None:
            self._seed = l0.seed_for(digest=tokenizer.digest, add_special_tokens=False)
            self._special_seed = l0.seed_for(digest=tokenizer.digest, add_special_tokens=True)
        self._fast_above: Final = long_above_bytes
        self.reconsider(l1)
        self.l0_hits = 0
        """Prompts found whole."""
        self.l0_misses = 0
        """Prompts that had to be encoded."""

    def reconsider(self, l1: PrefixCache | None) -> None:
        """Use the encoder that the tokenizer has now, with this L1 in front of it. On the loop."""
        self._l1 = l1
        self._learning = l1 if l1 is not None and l1.learns else None
        self._long_above = self._fast_above // SLOWNESS.get(self._tokenizer.encoder, 1)
        # Up to four bytes a character; they are counted only where that could make the difference.
        self.surely_short = self._long_above // 4
        """Characters up to which no text is `long`, for those who ask often."""
        self.round_characters = self._long_above * 2 // 3
        """Characters of texts that are longer than that which are encoded in one round of the loop."""

    def encode(self, text: str, *, add_special_tokens: bool) -> Encoded:
        """Return `text` encoded, from a cache or here and now.

        INVALID_REQUEST for a text that is not whole Unicode or that the vocabulary cannot express.
        """
        l0 = self._l0
        if l0 is None:
            encoded = self.encode_missing(text, add_special_tokens=add_special_tokens)
        else:
            key = key_of(text, self._special_seed if add_special_tokens else self._seed)
            found = l0.get(key)
            if found is not None:
                return self._found(l0, key, found)
            encoded = self.encode_missing(text, add_special_tokens=add_special_tokens)
            l0.admit(key, encoded)
        self.l0_misses += 1
        if self._learning is not None:
            self._learning.settle()
        return encoded

    def key(self, text: str, *, add_special_tokens: bool) -> Key | None:
        """Return the cache key of `text`; None where nothing is kept."""
        if self._l0 is None:
            return None
        return key_of(text, self._special_seed if add_special_tokens else self._seed)

    def lookup(self, key: Key | None) -> Encoded | None:
        """Return the text of that key if it was encoded before. On the loop."""
        l0 = self._l0
        if l0 is None or key is None:
            return None
        found = l0.get(key)
        return None if found is None else self._found(l0, key, found)

    def _found(self, l0: ExactCache, key: Key, found: Encoded) -> Encoded:
        self.l0_hits += 1
        if not found.packed and 0 < len(found.ids) <= _PACKED_ON_LOOP_MAX:
            # Without a compiler packing takes three times what protobuf does: only for what comes again.
            found = Encoded(found.ids, pack_ids(found.ids))
            l0.put(key, found)
        return found

    def encode_missing(self, text: str, *, add_special_tokens: bool) -> Encoded:
        """Return `text`, encoded; changes nothing, in any thread."""
        l1 = self._l1
        if l1 is not None and not add_special_tokens:
            ids = l1.encode(text)
        else:
            ids = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return Encoded(ids, _packed(ids) if COMPILED else b"")

    def store(self, key: Key | None, encoded: Encoded) -> None:
        """Keep what `encode_missing` returned for the text of that key. On the loop."""
        self.l0_misses += 1
        if self._learning is not None:
            self._learning.settle()
        if self._l0 is not None and key is not None:
            self._l0.put(key, encoded)

    def long(self, text: str) -> bool:
        """Whether encoding `text` would take longer than handing it to a thread."""
        size = len(text)
        if size <= self.surely_short:
            return False
        if size <= self._long_above and not text.isascii():
            size = len(text.encode("utf-8", "replace"))
        return size > self._long_above

    @property
    def l1_hits(self) -> int:
        """Pieces of prompts found in L1."""
        return self._l1_figures().hits

    @property
    def l1_misses(self) -> int:
        """Pieces of prompts that L1 did not have."""
        return self._l1_figures().misses

    @property
    def l1_hit_bytes(self) -> int:
        """Bytes of text in the pieces found."""
        return self._l1_figures().hit_bytes

    @property
    def l1_evictions(self) -> int:
        """Pieces that L1 gave up for others."""
        return self._l1_figures().evictions

    @property
    def l1_bytes(self) -> int:
        """Present size of L1."""
        return self._l1_figures().bytes

    @property
    def l0_evictions(self) -> int:
        """Prompts that L0 gave up for others; of all models that share it."""
        return self._l0.evictions if self._l0 is not None else 0

    @property
    def l0_bytes(self) -> int:
        """Present size of L0; with all models that share it."""
        return self._l0.bytes if self._l0 is not None else 0

    def _l1_figures(self) -> PrefixFigures:
        return self._l1.figures() if self._l1 is not None else PrefixFigures()
