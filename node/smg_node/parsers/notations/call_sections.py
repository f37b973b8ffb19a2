"""Call sections: calls with an opener each, and perhaps one more pair of markers around all of
them.

    begin { call } end          what stands between the calls is noise and dropped
    call                        the section's own markers may be missing, repeated, or never come

How one call is read is the family's business.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from smg_node.parsers.notations.tagged_arguments import skip
from smg_node.parsers.reading.format import FormatRequest, Tag, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, RESCAN_MAX, Machine, Reader

ReadOne: TypeAlias = Callable[[Reader, FormatRequest], Machine[bool]]
"""Reads the call whose opener was moved over, with its closer; if it is none, nothing was said or dropped."""


@dataclass(frozen=True)
class Section:
    """Calls that each begin with `call`, in sections between one of `begins` and one of `ends`."""

    begins: tuple[str, ...]
    ends: tuple[str, ...]
    call: str
    closer: str
    read_one: ReadOne
    _marks: Markers = field(init=False)
    _closer: Markers = field(init=False)

    def __post_init__(self) -> None:
        """Compile the markers."""
        object.__setattr__(self, "_marks", Markers((*self.begins, *self.ends, self.call)))
        object.__setattr__(self, "_closer", Markers((self.closer,)))

    def read(self, reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
        """Read a section, or one call outside of any; see `ReadCall`."""
        reader.at += len(opener)
        section = opener != self.call
        if section and (yield from self._first(reader)) != self.call:
            return False
        if not (yield from self._one(reader, asked)):
            return False
        while section:
            word = yield from skip(reader, self._marks)
            reader.at += len(word)
            if not word or word in self.ends:
                reader.drop()
                return True
            if word in self.begins:
                reader.drop()
            elif reader.out.calls >= CALLS_MAX or not (yield from self._one(reader, asked)):
                # The rest is no section any more: it is looked at as if it stood alone.
                reader.back()
                return True
        return True

    def _one(self, reader: Reader, asked: FormatRequest) -> Machine[bool]:
        """Read one call and drop its closer."""
        if not (yield from self.read_one(reader, asked)):
            return False
        yield from reader.space()
        if (yield from reader.one_of(self._closer)) or cut_short(reader, self.closer):
            reader.drop()
        else:
            reader.back()
        return True

    def _first(self, reader: Reader) -> Machine[str]:
        """Move over the first call's opener, and what little stands before it; return what was found instead."""
        word = ""
        while True:
            word = yield from near(reader, self._marks)
            reader.at += len(word)
            if word not in self.begins:
                return word

    def form(self, name: str, *tags: Tag) -> ToolFormat:
        """Return the format of these calls under a name."""
        return ToolFormat(
            name,
            self.read,
            (*self.begins, self.call),
            noise=(*self.ends, self.closer),
            tags=tags,
        )


def cut_short(reader: Reader, tag: str) -> bool:
    """Move over all that is left of the answer if it is the beginning of `tag`, for which was looked before."""
    size = len(reader.buffer) - reader.at
    if not 0 < size < len(tag) or not tag.startswith(reader.buffer[reader.at :]):
        return False
    assert reader.ended, "whether the tag stands there is not known"
    reader.at += size
    return True


def near(reader: Reader, markers: Markers) -> Machine[str]:
    """Move to the next marker; return it, not moved over, "" if there is none while `RESCAN_MAX` are held.

    What is passed stays held.
    """
    while True:
        limit = reader.base + RESCAN_MAX
        found = markers.find(reader.buffer, reader.at, ended=reader.ended)
        if found is not None and found[0] <= limit:
            reader.at = found[0]
            return found[1]
        at = len(reader.buffer)
        if found is None and not reader.ended:
            at -= markers.held(reader.buffer, reader.at)
        if at > limit or reader.ended:
            reader.at = min(at, limit)
            return ""
        reader.at = at
        yield
