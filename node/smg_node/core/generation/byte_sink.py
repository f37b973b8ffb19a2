"""What whoever hears a story says for who could tell a part of it in bytes."""

import sys
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol


class FrameTemplate(NamedTuple):
    """What stands before and behind a plain text in the open block of a choice, and how a text is spelled there.

    `text` spells it as a JSON string. Nothing else is shown of a delta, and none needs to be known to show the next.
    """

    head: bytes
    tail: bytes
    text: Callable[[str], bytes]


class TokenAllowance(NamedTuple):
    """How far somebody may go without being looked at: `tokens` an answer may have, `at_once` may come in one wake-up."""

    tokens: int
    at_once: int


BOUNDLESS: Final = TokenAllowance(sys.maxsize, sys.maxsize)


class ByteSink(Protocol):
    """Whoever hears, and can take bytes."""

    def around(self) -> FrameTemplate | None:
        """Return what is said around a text of the first choice now; None where a delta shows more, or something else."""
        ...

    def put(self, frames: bytes) -> bool:
        """Take frames, within the wake-up that brought them; true if it is to be waited for before more is asked for."""
        ...
