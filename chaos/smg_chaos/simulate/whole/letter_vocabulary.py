"""Letter vocabulary: a tokenizer with one token per letter, and one id that ends a text."""

import string
from collections.abc import Sequence
from typing import Final

from smg_node.core.generation.request import TokenIds, token_ids

IDS: Final = tuple(string.ascii_lowercase.encode())
_END: Final = 256


class _Spelling:
    """See `Detokenizer`: no letter needs another one."""

    alone: None = None

    def feed(self, token_id: int) -> str:
        """Return the letter."""
        return chr(token_id) if token_id < _END else ""

    def finish(self) -> str:
        """Return nothing: nothing is ever held."""
        return ""


class Letters:
    """See `Tokenizer`."""

    def __init__(self) -> None:
        self.digest = "0" * 64
        self.vocabulary = _END + 1
        self.special_ids = frozenset((_END,))
        self.bos: str | None = None
        self.eos: str | None = None
        self.special_tokens: dict[str, str] = {}
        self.eos_ids = frozenset((_END,))
        self.encoder = "letters"

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        """Return the ids of a text of ASCII."""
        return token_ids(list(text.encode("ascii")))

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of ids."""
        return "".join(chr(one) for one in ids if one < _END)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token."""
        return bytes((token_id,)) if token_id < _END else b""

    def token_text(self, token_id: int) -> str:
        """Return one token as a reader would see it."""
        return chr(token_id) if token_id < _END else ""

    def detokenizer(
        self,
        *,
        prompt_tail: Sequence[int],
        skip_special_tokens: bool,
        spaces_between_special_tokens: bool,
    ) -> _Spelling:
        """Return a new machine for one choice."""
        return _Spelling()
