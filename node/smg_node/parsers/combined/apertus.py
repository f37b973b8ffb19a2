"""Apertus format: reasoning and calls between pairs of tokens, calls inside the reasoning too.

    <|inner_prefix|>Metric units.<|inner_suffix|>About 5 km.
    <|inner_prefix|>I need tides.<|tools_prefix|>[{"get_tide": {"port": "Brest"}}]<|tools_suffix|>

The one key of a call's object is the function's name. A thought goes on behind the calls inside it.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import arguments, is_name
from smg_node.parsers.notations.json_text import string
from smg_node.parsers.notations.tagged_arguments import skip
from smg_node.parsers.reading.format import FormatRequest, JointFormat, Start
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, NAME_MAX, Machine, Reader

_INNER: Final = "<|inner_prefix|>"
_OUTER: Final = "<|inner_suffix|>"
_TOOLS: Final = "<|tools_prefix|>"
_TOOLS_END: Final = "<|tools_suffix|>"
_CONTROLS: Final = ("<|assistant_end|>", "</s>")
_CLOSES: Final = Markers((_TOOLS_END,))
_LIST_ENDS: Final = Markers((_TOOLS_END, _OUTER, *_CONTROLS))


def _markers(*more: str) -> tuple[Markers, Markers]:
    """Return what counts in an answer and in a thought."""
    words = (*_CONTROLS, *more)
    return Markers((*words, _INNER, _OUTER)), Markers((*words, _OUTER))


_WITH_CALLS: Final = _markers(_TOOLS, _TOOLS_END)
_WITHOUT: Final = _markers()


def _read(reader: Reader, _asked: FormatRequest, start: Start, calls: bool) -> Machine[None]:
    content, thought = _WITH_CALLS if calls else _WITHOUT
    inside = start == "inside"
    while True:
        fresh = reader.out.fresh
        word = yield from reader.until(
            thought if inside else content, "reasoning" if inside else "text"
        )
        if not word:
            return
        if word == _TOOLS:
            if not (yield from _calls(reader)):
                reader.note("tool_markup_unparsed")
                reader.at = reader.base + 1
                _say(reader, inside=inside)
            continue
        reader.at += len(word)
        if word == _OUTER and not inside and not (fresh and reader.out.fresh):
            # Only right behind a thought may a second closer stand.
            reader.text()
            continue
        reader.drop()
        if word == _INNER:
            reader.out.thought()
        inside = word == _INNER or (inside and word not in (_OUTER, *_CONTROLS))


def _say(reader: Reader, *, inside: bool) -> None:
    if inside:
        reader.out.reasoning(reader.held())
        reader.drop()
    else:
        reader.text()


def _calls(reader: Reader) -> Machine[bool]:
    """Read the calls whose opener is at the cursor; return whether there are any."""
    reader.at += len(_TOOLS)
    yield from reader.space()
    if not (yield from reader.have("[")):
        return False
    any_call = False
    while True:
        character = yield from reader.space()
        if character == "{" or (character == "," and any_call):
            reader.at += 1
            # The key behind a comma belongs to the same object, or to the next one.
            yield from reader.space()
            yield from reader.have("{")
            if not (yield from _call(reader)):
                if any_call:
                    # What is between calls and the end of their list means nothing.
                    reader.drop()
                    yield from skip(reader, _LIST_ENDS)
                break
            any_call = True
        elif character in ("}", "]") and any_call:
            reader.at += 1
            reader.drop()
            if character == "]":
                break
        else:
            break
    if any_call:
        yield from _end(reader)
    return any_call


def _call(reader: Reader) -> Machine[bool]:
    """Read `"name": arguments`; return whether that is a call."""
    yield from reader.space()
    name = yield from string(reader, NAME_MAX)
    if name is None or not is_name(name) or reader.out.calls >= CALLS_MAX:
        return False
    if (yield from reader.space()) != ":":
        return False
    reader.at += 1
    if not (yield from reader.space()):
        return False
    reader.out.call(name)
    reader.drop()
    if (yield from arguments(reader)):
        reader.out.end_call()
    return True


def _end(reader: Reader) -> Machine[None]:
    """Drop what closes the calls, if it is there."""
    yield from reader.space()
    if (yield from reader.one_of(_CLOSES)) or not (yield from reader.peek()):
        reader.drop()
    else:
        reader.back()


FORMATS: Final = (
    JointFormat("apertus", _read, openers=(_INNER,), closers=(_OUTER,), encloses=True),
)
