"""Llama 3.1 to 3.3 JSON calls: behind a token that may be missing, several with semicolons between
them.

    <|python_tag|>{"name": "get_tide", "parameters": {"port": "Brest"}};{"name": …}
    <function=get_tide>{"port": "Brest"}</function>
    <|python_tag|>brave_search.call(query="tides of Brest")

Without the token it is a call only where the answer begins, and as `json` has it. The token also begins calls
of functions the model was trained with, and code for its own interpreter. Those are calls if the client
declared a function of that name, or one for code; else they are text.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import EMPTY, Shape, behind_name, calls
from smg_node.parsers.notations.python_calls import call
from smg_node.parsers.notations.python_literals import PYTHON
from smg_node.parsers.notations.schema_types import STRING
from smg_node.parsers.notations.tagged_arguments import ESCAPED, Parameters, parameter
from smg_node.parsers.reading.format import FormatRequest, Tag, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader
from smg_node.parsers.tools import json

_TAG: Final = "<|python_tag|>"
_FUNCTION: Final = "<function="
_FUNCTION_END: Final = "</function>"
_MARKED: Final = Shape(names=json.NAMES)
_NEXT: Final = Markers((_TAG,))
_FUNCTION_ENDS: Final = Markers((_FUNCTION_END,))
_CODE_ENDS: Final = Markers(("<|eom_id|>", "<|eot_id|>"), also=ESCAPED)
_METHOD: Final = ".call"
_INTERPRETERS: Final = ("code_interpreter", "ipython", "python")


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read the calls that one opener, or the beginning of the answer, begins; see `ReadCall`."""
    if opener == _FUNCTION:
        return (yield from _function(reader))
    marked = opener == _TAG
    if marked:
        reader.at += len(_TAG)
    if (yield from _objects(reader, asked, marked=marked)):
        return True
    return marked and (yield from _code(reader, asked))


def _objects(reader: Reader, asked: FormatRequest, *, marked: bool) -> Machine[bool]:
    """Read calls as objects, the token before any of them; return whether the first is one."""
    any_call = False
    shape = _MARKED if marked else Shape(names=json.NAMES, declared=asked.tools)
    while (yield from calls(reader, shape)):
        any_call = True
        yield from reader.space()
        yield from reader.have(";")
        yield from reader.space()
        if not (yield from reader.one_of(_NEXT)):
            break
        shape = _MARKED
    if any_call:
        reader.back()
    return any_call


def _function(reader: Reader) -> Machine[bool]:
    """Read a call whose name is in a tag."""
    reader.at += len(_FUNCTION)
    name = yield from reader.name()
    if not name or not (yield from reader.have(">")):
        return False
    first = yield from reader.space()
    if (yield from reader.one_of(_FUNCTION_ENDS)):
        reader.out.call(name)
        reader.drop()
        reader.out.arguments(EMPTY)
        reader.out.end_call()
        return True
    if first and first not in '{"':
        return False
    reader.out.call(name)
    yield from behind_name(reader)
    yield from reader.space()
    if (yield from reader.one_of(_FUNCTION_ENDS)):
        reader.drop()
    else:
        reader.back()
    return True


def _code(reader: Reader, asked: FormatRequest) -> Machine[bool]:
    """Read what stands behind the token as code: a call of a built-in function, or text for the interpreter.

    False if the client declared no function for it.
    """
    looked = reader.at - reader.base
    reader.back()
    reader.at += len(_TAG)
    yield from reader.space()
    start = reader.at - reader.base
    if (yield from call(reader, asked, PYTHON, declared=True, method=_METHOD)) != "nothing":
        return True
    name = next((name for name in _INTERPRETERS if name in asked.tools), "")
    if not name:
        # What was looked through in vain is not looked through again if it is much.
        reader.at = max(reader.at, reader.base + looked)
        return False
    reader.at = reader.base + start
    reader.out.call(name)
    reader.drop()
    schema = asked.schema(name)
    properties = (schema or {}).get("properties")
    keys = list(properties) if isinstance(properties, dict) else []
    parameters = Parameters(reader.out, schema)
    key = keys[0] if len(keys) == 1 else "code"
    # Nothing but the end of the turn ends code, and engines leave the token for that out.
    if not (yield from parameter(reader, parameters, key, _CODE_ENDS, types=STRING)):
        parameters.json('"')
    parameters.end()
    return True


FORMATS: Final = (
    ToolFormat(
        "llama3_json",
        read,
        openers=(_TAG, _FUNCTION),
        starts=json.STARTS,
        noise=(_FUNCTION_END,),
        tags=(Tag('{"name": "NAME", "parameters": ', "}", ('{"name": ',)),),
    ),
)
