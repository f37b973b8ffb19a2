"""Wrapped JSON calls: an array of calls, one object, or several, between two markers.

The closer may be missing where the next opener or the end follows. An opener behind which no call stands was
text.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from smg_node.parsers.notations.json_calls import Shape, call_object, calls
from smg_node.parsers.notations.tagged_arguments import skip
from smg_node.parsers.reading.format import FormatRequest, Tag, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader

_STRAY: Final = re.compile(r"[\s\]}]*")


@dataclass(frozen=True)
class Wrapped:
    """Calls between `openers` and `closers`; see `ToolFormat` for `openers` and `tags`.

    `before` is what may stand between an opener and the call. `lines`: one object a line, and what stands
    between them is noise up to the closer.
    """

    openers: tuple[str, ...]
    closers: tuple[str, ...]
    shape: Shape = field(default_factory=Shape)
    before: tuple[str, ...] = ()
    lines: bool = False
    _closers: Markers = field(init=False)
    _before: Markers = field(init=False)
    _next: Markers = field(init=False)

    def __post_init__(self) -> None:
        """Compile the markers."""
        object.__setattr__(self, "_closers", Markers(self.closers))
        object.__setattr__(self, "_before", Markers(self.before))
        object.__setattr__(self, "_next", Markers((*self.closers, *self.openers, "{")))

    def read(self, reader: Reader, _asked: FormatRequest, opener: str) -> Machine[bool]:
        """Read what one opener begins; see `ReadCall`."""
        # The bracket that shows an opener to be one belongs to what it opens.
        reader.at += len(opener.removesuffix("["))
        first = yield from reader.space()
        if self.before and (yield from reader.one_of(self._before)):
            first = yield from reader.space()
        start = reader.at - reader.base
        if not (yield from calls(reader, self.shape)):
            return (yield from self._none(reader, start))
        if self.lines and first == "{":
            yield from self._more(reader)
        yield from self.end(reader)
        return True

    def _none(self, reader: Reader, start: int) -> Machine[bool]:
        """Drop an array without calls and its closer; False if that is not what was held from `start` on.

        The cursor stands where no call was found; in an empty array, behind its first bracket.
        """
        if "".join(reader.held()[start:].split()) != "[" or not (yield from reader.have("]")):
            return False
        yield from reader.space()
        if not (yield from reader.one_of(self._closers)):
            return False
        reader.drop()
        return True

    def end(self, reader: Reader) -> Machine[None]:
        """Drop the closer behind a call if it stands there, with white space and brackets too many before it."""
        yield from reader.pattern(_STRAY)
        if (yield from reader.one_of(self._closers)):
            reader.drop()
        else:
            reader.back()

    def _more(self, reader: Reader) -> Machine[None]:
        """Read the objects that follow, up to the closer or another opener."""
        while reader.out.calls < CALLS_MAX and (yield from skip(reader, self._next)) == "{":
            yield from call_object(reader, self.shape)
            reader.drop()

    def form(self, name: str, *tags: Tag) -> ToolFormat:
        """Return the format of these calls under a name."""
        return ToolFormat(name, self.read, self.openers, noise=self.closers, tags=tags)
