"""Token counts of a stand-in: four bytes of a prompt are a token, and so is each piece of an answer."""

import re
from functools import lru_cache
from typing import Final

TURN_TOKENS: Final = 3
"""Tokens that each piece of a prompt costs beyond its text."""
IMAGE_TOKENS: Final = 256
_BYTES: Final = 4
_PIECE: Final = re.compile(r"\s*\S+(?:\s+$)?|\s+")
_SLICE: Final = 8


def text_tokens(text: bytes) -> int:
    """Return the tokens of one piece of a prompt."""
    return TURN_TOKENS + (len(text) + _BYTES - 1) // _BYTES


@lru_cache(256)
def pieces_of(text: str) -> tuple[str, ...]:
    """Return the pieces of an answer's text, each a token: words with the space before them."""
    return tuple(_PIECE.findall(text))


def slices_of(text: str) -> tuple[str, ...]:
    """Return the pieces of a call's arguments, each a token."""
    return tuple(text[at : at + _SLICE] for at in range(0, len(text), _SLICE))
