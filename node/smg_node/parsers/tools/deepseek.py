"""DeepSeek calls between its tokens: the arguments in a fence (V3, R1), or as they are (V3.1,
V3.2-Exp).

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_tide⏎```json⏎{"port":"Brest"}⏎```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_tide<｜tool▁sep｜>{"port":"Brest"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Both are read under both names; they differ in an engine's grammar only. The word before the name is
the kind of tool, of which there is only one.
"""

from typing import Final

from smg_node.parsers.notations.call_sections import Section
from smg_node.parsers.notations.json_calls import behind_name
from smg_node.parsers.reading.format import FormatRequest, Tag
from smg_node.parsers.reading.text_reader import Machine, Reader

_BEGIN: Final = "<｜tool▁calls▁begin｜>"
_END: Final = "<｜tool▁calls▁end｜>"
_CALL: Final = "<｜tool▁call▁begin｜>"
_CALL_END: Final = "<｜tool▁call▁end｜>"
_SEPARATOR: Final = "<｜tool▁sep｜>"
_FENCE: Final = "```"
_KIND: Final = "function"


def _read_one(reader: Reader, _asked: FormatRequest) -> Machine[bool]:
    name = yield from _name(reader)
    if not name:
        return False
    fenced = yield from reader.have(_FENCE)
    if fenced:
        yield from reader.have("json")
    reader.out.call(name)
    yield from behind_name(reader)
    yield from reader.space()
    if fenced and (yield from reader.have(_FENCE)):
        reader.drop()
    reader.back()
    return True


def _name(reader: Reader) -> Machine[str]:
    """Move over all that stands before the arguments; return the function's name, "" if this is no call."""
    yield from reader.space()
    name = yield from reader.name()
    yield from reader.space()
    separated = yield from reader.have(_SEPARATOR)
    first = yield from reader.space()
    if not separated:
        return name if first in ("{", "`") else ""
    if first in ("{", "`", "<"):
        return name
    if not first:
        return "" if name == _KIND else name
    name = yield from reader.name()
    return name if (yield from reader.space()) else ""


_SECTION: Final = Section((_BEGIN,), (_END,), _CALL, _CALL_END, _read_one)

FORMATS: Final = (
    _SECTION.form("deepseek_v3"),
    _SECTION.form(
        "deepseek_v31",
        Tag(f"{_BEGIN}{_CALL}NAME{_SEPARATOR}", _CALL_END, (_BEGIN,)),
        Tag(f"{_CALL}NAME{_SEPARATOR}", _CALL_END, (_CALL,)),
    ),
)
