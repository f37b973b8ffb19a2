"""Markers: search for a set of strings in text that arrives in pieces.

The question a scanner asks all the time is: where does the first marker stand, and if none does, how
much of the end may still become one? Both are answered without looking at a character twice, and the
answer does not depend on how the text was cut: of two markers that begin alike the longer one wins, and
as long as it may still come the shorter one waits.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

Search: TypeAlias = Callable[[str], re.Match[str] | None]

_NEVER: Final = re.compile(r"(?!)")


class Markers:
    """Some markers, none of them empty; compiled once per format and shared by all its streams."""

    __slots__ = (
        "_find",
        "_first",
        "_inside",
        "_longer",
        "_longest",
        "_prefixes",
        "lines",
        "triggered",
        "words",
    )

    def __init__(self, words: Iterable[str], *, lines: bool = False, also: str = "") -> None:
        """Take the markers; `lines` where it matters whether one stands at the start of a line.

        `also` are further characters that end a calm.
        """
        self.lines = lines
        self.words = tuple(sorted(set(words), key=lambda word: (-len(word), word)))
        assert all(self.words), "a marker has at least one character"
        firsts = "".join(sorted({word[0] for word in self.words}))
        self._first = _class(firsts)
        self.triggered: Search = _class(firsts + also + ("\n" if lines else "")).search
        """Finds a character that may begin a marker; text without one has none and holds nothing."""
        whole = "|".join(re.escape(word) for word in self.words)
        self._find = re.compile(whole) if whole else _NEVER
        self._prefixes = frozenset(word[:end] for word in self.words for end in range(1, len(word)))
        self._longest = len(self.words[0]) if self.words else 0
        # Only words that go on where another one ends: the shorter one must wait for them.
        self._longer = frozenset(word for word in self.words if word in self._prefixes)
        # Only words that stand inside others: they must wait for those that began before them.
        self._inside = any(
            other.find(word, 1) >= 0 for word in self.words for other in self.words if other != word
        )

    def find(self, text: str, start: int, *, ended: bool) -> tuple[int, str] | None:
        """Return where the first marker at or after `start` stands, and which; None if there is none yet.

        While the text may go on, a marker that is the beginning of a longer one is not found before it
        is clear that the longer one does not come.
        """
        match = self._find.search(text, start)
        if match is None:
            return None
        word, at = match.group(), match.start()
        if not ended:
            if word in self._longer and text[at:] in self._prefixes:
                return None
            if self._inside and len(text) - self.held(text, start) < at:
                return None
        return at, word

    def held(self, text: str, start: int) -> int:
        """Return how many characters at the end of `text`, from `start` on, may be a marker's beginning."""
        size = len(text)
        at = max(start, size - self._longest + 1)
        while (match := self._first.search(text, at)) is not None:
            at = match.start()
            if text[at:] in self._prefixes:
                return size - at
            at += 1
        return 0

    def here(self, text: str, at: int, *, ended: bool) -> str | None:
        """Return the longest marker that stands at `at`, "" if none does, None while that is open."""
        match = self._find.match(text, at)
        if not ended and len(text) - at < self._longest:
            rest = text[at:]
            if not rest or rest in self._prefixes:
                return None
        return "" if match is None else match.group()


def _class(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(characters)}]") if characters else _NEVER
