"""GLM calls: a function's name, then its arguments in pairs, in the tags that other families put
JSON in.

    <tool_call>find_museum⏎<arg_key>city</arg_key>⏎<arg_value>Ghent</arg_value>⏎</tool_call>

The newlines may be missing. Models write a line or two before the name; those are text. Whether an opener
opens a call is known when the name is followed by its first argument or the closer. Where the first thing
behind it is a brace, the call is an object as in `hermes`: some fine-tunes print that.
"""

import re
from typing import Final

from smg_node.parsers.notations.key_value_pairs import Pairs
from smg_node.parsers.notations.tagged_arguments import Parameters
from smg_node.parsers.reading.format import FormatRequest, Tag, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import RESCAN_MAX, Machine, Reader
from smg_node.parsers.tools import hermes

_OPENER: Final = "<tool_call>"
_CLOSER: Final = "</tool_call>"
_IQUEST_OPENER: Final = "<iquest_tool_call>"
_IQUEST_CLOSER: Final = "</iquest_tool_call>"
_LINE: Final = re.compile(r"[^\n<]*")
_PAIRS: Final = Pairs(
    key=("<arg_key>", "</arg_key>"),
    value=("<arg_value>", "</arg_value>"),
    ends=(_CLOSER, _IQUEST_CLOSER),
    stops=(_OPENER, _IQUEST_OPENER),
)
_BEHIND: Final = Markers(("<arg_key>", _CLOSER, _IQUEST_CLOSER))


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read one call; see `ReadCall`."""
    reader.at += len(opener)
    if (yield from reader.space()) == "{":
        reader.back()
        return (yield from hermes.read(reader, asked, opener))
    found = yield from named(reader, asked, _BEHIND)
    if found is None:
        return False
    start, name = found
    before = reader.held()[len(opener) : start]
    if not before.isspace():
        reader.out.text(before)
    reader.out.call(name)
    reader.drop()
    yield from _PAIRS.arguments(reader, Parameters(reader.out, asked.schema(name)))
    return True


def named(reader: Reader, asked: FormatRequest, behind: Markers) -> Machine[tuple[int, str] | None]:
    """Move over lines up to one that is a function's name before one of `behind`, and over that name.

    Returns where the name begins, counted from what is held, and the name. At the end of the answer a
    declared name that fills its line will do. None if there is no such line, or too much before it.
    """
    while reader.at - reader.base <= RESCAN_MAX:
        yield from reader.space()
        start = reader.at - reader.base
        name = yield from reader.name()
        end = reader.at - reader.base
        more = yield from reader.space()
        blank = reader.held()[end:]
        if name:
            word = yield from reader.one_of(behind)
            reader.at -= len(word)
            if word or (not more and "\n" in blank and name in asked.tools):
                return start, name
        if not more:
            return None
        if name and "\n" in blank:
            continue
        yield from reader.pattern(_LINE)
        if not (yield from reader.have("\n")):
            return None
    return None


FORMATS: Final = (
    ToolFormat(
        "glm",
        read,
        openers=(_OPENER, _IQUEST_OPENER),
        tags=tuple(
            Tag(f"{_OPENER}NAME{line}", _CLOSER, (_OPENER,), "glm_xml") for line in ("", "\n")
        ),
    ),
)
