"""Answer grammar: order of reasoning, text and calls in an answer, for families whose two formats
are separate.

    answer   = [ thought ] { text | thought | calls }
    thought  = opener … closer, or a call's opener where the family leaves the closer out

Where the answer begins is known from the prompt (`start_of`): inside a thought, or before one that may come.
A marker counts only where the grammar allows it; anywhere else it is text, character for character:

    opener of a call      anywhere in the answer; inside a thought for `implicit` families
    opener of a thought   as the first thing said since the beginning, a thought or a call; for `interleaved`
                          families also at the start of a line; doubled, where the prompt had printed it
    closer of a thought   the first one; one more directly behind it; without an opener, as long as it is open
                          whether one was missed
    tag around the answer `ThoughtFormat.around`: where an answer begins; where it ends
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from smg_node.parsers.reading.format import FormatRequest, Start, ThoughtFormat, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, RESCAN_MAX, Machine, Reader

PLAIN: Final = ThoughtFormat("plain")

_Role: TypeAlias = Literal["calls", "opener", "closer", "begins", "ends", "dropped"]


class AnswerFormat:
    """The markers of one pair of formats, compiled. Shared by all streams of a model."""

    def __init__(
        self, thought: ThoughtFormat, tools: Sequence[ToolFormat], controls: Sequence[str] = ()
    ) -> None:
        """Put `thought` and `tools` together; of two formats with one opener the first has it.

        `controls` are tokens of the model that end turns or messages: they are dropped wherever they stand.
        """
        self.thought = thought
        self.by_opener = {opener: each for each in reversed(tools) for opener in each.openers}
        self.by_start = {start: each for each in reversed(tools) for start in each.starts}
        self.roles: dict[str, _Role] = {}
        """What each marker is."""
        self._give("dropped", controls, thought.frames, *(each.noise for each in tools))
        begins, ends = thought.around
        self._give("begins", (begins,) if begins else ())
        self._give("ends", (f"\n{ends}", ends) if ends else ())
        self._give("closer", thought.closers)
        self._give("opener", thought.openers)
        self._give("calls", self.by_opener)

        lines = thought.interleaved
        closers = frozenset(thought.closers)
        self.content = Markers(self.roles.keys() - closers, lines=lines)
        """What counts in the answer once a thought was closed."""
        self.undecided = Markers(self.roles, lines=lines)
        """What counts as long as a closer may come whose opener was missed, or that is doubled."""
        self.closers = closers if thought.trim else frozenset[str]()
        """Before which newlines are layout."""
        enders = self.by_opener if thought.implicit != "no" else ()
        self.inside = Markers(
            [*thought.closers, *enders, *controls],
            lines=thought.implicit == "line",
            also="\n" if thought.trim else "",
        )
        """What counts inside a thought."""
        self.openers = Markers(thought.openers)
        marks = (*thought.openers, *thought.closers, *thought.frames, *controls, begins)
        self.beginnings = Markers(mark for mark in marks if mark)
        """What may stand before the answer's first word and is no part of it."""
        self.starts = Markers(self.by_start)
        self.after = Markers(word for word, role in self.roles.items() if role != "ends")
        """What may stand behind the tag that ends an answer."""

    @property
    def thinks(self) -> bool:
        """Whether an answer may have thoughts."""
        return bool(self.thought.openers or self.thought.closers)

    def _give(self, role: _Role, *words: Sequence[str] | dict[str, ToolFormat]) -> None:
        self.roles.update((word, role) for some in words for word in some)


def answer(reader: Reader, asked: FormatRequest, form: AnswerFormat, start: Start) -> Machine[None]:
    """Read a whole answer; returns at its end."""
    return _Answer(reader, asked, form, start).read(start)


