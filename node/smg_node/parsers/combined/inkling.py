"""Inkling format: messages whose kind is given by a token: reasoning, text or call.

    <|message_model|><|content_thinking|>Leap year?<|end_message|><|message_model|><|content_text|>Yes.<|end_message|>
    <|message_model|>get_tide<|content_invoke_tool_json|>{"name":"get_tide","args":{"port":"Brest"}}<|end_message|>

The prompt ends with the token that begins a message. Between that and the token of its kind may
stand the message's recipient; it stands in the call once more.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import Shape, call_object
from smg_node.parsers.notations.message_bodies import Bodies
from smg_node.parsers.reading.format import FormatRequest, JointFormat, Start
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader

_MESSAGE: Final = "<|message_model|>"
_THINKING: Final = "<|content_thinking|>"
_TEXT: Final = "<|content_text|>"
_CALL: Final = "<|content_invoke_tool_json|>"
_ENDS: Final = ("<|end_message|>", "<|content_model_end_sampling|>", "<|endoftext|>")
_DROPPED: Final = (_MESSAGE, _THINKING, _TEXT, *_ENDS)
_WITH_CALLS: Final = Markers((*_DROPPED, _CALL))
_WITHOUT: Final = Markers(_DROPPED)
_KINDS: Final = Markers((_THINKING, _TEXT, _CALL))
_END: Final = Markers(_ENDS)
_THOUGHTS: Final = Bodies((_MESSAGE, _TEXT, _CALL, *_ENDS), (_THINKING,))
_SHAPE: Final = Shape(arguments=("args", "arguments", "parameters"))


def _read(reader: Reader, _asked: FormatRequest, start: Start, calls: bool) -> Machine[None]:
    markers = _WITH_CALLS if calls else _WITHOUT
    if start == "inside":
        yield from _THOUGHTS.thought(reader)
    else:
        yield from _header(reader, markers)
    while True:
        word = yield from reader.until(markers, "text")
        if not word:
            return
        if word == _CALL:
            yield from _call(reader)
            continue
        reader.at += len(word)
        reader.drop()
        if word == _THINKING:
            reader.out.thought()
            yield from _THOUGHTS.thought(reader)
        elif word == _MESSAGE:
            yield from _header(reader, markers)


def _header(reader: Reader, markers: Markers) -> Machine[None]:
    """Drop the recipient at the cursor, if one stands there."""
    yield from reader.space()
    yield from reader.name()
    kind = yield from reader.one_of(_KINDS)
    if kind in markers.words:
        reader.at -= len(kind)
        reader.drop()
    else:
        reader.back()


def _call(reader: Reader) -> Machine[None]:
    """Read the call whose token is at the cursor; if it is none, its text is."""
    reader.at += len(_CALL)
    whole = reader.out.calls < CALLS_MAX and (yield from reader.space()) == "{"
    if not whole or not (yield from call_object(reader, _SHAPE)):
        reader.note("tool_markup_unparsed")
        reader.spill()
        return
    yield from reader.space()
    if (yield from reader.one_of(_END)):
        reader.drop()
    else:
        reader.back()


FORMATS: Final = (JointFormat("inkling", _read, openers=(_THINKING,), closers=(_TEXT,)),)
