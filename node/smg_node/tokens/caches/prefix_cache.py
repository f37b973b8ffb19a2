"""Prefix cache (L1): token ids of the pieces that prompts share, cut at special tokens.

Special tokens cut a text into pieces that are encoded independently of each other, so the ids of a
piece can be kept and put together again. Two prompts that begin alike share all the pieces of that
beginning, whatever comes after; a system prompt or an old turn is found even behind a changed one.

That a vocabulary really is cut like this is known from its added tokens, and then checked: the probe
texts, joined by special tokens, must have the ids of their pieces. Where anything stands against it
there is no L1, and `prefix_cache` says why.

Two forms. `fastokens` keeps pieces itself, in compiled code. For other encoders the table is here:
`encode` only reads it, so a thread may call it beside the event loop; what it learned waits in a queue
that is safe between threads, until `settle`, on the loop, takes it in. Bounded by bytes, oldest first.
"""

import re
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from xxhash import xxh3_128_digest

from smg_node.core.generation.request import TokenIds
from smg_node.tokens.encoders import FastEncoder
from smg_node.tokens.files.probe_texts import probe_texts
from smg_node.tokens.library_errors import whole_unicode
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer

PIECE_BYTES: Final = 320
"""What a piece weighs besides its ids: key, array and table slot, as measured on CPython 3.11."""
UNSETTLED_MAX: Final = 1024
"""Encodings by threads that wait for `settle`; older ones are forgotten, which costs only hits."""


class PrefixCache(Protocol):
    """Encodes text without special tokens around it, with the help of earlier texts."""

    learns: bool
    """Whether there is anything that `settle` would take in."""

    def encode(self, text: str) -> TokenIds:
        """Return the ids of `text`; safe in any thread."""
        ...

    def settle(self) -> None:
        """Take in what was learned; on the thread that owns the cache."""
        ...

    def figures(self) -> "PrefixFigures":
        """Return the counts since the start."""
        ...


@dataclass(slots=True)
class PrefixFigures:
    """Pieces found, the bytes of text in them, pieces not found; bytes kept now, pieces given up."""

    hits: int = 0
    hit_bytes: int = 0
    misses: int = 0
    bytes: int = 0
    evictions: int = 0


def prefix_cache(
    tokenizer: LoadedTokenizer, *, max_bytes: int, seed: int
) -> tuple[PrefixCache | None, str]:
    """Return an L1 for `tokenizer` of at most `max_bytes` and "", or None and why there is none."""
    if max_bytes <= 0:
        return None, "it is switched off"
    if isinstance(tokenizer.source, FastEncoder):
        return _Compiled(tokenizer.source, max_bytes), ""
    if not tokenizer.borders.tokens:
        return None, tokenizer.borders.why_not
    # Tried on a cache of its own: probes are no prompts, and will not come again.
    wrong = _wrong_joint(tokenizer, _Pieces(tokenizer, max_bytes, seed))
    if wrong is not None:
        return None, f"its ids change where pieces meet, as in {wrong[:40]!r}"
    return _Pieces(tokenizer, max_bytes, seed), ""


class _Compiled:
    """The segment cache of fastokens, whose results its documentation promises and our tests
    check.
    """

    learns = False

    def __init__(self, encoder: FastEncoder, max_bytes: int) -> None:
        encoder.keep_segments(max_bytes)
        self._encoder = encoder
        # Its own method, which puts no special tokens around a text unless asked to: there is nothing to be done in between.
        self.encode: Callable[[str], TokenIds] = encoder.encode

    def settle(self) -> None:
        pass

    def figures(self) -> PrefixFigures:
        figures = self._encoder.segment_figures()
        return PrefixFigures(
            hits=figures.get("hits", 0),
            hit_bytes=figures.get("hit_bytes", 0),
            misses=figures.get("misses", 0),
            bytes=figures.get("bytes", 0),
        )


_Key = tuple[bytes, int]


@dataclass(slots=True)
class _Learned:
    """Result of one encoding: pieces found, and pieces it had to encode."""

    used: list[_Key]
    fresh: dict[_Key, TokenIds]
    hit_bytes: int


class _Pieces:
    """A table of pieces in front of a slow encoder."""

    learns = True

    def __init__(self, tokenizer: LoadedTokenizer, max_bytes: int, seed: int) -> None:
        self._encode = tokenizer.encode
        self._max_bytes = max_bytes
        self._seed = seed & 0xFFFF_FFFF_FFFF_FFFF
        # Longest first: at one place the longest added token counts, as in the reference.
        tokens = sorted(tokenizer.borders.tokens, key=lambda token: (-len(token), token))
        self._cut = re.compile("(" + "|".join(map(re.escape, tokens)) + ")").split
        self._ids_of = {token: self._encode(token, add_special_tokens=False) for token in tokens}
        self._pieces: OrderedDict[_Key, TokenIds] = OrderedDict()
        self._unsettled: deque[_Learned] = deque(maxlen=UNSETTLED_MAX)
        self._figures = PrefixFigures()

    def encode(self, text: str) -> TokenIds:
        ids = array("I")
        learned = _Learned([], {}, 0)
        # The pieces and the special tokens between them, in turn.
        for place, piece in enumerate(self._cut(text)):
            if place % 2:
                ids.extend(self._ids_of[piece])
            elif piece:
                ids.extend(self._piece(piece, learned))
        self._unsettled.append(learned)
        return ids

    def settle(self) -> None:
        figures = self._figures
        while self._unsettled:
            learned = self._unsettled.popleft()
            figures.hits += len(learned.used)
            figures.hit_bytes += learned.hit_bytes
            figures.misses += len(learned.fresh)
            for key in learned.used:
                if key in self._pieces:
                    self._pieces.move_to_end(key)
            for key, ids in learned.fresh.items():
                self._keep(key, ids)

    def figures(self) -> PrefixFigures:
        return self._figures

    def _piece(self, piece: str, learned: _Learned) -> TokenIds:
        content = whole_unicode(piece)
        key = (xxh3_128_digest(content, seed=self._seed), len(content))
        found = self._pieces.get(key)
        if found is None:
            found = learned.fresh.get(key)
        if found is not None:
            learned.used.append(key)
            learned.hit_bytes += len(content)
            return found
        fresh = self._encode(piece, add_special_tokens=False)
        learned.fresh[key] = fresh
        return fresh

    def _keep(self, key: _Key, ids: TokenIds) -> None:
        weight = _weight(ids)
        if weight > self._max_bytes or key in self._pieces:
            return
        self._pieces[key] = ids
        self._figures.bytes += weight
        while self._figures.bytes > self._max_bytes:
            _, gone = self._pieces.popitem(last=False)
            self._figures.bytes -= _weight(gone)
            self._figures.evictions += 1


def _weight(ids: TokenIds) -> int:
    return PIECE_BYTES + len(ids) * ids.itemsize


def _wrong_joint(tokenizer: LoadedTokenizer, cache: _Pieces) -> str | None:
    """Return a text whose ids are not those of its pieces, None if there is none among the probes."""
    tokens = tokenizer.borders.tokens
    texts = probe_texts(tokens[:4])
    for place in range(0, len(texts) - 2, 3):
        token = tokens[place % len(tokens)]
        text = token.join(texts[place : place + 3]) + token
        if cache.encode(text) != tokenizer.encode(text, add_special_tokens=False):
            return text
        cache.settle()
    return None
