"""Schema calls: formats of calls forced by a JSON schema: an array of calls, or one function's bare
arguments.

Used where a call is forced and the engine's grammar cannot express the model's own format. An
engine or a model that does not keep to it is read in the model's own way, which stays on behind
these.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import Shape, call_array, call_object
from smg_node.parsers.notations.json_text import value
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.text_reader import Machine, Reader

_SHAPE: Final = Shape()


def _read(reader: Reader, _asked: FormatRequest, opener: str) -> Machine[bool]:
    if opener == "[":
        return (yield from call_array(reader, _SHAPE))
    return (yield from call_object(reader, _SHAPE))


_ARRAY: Final = ToolFormat("json_array", _read, starts=("[", "{"))


def json_array() -> ToolFormat:
    """Return the format of `[{"name": …, "parameters": …}, …]`; one object alone is one call."""
    return _ARRAY


def bare_arguments(name: str) -> ToolFormat:
    """Return the format of one object that is the arguments of the function `name`."""

    def read(reader: Reader, _asked: FormatRequest, _opener: str) -> Machine[bool]:
        if reader.out.calls:
            return False
        reader.out.call(name)
        reader.drop()
        if (yield from value(reader, say=True)):
            reader.out.end_call()
        return True

    return ToolFormat(f"bare_arguments {name}", read, starts=("{",))
