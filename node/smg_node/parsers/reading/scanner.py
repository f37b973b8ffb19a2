"""Scanner of one choice's text: runs a format over a reader, chunk by chunk.

Chunks go in, pieces come out, and joined by kind they are the same for every cutting of the text:
formats read as if the whole answer were there (see `text_reader`). While nothing is held and a
chunk has no character that could begin a marker, none of that is entered.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.core.generation.pieces import Arguments, Piece, Reasoning, Text
from smg_node.parsers.reading.answer_grammar import AnswerFormat, answer
from smg_node.parsers.reading.format import FormatRequest, JointFormat, Start
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.piece_writer import NewId
from smg_node.parsers.reading.text_reader import Kind, Machine, Reader

_CALM: Final[dict[Kind, type[Text] | type[Reasoning] | type[Arguments]]] = {
    "text": Text,
    "reasoning": Reasoning,
    "call": Arguments,
}
_NOTHING: Final = Markers(())


class Scanner:
    """Reads one choice; see `Parser`. `reader` is shown for `calm`, `notes` and the count of calls."""

    __slots__ = ("_form", "_machine", "_restful", "reader")

    def __init__(
        self,
        form: AnswerFormat | JointFormat,
        *,
        asked: FormatRequest,
        start: Start,
        new_id: NewId,
        calls: bool = True,
    ) -> None:
        """Begin an answer at `start`; `calls` is False where what looks like a call is text."""
        self.reader = Reader(
            form.ids(new_id) if isinstance(form, JointFormat) and form.ids else new_id
        )
        self._machine = _whole(self.reader, form, asked, start, calls)
        # Between the markers of such an answer nothing waits for its end.
        self._restful = isinstance(form, AnswerFormat)
        self._form = form
        next(self._machine)

    @property
    def thinks(self) -> bool:
        """Whether an answer may have thoughts."""
        form = self._form
        return not isinstance(form, AnswerFormat) or form.thinks

    @property
    def marks(self) -> Markers | None:
        """What may stand before an answer and is no part of it; None where only its parser can tell."""
        form = self._form
        return form.beginnings if isinstance(form, AnswerFormat) else None

    def begin(self) -> None:
        """Read up to where the first text is needed: then `reader` tells what that will be."""
        reader = self.reader
        reader.framed = reader.in_thought = self.marks is None
        next(self._machine)

    def feed(self, text: str) -> Sequence[Piece]:
        """See `Parser`."""
        reader = self.reader
        calm = reader.calm
        if calm is not None and calm[1](text) is None:
            return (_CALM[calm[0]](text),) if text else ()
        reader.take_in(text)
        next(self._machine)
        return reader.out.take()

    def finish(self) -> Sequence[Piece]:
        """See `Parser`."""
        reader = self.reader
        calm, reader.calm = reader.calm, None
        reader.ended = True
        if self._restful and calm is not None and calm[0] == "text":
            # The machine would only be woken to find that there is nothing left to say, which takes 4 us.
            return ()
        for _ in self._machine:
            raise AssertionError("a format asked for more at the end")
        reader.out.end()
        return reader.out.take()


def _whole(
    reader: Reader,
    form: AnswerFormat | JointFormat,
    asked: FormatRequest,
    start: Start,
    calls: bool,
) -> Machine[None]:
    yield
    if isinstance(form, JointFormat):
        yield from form.read(reader, asked, start, calls)
    else:
        yield from answer(reader, asked, form, start)
    # A grammar that says an answer is over may be wrong about it.
    reader.text()
    yield from reader.until(_NOTHING, "text")
