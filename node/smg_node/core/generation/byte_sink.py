"""Byte sink: event listener that also takes finished frames, where only plain text differs between
them.
"""

import sys
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol


class FrameTemplate(NamedTuple):
    """Bytes before and behind a plain text in a choice's open block, and the encoding of the text.

    `text` spells it as a JSON string. Nothing else is shown of a delta, and none needs to be known to show the next.
    """

    head: bytes
    tail: bytes
    text: Callable[[str], bytes]


class TokenAllowance(NamedTuple):
    """Tokens that may pass unchecked: `tokens` an answer may have, `at_once` may come in one
    wake-up.
    """

    tokens: int
    at_once: int


BOUNDLESS: Final = TokenAllowance(sys.maxsize, sys.maxsize)


class ByteSink(Protocol):
    """A listener of events that can take bytes."""

    def around(self) -> FrameTemplate | None:
        """Return the frame template of the first choice now; None where a delta shows more, or
        something else.
        """
        ...

    def put(self, frames: bytes) -> bool:
        """Take frames, within the wake-up that brought them; true if the caller is to wait before
        asking for more.
        """
        ...
