"""Pages of words that a tool returns: of any size, one for each number, and the same each time. Pure."""

import random
from functools import cache
from typing import Final

_WORDS: Final = 40_000
_SEED: Final = 64
_STEP: Final = 0.6180339887498949
"""From the start of one page to the next, as a share of all words: the golden ratio spreads any number of starts."""
_SYLLABLES: Final = ("ba", "ko", "lin", "mer", "no", "pra", "quo", "ri", "sten", "ta", "ul", "ve")
_LINE: Final = 12


@cache
def _all() -> str:
    """Return the text that pages are cut from, about 260 kB."""
    chance = random.Random(_SEED)
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 3))) for _ in range(_WORDS)]
    lines = [" ".join(words[at : at + _LINE]) for at in range(0, _WORDS, _LINE)]
    return ".\n".join(lines)


def page(number: int, size: int) -> str:
    """Return a page of exactly `size` bytes, all of them ASCII; pages of two numbers begin at different words."""
    whole = _all()
    start = int(number * _STEP % 1.0 * len(whole))
    turned = whole[start:] + whole[:start]
    head = f"Page {number}.\n"
    text = head + turned * (max(0, size - len(head)) // len(turned) + 1)
    return text[: max(0, size)]
