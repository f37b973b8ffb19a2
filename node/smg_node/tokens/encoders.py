"""Encoders: text to token ids, by the reference library `tokenizers` or by `fastokens`. Safe to
share between threads.

Both release the interpreter while they work. `tokenizers.Tokenizer.encode` does not, and stops every
other thread of the process for as long as a prompt takes; it is never called.
"""

from array import array
from typing import Final, Protocol

import fastokens
import tokenizers

from smg_node.core.generation.request import TokenIds
from smg_node.tokens.library_errors import encode_failed

ID_BYTES: Final = array("I").itemsize
assert ID_BYTES == 4, "token ids are uint32 from end to end"


class Encoder(Protocol):
    """Turns text into ids."""

    name: str

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        """Return the ids of `text`; INVALID_REQUEST for a text it cannot encode."""
        ...


class ReferenceEncoder:
    """`tokenizers`: about 1 ms per 4 KB."""

    name = "tokenizers"

    def __init__(self, reference: tokenizers.Tokenizer) -> None:
        self._reference = reference

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        """Return the ids of `text`."""
        try:
            found = self._reference.encode_batch_fast([text], add_special_tokens=add_special_tokens)
        # A library's door: refusals have no common base, and a panic is not even an Exception.
        except BaseException as error:
            raise encode_failed(text, error) from error
        return array("I", found[0].ids)


class FastEncoder:
    """`fastokens`: about 1 ms per 50 KB never seen, 1 ms per 400 KB of familiar words."""

    name = "fastokens"

    def __init__(self, definition: bytes) -> None:
        self._fast = fastokens.Tokenizer.from_json_str(definition.decode())
        self._flat = self._fast.encode_batch_flat

    def encode(self, text: str, *, add_special_tokens: bool = False) -> TokenIds:
        """Return the ids of `text`; no Python object is made per id."""
        try:
            flat, _ = self._flat([text], add_special_tokens=add_special_tokens)
        # A library's door: refusals have no common base, and a panic is not even an Exception.
        except BaseException as error:
            raise encode_failed(text, error) from error
        return array("I", flat)

    def keep_segments(self, max_bytes: int) -> None:
        """Remember the ids of text between special tokens, in at most `max_bytes`."""
        self._fast.enable_segment_cache(max_bytes)

    def segment_figures(self) -> dict[str, int]:
        """Return `hits`, `misses`, `hit_bytes`, `bytes`, …; {} while nothing is remembered."""
        figures: dict[str, int] | None = self._fast.segment_cache_stats()
        return figures or {}
