"""Citations in a model's text: `[n]` for the n-th thing that its searches found, with where it stands. Pure.

    cites = "[" n { "," n } "]"  |  "【" n [ "†" anything ] "】"

A model that was shown numbered sources writes their numbers behind what rests on them. The text stays as it is; a
number that no source has is no citation, nor is what stands in code: an index there looks the same. Code is what
Markdown takes for it, but that a single backtick without its match ends with the line: a reader of a stream cannot
look ahead. Characters are read one by one, so it does not matter how the text is cut.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from smg_node.core.generation.tool_serving import Source

_OPENING: Final = {"[": "]", "【": "】"}
_MARKER: Final = re.compile(
    r"\[ ?(\d{1,4}(?: ?[,;] ?\d{1,4})*) ?\]|【(\d{1,4})(?:†[^】\n]*)?】", re.ASCII
)
_IN_BRACKETS: Final = frozenset("0123456789,; ")
_MARKER_CHARACTERS_MAX: Final = 64
_FENCE: Final = 3


class Citation(NamedTuple):
    """One source cited at one place: `start` and `end` count characters of the text, `number` from 1."""

    start: int
    end: int
    number: int
    source: Source


class CitationReader:
    """Finds the citations in one text, as it comes. `sources` are all that the answer has had before this text."""

    __slots__ = (
        "_at",
        "_code",
        "_fence",
        "_line_starts",
        "_marker",
        "_marker_at",
        "_run_starts_line",
        "_sources",
        "_ticks",
    )

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._at = 0
        self._marker = ""
        self._marker_at = 0
        self._line_starts = True
        # Backticks that follow each other so far; how many opened the code that the text is in.
        self._ticks = 0
        self._run_starts_line = True
        self._code = 0
        self._fence = 0

    def feed(self, text: str) -> list[Citation]:
        """Return the citations that end in this piece of the text."""
        found: list[Citation] = []
        for character in text:
            if character == "`":
                self._tick()
            else:
                if self._ticks:
                    self._end_run()
                if character == "\n":
                    self._end_line()
                else:
                    if not (self._code or self._fence):
                        self._mark(character, found)
                    self._line_starts = self._line_starts and character == " "
            self._at += 1
        return found

    def _tick(self) -> None:
        if not self._ticks:
            self._run_starts_line = self._line_starts
        self._ticks += 1
        self._marker = ""
        self._line_starts = False

    def _end_run(self) -> None:
        """Take a whole run of backticks: it opens code or closes it."""
        ticks, self._ticks = self._ticks, 0
        if self._fence:
            if self._run_starts_line and ticks >= self._fence:
                self._fence = 0
        elif self._code:
            if ticks == self._code:
                self._code = 0
        elif self._run_starts_line and ticks >= _FENCE:
            self._fence = ticks
        else:
            self._code = ticks

    def _end_line(self) -> None:
        self._code = 0
        self._marker = ""
        self._line_starts = True

    def _mark(self, character: str, found: list[Citation]) -> None:
        """Take a character outside of code."""
        if character in _OPENING:
            self._marker, self._marker_at = character, self._at
            return
        if not self._marker:
            return
        opening = self._marker[0]
        if character == _OPENING[opening]:
            found += self._cited(self._marker + character)
            self._marker = ""
        elif len(self._marker) == _MARKER_CHARACTERS_MAX or (
            opening == "[" and character not in _IN_BRACKETS
        ):
            self._marker = ""
        else:
            self._marker += character

    def _cited(self, marker: str) -> list[Citation]:
        matched = _MARKER.fullmatch(marker)
        if matched is None:
            return []
        numbers = map(int, re.findall(r"\d+", matched[1] or matched[2]))
        known = (n for n in dict.fromkeys(numbers) if 1 <= n <= len(self._sources))
        return [Citation(self._marker_at, self._at + 1, n, self._sources[n - 1]) for n in known]


def citations_in(text: str, sources: Sequence[Source]) -> list[Citation]:
    """Return the citations in a whole text."""
    return CitationReader(sources).feed(text)
