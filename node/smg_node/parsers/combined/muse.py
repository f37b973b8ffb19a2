"""Muse format: messages with a recipient each: the model itself, the user or a function.

    to=self<|message|>Rhyme with sea.<|eom|><|start|>assistant to=user<|message|>Free.<|eot|>
    <|start|>assistant to=find_museum<|message|><atem:function_calls><atem:invoke name="find_museum">…<|eot|>

What a model says to itself is a thought, what it says to the user is text, and to a function it says a call.
The prompt ends behind the role, so an answer begins inside a header.
"""

import re
from typing import Final

from smg_node.parsers.notations.message_bodies import Bodies
from smg_node.parsers.notations.xml_elements import Elements
from smg_node.parsers.reading.format import FormatRequest, JointFormat, Start
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader

_START: Final = "<|start|>"
_MESSAGE: Final = "<|message|>"
_EOT: Final = "<|eot|>"
_ENDS: Final = ("<|eom|>", _EOT, "<|end_of_text|>")
_CALLS: Final = "<atem:function_calls>"
_INVOKE: Final = "<atem:invoke "
_DROPPED: Final = (_START, _MESSAGE, *_ENDS)
_WITH_CALLS: Final = Markers((*_DROPPED, _CALLS, _INVOKE))
_WITHOUT: Final = Markers(_DROPPED)
_TOKENS: Final = Markers((_START, *_ENDS))
_THOUGHTS: Final = Bodies((_START, *_ENDS), (_MESSAGE,))
_ELEMENTS: Final = Elements(
    call=(_INVOKE,),
    call_ends=("</atem:invoke>",),
    parameter=("<atem:parameter ",),
    parameter_ends=("</atem:parameter>",),
    wrappers=(_CALLS,),
    wrapper_ends=("</atem:function_calls>",),
)
_WHOM: Final = re.compile(r"[^\s<]*")


def _read(reader: Reader, asked: FormatRequest, start: Start, calls: bool) -> Machine[None]:
    markers = _WITH_CALLS if calls else _WITHOUT
    if start == "inside":
        yield from _THOUGHTS.thought(reader)
    elif start == "undecided":
        yield from _header(reader)
    while True:
        word = yield from reader.until(markers, "text")
        if not word:
            return
        if word in (_CALLS, _INVOKE):
            yield from _call(reader, asked, word)
            continue
        reader.at += len(word)
        reader.drop()
        if word == _START:
            yield from _header(reader)
        elif word != _MESSAGE:
            yield from _between(reader)


def _header(reader: Reader) -> Machine[None]:
    """Read the header at the cursor, and the thought that it may begin; what is no header stays."""
    yield from reader.space()
    named = yield from reader.have("assistant")
    if named:
        yield from reader.space()
    whom = ""
    if (yield from reader.have("to=")):
        whom = yield from reader.pattern(_WHOM)
        yield from reader.space()
    if not (yield from reader.peek()):
        # The answer breaks off inside a header; without a recipient it may be text.
        if whom:
            reader.drop()
        else:
            reader.back()
    elif (whom or named or not reader.held().strip()) and (yield from reader.have(_MESSAGE)):
        reader.drop()
        if whom == "self":
            reader.out.thought()
            yield from _THOUGHTS.thought(reader)
    else:
        reader.back()


def _between(reader: Reader) -> Machine[None]:
    """Drop white space behind a message, if nothing but another one follows."""
    if not (yield from reader.space()):
        reader.drop()
        return
    word = yield from reader.one_of(_TOKENS)
    reader.at -= len(word)
    if word:
        reader.drop()
    else:
        reader.back()


def _call(reader: Reader, asked: FormatRequest, opener: str) -> Machine[None]:
    if reader.out.calls < CALLS_MAX and (yield from _ELEMENTS.read(reader, asked, opener)):
        return
    reader.note("tool_markup_unparsed")
    reader.spill()


FORMATS: Final = (
    JointFormat(
        "muse",
        _read,
        openers=(f"to=self{_MESSAGE}",),
        closers=(f"to=user{_MESSAGE}",),
    ),
)
