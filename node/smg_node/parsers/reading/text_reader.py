"""Text reader: buffer of one answer, read ahead by a generator and released a piece at a time.

A format is written as a generator that reads as if the whole answer were there: it asks for what stands at
the cursor, moves the cursor, says pieces. Where the answer does not depend on text that has yet to come it
is given at once; where it does, the generator sleeps (`yield`) until there is more, or the end. That is why
a format cannot see how its text was cut, and why it has no second path for a whole answer.

    buffer   …said already… | held: read, not yet said | not yet read
                            base                       at

`base` is where the held text begins, `at` is the cursor. `drop` and `say` move `base` up to the cursor;
`back` moves the cursor to `base`, which is how an opener that opens nothing becomes text again. What is held
is in one string that grows in place; everything before `base` is let go with the next feed.

Rules for a format. Text that may still be no call is only read, never dropped or said. A generator that has
said a call never goes back. Whatever it remembers of a place, it remembers as a distance from `at` or
`base`: both move when text arrives.
"""

import re
from collections.abc import Generator
from typing import Final, Literal, TypeAlias, TypeVar

from smg_node.parsers.reading.markers import Markers, Search
from smg_node.parsers.reading.piece_writer import NewId, Outlet

T = TypeVar("T")
Machine: TypeAlias = Generator[None, None, T]
"""Reads on when there is more; what it returns is what it found."""

Kind: TypeAlias = Literal["text", "reasoning", "call"]

NAME_MAX: Final = 256
"""Characters of a function's name; a longer one is prose."""
HELD_MAX: Final = 1 << 20
"""Characters of a value that is held until its type or its function is known."""
RESCAN_MAX: Final = 512
"""Characters that are looked through again when what they began turned out to be nothing."""
TRIM_MAX: Final = 64
"""Newlines before a marker that are dropped where a format lays out its markers with them."""
CALLS_MAX: Final = 256
"""Calls of one answer; what looks like one more is text."""

_SPACE: Final = re.compile(r"\s*")
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]*")


