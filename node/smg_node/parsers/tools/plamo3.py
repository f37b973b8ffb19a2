"""PLaMo 3 (plamo3) calls: elements whose tags are spelled in several tokens each, the arguments as
JSON.

With B(x) for `<|plamo:begin_x:plamo|>` and E(x) for `<|plamo:end_x:plamo|>`:

    B(tool_requests) B(tool_request) B(tool_name) get_tide E(tool_name)
    B(tool_arguments) <|plamo:constrain|>json<|plamo:msg|> {"port":"Brest"} E(tool_arguments) E(tool_request) E(tool_requests)
"""

from typing import Final

from smg_node.parsers.notations.call_sections import Section, cut_short
from smg_node.parsers.notations.json_calls import EMPTY, OPEN, behind_name
from smg_node.parsers.reading.format import FormatRequest
from smg_node.parsers.reading.text_reader import Machine, Reader


def _begin(name: str) -> str:
    return f"<|plamo:begin_{name}:plamo|>"


def _end(name: str) -> str:
    return f"<|plamo:end_{name}:plamo|>"


_CONSTRAIN: Final = "<|plamo:constrain|>"
_MESSAGE: Final = "<|plamo:msg|>"
_ARGUMENTS: Final = "tool_arguments"
_NAME: Final = "tool_name"
_REQUEST: Final = "tool_request"
_REQUESTS: Final = "tool_requests"


def _read_one(reader: Reader, _asked: FormatRequest) -> Machine[bool]:
    yield from reader.space()
    if not (yield from reader.have(_begin(_NAME))):
        return False
    yield from reader.space()
    name = yield from reader.name()
    yield from reader.space()
    if not name or not (yield from reader.have(_end(_NAME))):
        return False
    reader.out.call(name)
    reader.drop()
    yield from reader.space()
    if not (yield from reader.have(_begin(_ARGUMENTS))):
        yield from _without(reader)
        return True
    yield from reader.space()
    if (yield from reader.have(_CONSTRAIN)):
        yield from reader.name()
    yield from reader.have(_MESSAGE)
    yield from behind_name(reader)
    yield from reader.space()
    end = _end(_ARGUMENTS)
    if not (yield from reader.have(end)) and not cut_short(reader, end):
        reader.back()
    reader.drop()
    return True


def _without(reader: Reader) -> Machine[None]:
    """Say that a call has no arguments, unless the answer breaks off where they would begin."""
    if not (yield from reader.peek()) or cut_short(reader, _begin(_ARGUMENTS)):
        reader.drop()
        reader.out.arguments(OPEN)
        return
    reader.back()
    reader.out.arguments(EMPTY)
    reader.out.end_call()


_SECTION: Final = Section(
    (_begin(_REQUESTS),), (_end(_REQUESTS),), _begin(_REQUEST), _end(_REQUEST), _read_one
)

FORMATS: Final = (_SECTION.form("plamo3"),)
