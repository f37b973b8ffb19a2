"""K2 Horizon format: reasoning and calls between tags of the family's own.

    Look at the bill.</ifm|think_fast>It is a heron.
    <ifm|tool_calls><ifm|tool_call>find_museum<ifm|arg_key>city</ifm|arg_key><ifm|arg_type>string</ifm|arg_type>
    <ifm|arg_value>Ghent</ifm|arg_value></ifm|tool_call></ifm|tool_calls>

The prompt opens the thought, in one of three tags that tell the effort. A call ends a thought that was not
closed. Which way calls are printed was chosen with the prompt: pairs with types or without, or
`{"name": …, "arguments": …}`; what stands behind the opener tells.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import Shape, call_object, is_name
from smg_node.parsers.notations.key_value_pairs import Pairs
from smg_node.parsers.notations.tagged_arguments import Parameters, skip
from smg_node.parsers.reading.answer_grammar import AnswerFormat, answer
from smg_node.parsers.reading.format import (
    FormatRequest,
    JointFormat,
    Start,
    ThoughtFormat,
    ToolFormat,
)
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader

_WRAPPER: Final = "<ifm|tool_calls>"
_WRAPPER_END: Final = "</ifm|tool_calls>"
_CALL: Final = "<ifm|tool_call>"
_CALL_END: Final = "</ifm|tool_call>"
_KEY: Final = "<ifm|arg_key>"
_CONTROLS: Final = ("<|ifm|im_end|>", "<|ifm|end_of_text|>")
_THINK: Final = ("think", "think_fast", "think_faster")

_PAIRS: Final = Pairs(
    key=(_KEY, "</ifm|arg_key>"),
    kind=("<ifm|arg_type>", "</ifm|arg_type>"),
    value=("<ifm|arg_value>", "</ifm|arg_value>"),
    ends=(_CALL_END,),
    stops=(_CALL, _WRAPPER_END),
)
_SHAPE: Final = Shape()
_OPENS: Final = Markers((_CALL,))
_CLOSES: Final = Markers((_CALL_END,))
_BEHIND: Final = Markers((_KEY, _CALL, _CALL_END, _WRAPPER_END))
_BETWEEN: Final = Markers((_WRAPPER, _WRAPPER_END, _CALL))


def _calls(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read one wrapper's calls, or the one that stands without; see `ReadCall`."""
    reader.at += len(opener)
    if opener == _WRAPPER:
        yield from reader.space()
        if not (yield from reader.one_of(_OPENS)):
            return False
    if not (yield from _call(reader, asked)):
        return False
    while opener == _WRAPPER and (yield from _another(reader, asked)):
        pass
    return True


def _another(reader: Reader, asked: FormatRequest) -> Machine[bool]:
    """Read on in a wrapper up to behind the next call; return whether there may be more."""
    word = yield from skip(reader, _BETWEEN)
    if word == _CALL and reader.out.calls >= CALLS_MAX:
        return False
    reader.at += len(word)
    if word == _CALL and not (yield from _call(reader, asked)):
        reader.note("tool_markup_unparsed")
    reader.drop()
    return word not in ("", _WRAPPER_END)


def _call(reader: Reader, asked: FormatRequest) -> Machine[bool]:
    """Read the call behind its opener; return whether it is one."""
    if (yield from reader.space()) == "{":
        if not (yield from call_object(reader, _SHAPE)):
            return False
        yield from reader.space()
        if (yield from reader.one_of(_CLOSES)):
            reader.drop()
        else:
            reader.back()
        return True
    name = yield from reader.name()
    more = yield from reader.space()
    if not is_name(name):
        return False
    if (yield from _alone(reader)) if more else name not in asked.tools:
        return False
    reader.out.call(name)
    reader.drop()
    yield from _PAIRS.arguments(reader, Parameters(reader.out, asked.schema(name)))
    return True


def _alone(reader: Reader) -> Machine[bool]:
    """Whether nothing of a call stands at the cursor, which stays."""
    word = yield from reader.one_of(_BEHIND)
    reader.at -= len(word)
    return not word


_THOUGHT: Final = ThoughtFormat(
    "k2_horizon",
    openers=tuple(f"<ifm|{name}>" for name in _THINK),
    closers=tuple(f"</ifm|{name}>" for name in _THINK),
    implicit="anywhere",
)
_TOOLS: Final = ToolFormat(
    "k2_horizon", _calls, openers=(_WRAPPER, _CALL), noise=(_WRAPPER_END, _CALL_END)
)
_WITH_CALLS: Final = AnswerFormat(_THOUGHT, (_TOOLS,), _CONTROLS)
_WITHOUT: Final = AnswerFormat(_THOUGHT, (), _CONTROLS)


def _read(reader: Reader, asked: FormatRequest, start: Start, calls: bool) -> Machine[None]:
    yield from answer(reader, asked, _WITH_CALLS if calls else _WITHOUT, start)


FORMATS: Final = (
    JointFormat(
        "k2_horizon",
        _read,
        openers=_THOUGHT.openers,
        closers=_THOUGHT.closers,
        start="inside",
    ),
)
