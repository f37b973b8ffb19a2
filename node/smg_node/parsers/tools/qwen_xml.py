"""Qwen XML calls: a function and its parameters as tags, their values raw between newlines.

    <tool_call>⏎<function=find_museum>⏎<parameter=city>⏎Ghent⏎</parameter>⏎</function>⏎</tool_call>

`<function=` opens a call by itself: models leave the outer tags out. A value ends at a closer behind which
the call goes on as it must, or at the next tag at the start of a line where the closer was left out; any
other closer is part of the value, for models write code about parsers too.

A newline on each side of a value is layout, and the one behind it only if there is one before it: some families
print values in the line of their tags. Others print all of a call in one line (MiMo); where no newline stands
before the first parameter, none of a value's is layout either.
"""

import re
from typing import Final

from smg_node.parsers.notations.tagged_arguments import (
    ESCAPED,
    Parameters,
    breaks_off,
    closed,
    followers,
    parameter,
)
from smg_node.parsers.reading.format import FormatRequest, Tag, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader

_OPENER: Final = "<tool_call>"
_CLOSER: Final = "</tool_call>"
_FUNCTION: Final = "<function="
_FUNCTION_END: Final = "</function>"
_PARAMETER: Final = "<parameter="
_PARAMETER_END: Final = "</parameter>"
_KEY: Final = re.compile(r"[^<>\n]*")
_NEXT_LINES: Final = (f"\n{_PARAMETER}", f"\n{_FUNCTION_END}")
_TRIMMED: Final = Markers((f"\n{_PARAMETER_END}", _PARAMETER_END, *_NEXT_LINES), also=ESCAPED)
_VERBATIM: Final = Markers((_PARAMETER_END, *_NEXT_LINES), also=ESCAPED)
_AT_ONCE: Final = Markers((f"\n{_PARAMETER_END}", *_NEXT_LINES))
_ENDS: Final = Markers((_PARAMETER_END,))


class Functions:
    """Reads calls of this kind between one pair of outer tags."""

    def __init__(self, opener: str, closer: str) -> None:
        self.opener = opener
        self._inside = Markers((_PARAMETER, _FUNCTION_END, closer, opener, _FUNCTION))
        self._followed = followers(_PARAMETER, _FUNCTION_END, closer)
        self._closer = Markers((closer,))

    def read(self, reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
        """Read one call; see `ReadCall`."""
        reader.at += len(opener)
        if opener == self.opener:
            yield from reader.space()
            if not (yield from reader.have(_FUNCTION)):
                return False
        name = yield from reader.name()
        if not name or not (yield from reader.have(">")):
            return False
        reader.out.call(name)
        reader.drop()
        parameters = Parameters(reader.out, asked.schema(name))
        compact = (yield from reader.peek()) == "<"
        while (yield from self._parameter(reader, parameters, compact=compact)):
            pass
        return True

    def _parameter(self, reader: Reader, parameters: Parameters, *, compact: bool) -> Machine[bool]:
        """Read one parameter, or the call's end; return whether it was a parameter."""
        yield from reader.space()
        word = yield from reader.one_of(self._inside)
        if word != _PARAMETER:
            yield from self._end(reader, parameters, word)
            return False
        key = (yield from reader.pattern(_KEY)).strip()
        if not key or not (yield from reader.have(">")):
            parameters.broken()
            reader.drop()
            return False
        trims = not compact and (yield from _newline(reader))
        reader.drop()
        ended = yield from parameter(
            reader,
            parameters,
            key,
            _TRIMMED if trims else _VERBATIM,
            self._followed,
            sure=frozenset(_NEXT_LINES),
        )
        if ended:
            yield from reader.space()
            yield from reader.one_of(_ENDS)
            reader.drop()
        return bool(ended)

    def _end(self, reader: Reader, parameters: Parameters, word: str) -> Machine[None]:
        """End the call at the tag that was read, or before what is none."""
        if not word and breaks_off(reader, parameters, self._inside, _PARAMETER):
            return
        parameters.end()
        if word != _FUNCTION_END and self._closer.words[0] != word:
            reader.back()
            return
        reader.drop()
        if word == _FUNCTION_END:
            yield from closed(reader, self._closer)


def _newline(reader: Reader) -> Machine[bool]:
    """Move over the newline before a value, unless it belongs to a tag that ends it; return whether it is there."""
    word = yield from reader.one_of(_AT_ONCE)
    reader.at -= len(word)
    return bool(word) or (yield from reader.have("\n"))


def functions(name: str, opener: str, closer: str, *tags: Tag) -> ToolFormat:
    """Return the format of calls of this kind between `opener` and `closer`."""
    return ToolFormat(
        name,
        Functions(opener, closer).read,
        openers=(opener, _FUNCTION),
        tags=tags,
    )


FORMATS: Final = (
    functions(
        "qwen_xml",
        _OPENER,
        _CLOSER,
        Tag(
            f"{_OPENER}\n{_FUNCTION}NAME>\n",
            f"\n{_FUNCTION_END}\n{_CLOSER}",
            (_OPENER,),
            "qwen_xml",
        ),
    ),
)
