"""Pattern cost: upper bounds of what a search pattern asks of its engine, so that none takes long. Pure.

The engine follows a pattern in time that grows with pattern times text, and refuses an automaton above 10 MiB; but it
takes a third of a second to find that out, and holds Python's lock all the while. So counted repeats are multiplied
out before, in two measures. Compiling: a class of Unicode (`\\w`) takes some 400 states where a letter takes a few;
20 of them take 10 ms. Matching: each place of the pattern may be looked at for each character of a text, a class at
several; 400 take some 15 ms for the longest text of a tool.
"""

import re
from typing import Final, NamedTuple


class Measure(NamedTuple):
    """What a letter, a class of few ranges and a class of Unicode count, and the `most` that a pattern may."""

    letter: int
    small_class: int
    unicode_class: int
    most: int


COMPILING: Final = Measure(3, 12, 400, 8_000)
MATCHING: Final = Measure(1, 4, 8, 400)
_UNICODE_ESCAPES: Final = frozenset("wWdDsSpPbB")
_DEPTH_MAX: Final = 50
_REPEAT: Final = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_ESCAPE: Final = re.compile(r"\\(?:[pPxuU]\{[^}]*\}|[pP].|.|$)", re.DOTALL)
_DIGITS_MAX: Final = 4


def is_small(pattern: str) -> bool:
    """Return whether a pattern compiles and matches in some milliseconds."""
    return all(cost(pattern, measure) <= measure.most for measure in (COMPILING, MATCHING))


def cost(pattern: str, measure: Measure) -> int:
    """Return what a pattern costs by a measure, one more than the most for anything above it.

    What is no pattern has some cost too: the engine says what is wrong with it.
    """
    # Sums of the open groups, the innermost last; and what the last thing costs, which a repeat multiplies.
    sums, last, place = [0], 0, 0
    while place < len(pattern):
        character = pattern[place]
        if character == "{" and (found := _REPEAT.match(pattern, place)):
            times = _times(found)
            sums[-1] += last * (times - 1)
            last *= times
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
            last, place = _atom(pattern, place, measure)
            sums[-1] += last
        if sum(sums) > measure.most or len(sums) > _DEPTH_MAX:
            return measure.most + 1
    return sum(sums)


def _times(found: re.Match[str]) -> int:
    """Return how often a counted repeat asks for a thing: `{2,5}` five times, `{2,}` three."""
    low, comma, high = found.groups()
    if max(len(low), len(high)) > _DIGITS_MAX:
        return 10**_DIGITS_MAX
    return max(1, int(high or low or 0) + bool(comma and not high))


def _atom(pattern: str, place: int, measure: Measure) -> tuple[int, int]:
    """Return what one character, escape or class costs, and where it ends."""
    character = pattern[place]
    if character == "[":
        end = _bracket_end(pattern, place)
        inside = pattern[place + 1 : end]
        plain = not any(sign in inside for sign in ("\\", "[", "&&", "--", "~~"))
        return (measure.small_class if plain else measure.unicode_class), end
    if character == "\\":
        escape = _ESCAPE.match(pattern, place)
        assert escape is not None, "whatever follows a backslash is escaped by it"
        is_class = escape[0][1:2] in _UNICODE_ESCAPES
        return (measure.unicode_class if is_class else measure.letter), escape.end()
    return (measure.small_class if character == "." else measure.letter), place + 1


def _bracket_end(pattern: str, begin: int) -> int:
    """Return where a class in brackets ends, with those in it."""
    depth, place = 0, begin
    # A bracket that closes at once is one of the characters meant.
    first = begin + 1 + (pattern[begin + 1 : begin + 2] == "^")
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            place += 1
        elif character == "[":
            depth += 1
        elif character == "]" and place > first:
            depth -= 1
        place += 1
        if not depth:
            return place
    return len(pattern)
