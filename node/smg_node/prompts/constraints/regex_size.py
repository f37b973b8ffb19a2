"""Regex size: number of automaton states of a regular expression, or the reason it cannot be
followed. Pure.

Engines turn a pattern into states; a pattern of twenty characters can ask for a million of them, and
none of the engines bounds that for us. So a pattern is read here, never matched: counted repeats are
multiplied out, and what no grammar engine can do (looking around, referring back, conditions) is
refused by name. Everything else passes, in the dialects of Python, Rust and JSON Schema alike.

A pattern inside a JSON Schema is read with `in_schema`: engines differ in how much of ECMA-262 they
follow there, and some pass over what they cannot follow, so only what no dialect can read is refused.
"""

import re
from typing import Final

STATES_MAX: Final = 1 << 16
_DEPTH_MAX: Final = 100

_REPEAT: Final = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_DIGITS_MAX: Final = 9
_GROUP: Final = re.compile(r"\((?:\?(?::|P?<[A-Za-z_]\w*>|[imsxuU-]+:))?")
_FLAGS: Final = re.compile(r"\(\?[imsxuU-]+\)")
_ESCAPE: Final = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|.)|x(?:\{[0-9a-fA-F]{1,6}\}|[0-9a-fA-F]{2})"
    r"|u(?:\{[0-9a-fA-F]{1,6}\}|[0-9a-fA-F]{4})|[^pPxu1-9k])",
    re.DOTALL,
)
_ANY_ESCAPE: Final = re.compile(r"\\(?:[1-9][0-9]*|k<[^>]+>|.)", re.DOTALL)
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_RANGE: Final = re.compile(r"([A-Za-z0-9])-([A-Za-z0-9])")
_LOOSE_GROUP: Final = re.compile(r"\(\?(?:<?[=!]|P?<[^>]*>)")
_CANNOT: Final = (
    ("(?=", "looking ahead"),
    ("(?!", "looking ahead"),
    ("(?<=", "looking behind"),
    ("(?<!", "looking behind"),
    ("(?>", "an atomic group"),
    ("(?(", "a condition"),
    ("(?P=", "a backreference"),
    ("(?#", "a comment"),
)


class PatternError(ValueError):
    """A pattern that is none, or that no engine can follow."""


class _Reader:
    """Reads one pattern from left to right."""

    def __init__(self, pattern: str, *, in_schema: bool) -> None:
        self._pattern = pattern
        self._in_schema = in_schema
        self._at = 0
        # Sums of the open groups, the innermost last; and the size of what a repeat would repeat.
        self._sums = [0]
        self._last: int | None = None

    def states(self) -> int:
        pattern = self._pattern
        while self._at < len(pattern):
            character = pattern[self._at]
            if character == "(":
                self._open()
            elif character == ")":
                self._close()
            elif character == "|":
                self._last = None
                self._at += 1
            elif character in "*+?":
                self._repeat(1, self._at + 1)
            elif character == "{" and (found := _REPEAT.match(pattern, self._at)):
                self._counted(found)
            else:
                self._atom(character)
            if self._sums[-1] > STATES_MAX:
                raise PatternError(f"it needs more than {STATES_MAX} states")
        if len(self._sums) > 1:
            raise PatternError("a group is not closed")
        return self._sums[0]

    def _open(self) -> None:
        loose = _LOOSE_GROUP.match(self._pattern, self._at) if self._in_schema else None
        if loose is not None:
            self._enter(loose.end())
            return
        for start, what in _CANNOT:
            if self._pattern.startswith(start, self._at):
                raise PatternError(f"{what} is not possible in a constraint")
        flags = _FLAGS.match(self._pattern, self._at)
        if flags is not None:
            self._at = flags.end()
            self._last = None
            return
        group = _GROUP.match(self._pattern, self._at)
        assert group is not None
        if self._pattern.startswith("?", group.end()):
            raise PatternError("it has a group of an unknown kind")
        self._enter(group.end())

    def _enter(self, end: int) -> None:
        self._at = end
        self._sums.append(0)
        self._last = None
        if len(self._sums) > _DEPTH_MAX:
            raise PatternError(f"its groups are more than {_DEPTH_MAX} deep")

    def _close(self) -> None:
        if len(self._sums) == 1:
            raise PatternError("a group is closed that was not opened")
        self._add(self._sums.pop())
        self._at += 1

    def _add(self, size: int) -> None:
        self._sums[-1] += size
        self._last = size

    def _counted(self, found: re.Match[str]) -> None:
        low, comma, high = found.groups()
        if not low and not high:
            self._atom("{")
            return
        if max(len(low), len(high)) > _DIGITS_MAX:
            raise PatternError(f"it needs more than {STATES_MAX} states")
        most = int(high) if high else int(low or 0)
        if comma and high and low and int(low) > int(high):
            raise PatternError("a repeat counts down")
        self._repeat(max(1, most), found.end())

    def _repeat(self, times: int, end: int) -> None:
        if self._last is None:
            raise PatternError("there is nothing to repeat")
        self._sums[-1] += self._last * (times - 1)
        self._at = end
        if self._pattern.startswith("?", end):
            self._at += 1
        elif self._pattern.startswith("+", end) and not self._in_schema:
            raise PatternError("a possessive repeat is not possible in a constraint")
        # To some a repeat can be repeated.
        self._last = self._last * times if self._in_schema else None

    def _atom(self, character: str) -> None:
        if character == "\\":
            found = _ESCAPE.match(self._pattern, self._at)
            if found is None and self._in_schema:
                found = _ANY_ESCAPE.match(self._pattern, self._at)
            if found is None:
                raise PatternError("a backreference or a broken escape is not possible here")
            self._at = found.end()
        elif character == "[":
            found = _CLASS.match(self._pattern, self._at)
            if found is None:
                raise PatternError("a set of characters is not closed")
            _check_ranges(found.group())
            self._at = found.end()
        else:
            self._at += 1
        self._add(1)


def _check_ranges(characters: str) -> None:
    """Refuse a range of letters or digits that runs backwards, in a set without escapes or sets in it."""
    if "\\" in characters or "[" in characters[1:]:
        return
    for first, last in _RANGE.findall(characters):
        if first > last:
            raise PatternError(f"the range {first}-{last} runs backwards")


def pattern_states(pattern: str, *, in_schema: bool = False) -> int:
    """Return how many states `pattern` takes at least, at most 65,536; `PatternError` otherwise."""
    return _Reader(pattern, in_schema=in_schema).states()