class _Answer:
    """State of one answer read so far.

    `owed`: a closer may still come whose thought was not seen to begin, or was left for a call. `closed`: a
    thought ended and nothing was said since, so one more closer is a doubled one. `around`: the answer stands
    between tags, and the one that ends it is still to come.
    """

    __slots__ = ("around", "asked", "closed", "form", "owed", "reader")

    def __init__(
        self, reader: Reader, asked: FormatRequest, form: AnswerFormat, start: Start
    ) -> None:
        self.reader = reader
        self.asked = asked
        self.form = form
        self.owed = start == "undecided"
        self.closed = start == "content"
        self.around = False

    def read(self, start: Start) -> Machine[None]:
        if start == "inside":
            self.reader.in_thought = True
            yield from self._doubled()
            yield from self._thought()
        reader, form = self.reader, self.form
        while True:
            fresh = reader.out.fresh
            if fresh and form.by_start and (yield from self._starts()):
                continue
            may_close = self.owed or (self.closed and fresh)
            word = yield from reader.until(form.undecided if may_close else form.content, "text")
            if not word:
                return
            if not (yield from self._marker(word)):
                reader.spill()

    def _marker(self, word: str) -> Machine[bool]:
        """Read what the marker at the cursor begins; False if it means nothing here."""
        reader, form = self.reader, self.form
        match form.roles[word]:
            case "calls":
                return (yield from self._calls(word))
            case "opener":
                if not (reader.out.fresh or (form.thought.interleaved and reader.line_start)):
                    return False
                self._take(word)
                reader.out.thought()
                yield from self._thought()
                return True
            case "closer":
                return (yield from self._stray_closer(word))
            case "begins":
                if self.around or not reader.out.fresh:
                    return False
                self._take(word)
                self.around = True
                return (yield from self._newline())
            case "ends":
                return self.around and (yield from self._ends(word))
            case "dropped":
                self._take(word)
                return True

    def _take(self, word: str) -> None:
        self.reader.at += len(word)
        self.reader.drop()

    # ── Thoughts ─────────────────────────────────────────────────────────────

    def _doubled(self) -> Machine[None]:
        """Drop an opener that the prompt had printed already."""
        reader = self.reader
        yield from reader.space()
        if (yield from reader.one_of(self.form.openers)):
            reader.drop()
        else:
            reader.back()

    def _thought(self) -> Machine[None]:
        """Read a thought whose opener is dropped, up to behind its closer, or behind the calls that ended it."""
        reader, form = self.reader, self.form
        thought = form.thought
        reader.in_thought = True
        if thought.trim:
            yield from self._newline()
        while True:
            word = yield from reader.until(form.inside, "reasoning", trim=form.closers)
            if not word:
                return
            role = form.roles[word]
            if role == "closer":
                return (yield from self._close(word))
            if role != "calls":
                self._take(word)
                continue
            allowed = thought.implicit == "anywhere" or reader.line_start
            if allowed and (yield from self._calls(word)):
                self.owed = True
                return
            if reader.at - reader.base <= RESCAN_MAX:
                reader.at = reader.base + 1
            reader.out.reasoning(reader.held())
            reader.drop()

    def _close(self, word: str) -> Machine[None]:
        self._take(word)
        self.reader.in_thought = False
        if self.form.thought.trim:
            yield from self.reader.newlines()
        self.reader.out.end()
        self.owed, self.closed = False, True
        begins, ends = self.form.thought.around
        self.around = bool(ends) and not begins

    def _stray_closer(self, word: str) -> Machine[bool]:
        out = self.reader.out
        if not (self.owed or (self.closed and out.fresh)):
            return False
        if self.owed and not out.fresh and not out.calls:
            self.reader.note("reasoning_start_missed")
        yield from self._close(word)
        return True

    # ── The answer ───────────────────────────────────────────────────────────

    def _newline(self) -> Machine[bool]:
        if (yield from self.reader.have("\n")):
            self.reader.drop()
        return True

    def _ends(self, word: str) -> Machine[bool]:
        """Drop the tag that ends the answer, and the white space behind it, unless the answer goes on."""
        reader = self.reader
        reader.at += len(word)
        last = yield from reader.space()
        size = reader.at - reader.base
        if last and not (yield from reader.one_of(self.form.after)):
            reader.back()
            return False
        reader.at = reader.base + size
        reader.drop()
        self.around = False
        return True

    def _starts(self) -> Machine[bool]:
        """Read calls that may stand only where nothing was said before them; return whether there were any."""
        reader, form = self.reader, self.form
        yield from reader.space()
        reader.text()
        word = yield from reader.one_of(form.starts)
        reader.back()
        if not word:
            return False
        if (yield from self._read(form.by_start[word], word)):
            return True
        reader.back()
        marker = yield from reader.one_of(form.undecided)
        reader.back()
        if not marker:
            reader.spill()
        return False

    def _calls(self, word: str) -> Machine[bool]:
        if (yield from self._read(self.form.by_opener[word], word)):
            return True
        self.reader.note("tool_markup_unparsed")
        return False

    def _read(self, tools: ToolFormat, word: str) -> Machine[bool]:
        reader = self.reader
        if reader.out.calls >= CALLS_MAX:
            reader.note("too_many_calls")
            reader.at += len(word)
            return False
        if not (yield from tools.read(reader, self.asked, word)):
            return False
        assert reader.base == reader.at, "what is behind a call has not been looked at"
        self.closed = False
        return True