class Reader:
    """One answer's text and its pieces so far."""

    __slots__ = (
        "_before",
        "at",
        "base",
        "buffer",
        "calm",
        "ended",
        "framed",
        "in_thought",
        "notes",
        "out",
    )

    def __init__(self, new_id: NewId) -> None:
        self.buffer = ""
        self.base = 0
        self.at = 0
        self._before = "\n"
        self.ended = False
        self.out = Outlet(new_id)
        self.calm: tuple[Kind, Search] | None = None
        """While nothing is held: the kind of all text in which the search finds nothing."""
        self.notes: dict[str, int] = {}
        """What was odd about this answer, and how often."""
        self.framed = False
        """Whether all that is said stands inside of messages: what is between them is not the answer's."""
        self.in_thought = False
        """Whether what comes next belongs to a thought, or to the marks around one."""

    # ── For the scanner ──────────────────────────────────────────────────────

    def take_in(self, text: str) -> None:
        """Add what arrived; what was let go before is forgotten."""
        base = self.base
        buffer = self.buffer
        if base:
            self._before = buffer[base - 1]
            self.at -= base
            self.base = 0
            buffer = buffer[base:]
        # Only while nothing else refers to it does the string grow in place.
        self.buffer = ""
        buffer += text
        self.buffer = buffer

    def note(self, what: str) -> None:
        """Count something odd, for the model's metrics."""
        self.notes[what] = self.notes.get(what, 0) + 1

    # ── For who asks what the next text will be ──────────────────────────────

    @property
    def unread(self) -> int:
        """How many characters were neither emitted nor dropped."""
        return len(self.buffer) - self.base

    @property
    def thinks(self) -> bool:
        """Whether what comes next is no part of the answer: a thought, or marks around one."""
        return self.in_thought and not self.out.behind_call

    @property
    def begins(self) -> bool:
        """Whether what comes next may begin a thought: nothing was said since the start, or a thought."""
        out = self.out
        if not out.fresh or out.behind_call:
            return False
        return self.base == len(self.buffer) or self.buffer[self.base :].isspace()

    # ── Looking ──────────────────────────────────────────────────────────────

    def peek(self) -> Machine[str]:
        """Return the character at the cursor, "" at the end."""
        while self.at >= len(self.buffer):
            if self.ended:
                return ""
            yield
        return self.buffer[self.at]

    def space(self) -> Machine[str]:
        """Move over white space; return the character behind it, "" at the end."""
        while True:
            match = _SPACE.match(self.buffer, self.at)
            assert match is not None
            self.at = match.end()
            # Found things hold the text they were found in, which then would not grow in place.
            del match
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if self.ended:
                return ""
            yield

    def have(self, word: str) -> Machine[bool]:
        """Move over `word` if it stands at the cursor; return whether it did."""
        while True:
            at = self.at
            if self.buffer.startswith(word, at):
                self.at = at + len(word)
                return True
            if self.ended or not word.startswith(self.buffer[at : at + len(word)]):
                return False
            yield

    def one_of(self, markers: Markers) -> Machine[str]:
        """Move over the longest marker that stands at the cursor; return it, "" if none does."""
        while True:
            word = markers.here(self.buffer, self.at, ended=self.ended)
            if word is not None:
                self.at += len(word)
                return word
            yield

    def pattern(self, pattern: re.Pattern[str], most: int = NAME_MAX) -> Machine[str]:
        """Move over what `pattern` matches at the cursor and return it; "" also where it is longer than `most`.

        For patterns that match a run of characters of one class, however long: what comes later neither
        shortens nor replaces what matches, and what matched is not looked at again.
        """
        size = 0
        while True:
            match = pattern.match(self.buffer, self.at + size)
            if match is not None:
                size = match.end() - self.at
            del match
            if size > most:
                return ""
            if self.at + size < len(self.buffer) or self.ended:
                found = self.buffer[self.at : self.at + size]
                self.at += size
                return found
            yield

    def name(self) -> Machine[str]:
        """Move over a function's name and return it, "" if there is none or it is too long."""
        return (yield from self.pattern(_NAME))

    @property
    def line_start(self) -> bool:
        """Whether the held text begins a line."""
        return (self.buffer[self.base - 1] if self.base else self._before) == "\n"

    # ── Letting go ───────────────────────────────────────────────────────────

    @property
    def holds(self) -> bool:
        """Whether there is text that was neither emitted nor dropped: what it is shows later."""
        return self.base < len(self.buffer) or self.out.holds

    def held(self) -> str:
        """Return the text that was read and neither emitted nor dropped."""
        return self.buffer[self.base : self.at]

    def drop(self) -> None:
        """Drop the text that was read: it is markup."""
        self.base = self.at

    def back(self) -> None:
        """Go back to where the held text begins."""
        self.at = self.base

    def text(self) -> None:
        """Emit the text that was read as text of the answer."""
        self.out.text(self.buffer[self.base : self.at])
        self.base = self.at

    def arguments(self) -> None:
        """Emit the text that was read as a part of the last call's arguments."""
        self.out.arguments(self.buffer[self.base : self.at])
        self.base = self.at

    def spill(self) -> None:
        """Emit text that opened nothing: its first character, so that the rest is looked at again.

        All of it where that would be too much to look at twice.
        """
        if self.at - self.base <= RESCAN_MAX:
            self.at = self.base + 1
        self.text()

    def until(
        self, markers: Markers, kind: Kind, *, trim: frozenset[str] = frozenset()
    ) -> Machine[str]:
        """Emit all that comes before the next marker as `kind`, as early as that is certain.

        Returns the marker at the cursor, not moved over; "" at the end of the answer. Newlines before a
        marker of `trim`, up to `TRIM_MAX` of them, are dropped.
        """
        assert self.at == self.base, "what is held belongs to something"
        out = self.out
        self.in_thought = kind == "reasoning"
        say = (
            out.text if kind == "text" else out.reasoning if kind == "reasoning" else out.arguments
        )
        while True:
            buffer, at = self.buffer, self.at
            found = markers.find(buffer, at, ended=self.ended)
            if found is not None:
                end, word = found
                say(buffer[at : end - _newlines(buffer, at, end) if word in trim else end])
                self.at = self.base = end
                self.in_thought = self.in_thought or self.framed
                return word
            cut = len(buffer)
            if not self.ended:
                cut -= markers.held(buffer, at)
                if trim:
                    cut -= _newlines(buffer, at, cut)
            if cut > at:
                say(buffer[at:cut])
                self.at = self.base = cut
            if self.ended:
                return ""
            if (
                cut == len(buffer)
                and (kind != "text" or not out.fresh)
                and (kind != "reasoning" or out.settled)
                and not (markers.lines and self.line_start)
            ):
                self.calm = (kind, markers.triggered)
            yield
            self.calm = None

    def newlines(self) -> Machine[None]:
        """Drop the newlines at the cursor."""
        while (yield from self.peek()) == "\n":
            self.at += 1
            self.drop()


def _newlines(text: str, start: int, end: int) -> int:
    """Return how many newlines `text` has before `end`, at most `TRIM_MAX`."""
    at = end
    while at > start and end - at < TRIM_MAX and text[at - 1] == "\n":
        at -= 1
    return end - at
