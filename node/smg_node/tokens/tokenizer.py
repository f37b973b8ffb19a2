"""Tokenizer: interface of encoding, decoding and incremental detokenizing, independent of the
library.
"""

from collections.abc import Sequence
from typing import Protocol

from smg_node.core.generation.request import TokenIds


class Detokenizer(Protocol):
    """Turns one choice's ids into text as they come; never emits half a character.

    `feed` returns the text that became certain with this id, possibly empty. `finish` returns what
    was held, with U+FFFD for bytes that never became a character. For every way of cutting a
    sequence of ids the joined text is the same, and equals the reference decoder's.
    """

    def feed(self, token_id: int) -> str:
        """Take the next id; return the text that is certain now."""
        ...

    @property
    def alone(self) -> Sequence[str | None] | None:
        """Text of each id if it comes next, whatever stands around it; None for one that needs
        `feed`.

        No such table where something is held, or there never is one. It stays right until `feed` is called.
        """
        ...

    def finish(self) -> str:
        """Return what was still held; nothing may be fed afterwards."""
        ...


class Tokenizer(Protocol):
    """A vocabulary with its rules. Safe to share between threads; holds no request's state."""

    digest: str
    """Hex SHA-256 of the bundle it was made from."""
    vocabulary: int
    """One more than the largest id, added tokens included."""
    special_ids: frozenset[int]
    bos: str | None
    eos: str | None
    special_tokens: dict[str, str]
    """Role to text (`bos_token`, `eos_token`, `pad_token`, `unk_token`, named extras), for templates."""
    eos_ids: frozenset[int]
    """End-of-text ids of tokenizer, config and generation config together."""
    encoder: str
    """Which encoder is in use (`fastokens`, `tokenizers`, `tiktoken`), for logs and metrics."""

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        """Return the ids of `text`; blocks for about 1 ms per 10 KB, so long texts belong in a thread."""
        ...

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids` by the reference decoder. Unknown ids decode to nothing."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """Return the exact bytes of one token, as far as the vocabulary defines them; empty if unknown."""
        ...

    def token_text(self, token_id: int) -> str:
        """Return one token as a reader would see it; broken UTF-8 becomes U+FFFD."""
        ...

    def detokenizer(
        self,
        *,
        prompt_tail: Sequence[int],
        skip_special_tokens: bool,
        spaces_between_special_tokens: bool,
    ) -> Detokenizer:
        """Return a new machine for one choice. `prompt_tail` is up to the last 8 ids of the prompt,

        which SentencePiece-style decoders need to know whether a leading space belongs there.
        """
        ...
