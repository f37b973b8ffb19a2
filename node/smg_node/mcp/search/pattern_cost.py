"""Pattern cost: upper bound of the automaton that a search pattern asks for, so that none takes long to compile. Pure.

The engine itself follows a pattern in time that grows with the text only, and refuses an automaton above 10 MiB, but it
takes a tenth of a second to find that out, with Python's lock held. So counted repeats are multiplied out before. A
class of Unicode (`\\w`) takes some 400 states where a letter takes one: 20 of them compile in 7 ms.
"""

import re
from typing import Final

COST_MAX: Final = 8_000
_UNICODE_CLASS: Final = 400
_SMALL_CLASS: Final = 12
_UNICODE_ESCAPES: Final = frozenset("wWdDsSpPbB")
_DEPTH_MAX: Final = 50
_REPEAT: Final = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_DIGITS_MAX: Final = 4


def pattern_cost(pattern: str) -> int:
    """Return about how many states a pattern takes, `COST_MAX + 1` for any number above that.

    What is no pattern has some cost too: the engine says what is wrong with it.
    """
    # Sums of the open groups, the innermost last; and what the last thing costs, which a repeat multiplies.
    sums, last, place = [0], 0, 0
    while place < len(pattern):
        character = pattern[place]
        if character == "{" and (found := _REPEAT.match(pattern, place)):
            sums[-1] += last * (_times(found) - 1)
            last *= _times(found)
            place = found.end()
        elif character == "(":
            sums.append(0)
            place += 1
        elif character == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
            place += 1
        elif character in "*+?":
            # A lazy or nested repeat repeats the same thing.
            place += 1
        else:
            last, place = _atom(pattern, place)
            sums[-1] += last
        if sum(sums) > COST_MAX or len(sums) > _DEPTH_MAX:
            return COST_MAX + 1
    return sum(sums)


def _times(found: re.Match[str]) -> int:
    """Return how often a counted repeat asks for a thing: `{2,5}` five times, `{2,}` three."""
    low, comma, high = found.groups()
    if max(len(low), len(high)) > _DIGITS_MAX:
        return COST_MAX + 1
    return max(1, int(high or low or 0) + bool(comma and not high))


def _atom(pattern: str, place: int) -> tuple[int, int]:
    """Return what one character, escape or class costs, and where it ends."""
    character = pattern[place]
    if character == "[":
        return _bracketed(pattern, place)
    if character == "\\":
        escaped = pattern[place + 1 : place + 2]
        return (_UNICODE_CLASS if escaped in _UNICODE_ESCAPES else 1), place + 2
    # A letter has a few forms where case is ignored.
    return (_SMALL_CLASS if character == "." else 3), place + 1


def _bracketed(pattern: str, place: int) -> tuple[int, int]:
    """Return what a class in brackets costs, with those in it, and where it ends."""
    depth, begin = 0, place
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            place += 1
        elif character == "[":
            depth += 1
        elif character == "]" and place > begin + 1 + (pattern[begin + 1 : begin + 2] == "^"):
            depth -= 1
        place += 1
        if not depth:
            break
    text = pattern[begin:place]
    plain = "\\" not in text and "[" not in text[1:] and "&&" not in text
    return (_SMALL_CLASS if plain else _UNICODE_CLASS), place
