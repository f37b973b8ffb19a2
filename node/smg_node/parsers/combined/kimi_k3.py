"""Kimi K3 format: reasoning, response and calls as elements whose brackets are tokens.

    Sum them.<|close|>think<|sep|><|open|>response<|sep|>42<|close|>response<|sep|><|close|>message<|sep|>

    <|open|>tools<|sep|><|open|>call tool="find_museum" index="1"<|sep|><|open|>argument key="max" type="number"<|sep|>
    3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>

A message has a thought, a response and calls, in that order as a rule; a thought may go straight over to the
calls. The name of an element is ordinary text behind a token, so an element counts only where it may stand:
anything else is text. `<|sep|>` may be missing, attributes come in any order. What is left of a tag where an
answer breaks off between its tokens is dropped.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import arguments, is_name
from smg_node.parsers.notations.key_value_pairs import type_named
from smg_node.parsers.notations.tagged_arguments import (
    ESCAPED,
    Parameters,
    followers,
    parameter,
    skip,
)
from smg_node.parsers.notations.token_tags import CLOSE, END, OPEN, SEP, TOKENS, Found, found
from smg_node.parsers.reading.format import FormatRequest, JointFormat, Start, Tag
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.piece_writer import NewId
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader

_ARGUMENT_ENDS: Final = Markers((f"{CLOSE}argument{SEP}", f"{CLOSE}argument"), also=ESCAPED)
_FOLLOWED: Final = followers(
    f"{OPEN}argument", f"{OPEN}call", f"{CLOSE}call", f"{CLOSE}tools", f"{CLOSE}message", END
)


class _Answer:
    """Reads one answer."""

    __slots__ = ("asked", "calls_on", "reader", "responding")

    def __init__(self, reader: Reader, asked: FormatRequest, *, calls: bool) -> None:
        self.reader = reader
        self.asked = asked
        self.calls_on = calls
        self.responding = False
        """Whether the response is open: no thought begins inside it."""

    def read(self, start: Start) -> Machine[None]:
        """Read a whole answer; see `JointFormat`."""
        reader = self.reader
        if start == "inside":
            yield from self._thought()
        while True:
            word = yield from reader.until(TOKENS, "text")
            if not word:
                return
            if word in (SEP, END):
                reader.at += len(word)
                reader.drop()
            else:
                tag = yield from found(reader)
                size = reader.at - reader.base
                if not (yield from self._element(tag)):
                    reader.at = reader.base + size
                    reader.text()

    def _element(self, tag: Found) -> Machine[bool]:
        """Read what the tag opens, which was moved over; return whether it may stand here."""
        reader = self.reader
        if tag.kind == "torn":
            reader.text()
            return True
        if not self._stands(tag):
            return False
        if tag.kind == "open" and tag.name in ("tools", "call"):
            return (yield from self._calls(tag))
        reader.drop()
        if tag.name in ("response", "message"):
            self.responding = tag.kind == "open" and tag.name == "response"
        elif tag.kind == "open" and tag.name == "think":
            reader.out.thought()
            yield from self._thought()
        return True

    def _stands(self, tag: Found) -> bool:
        """Whether the tag means something where text may stand."""
        match tag.kind:
            case "cut":
                return True
            case "close":
                return self.calls_on or tag.name in ("think", "response", "message")
            case "open" if tag.name in ("tools", "call"):
                return self.calls_on
            case "open" if tag.name == "think":
                return not self.responding
            case "open":
                return tag.name in ("response", "message")
            case _:
                return False

    def _thought(self) -> Machine[None]:
        """Read a thought that is open, up to behind its end, or to the element that ends it."""
        reader = self.reader
        while True:
            word = yield from reader.until(TOKENS, "reasoning")
            if not word:
                return
            if word in (SEP, END):
                reader.at += len(word)
                reader.drop()
                if word == END:
                    return
                continue
            tag = yield from found(reader)
            size = reader.at - reader.base
            if tag.kind == "cut" or (tag.kind == "close" and tag.name in ("think", "message")):
                reader.drop()
                return
            if tag.kind == "open" and tag.name == "response":
                reader.back()
                return
            calls = tag.kind == "open" and tag.name in ("tools", "call") and self.calls_on
            if calls and (yield from self._calls(tag)):
                return
            reader.at = reader.base + size
            reader.out.reasoning(reader.held())
            reader.drop()

    def _calls(self, tag: Found) -> Machine[bool]:
        """Read the calls that the tag opens, which was moved over; return whether there are any."""
        reader = self.reader
        if tag.name == "call":
            return (yield from self._call(tag))
        first = yield from reader.space()
        inner = yield from found(reader)
        if not first or inner.kind == "cut" or (inner.kind == "close" and inner.name == "tools"):
            reader.drop()
            return True
        if inner.kind == "torn":
            reader.text()
            return True
        if inner.kind != "open" or inner.name != "call" or not (yield from self._call(inner)):
            return False
        while (yield from self._another()):
            pass
        return True

    def _another(self) -> Machine[bool]:
        """Read on among calls up to behind the next one; return whether there may be more."""
        reader = self.reader
        word = yield from skip(reader, TOKENS)
        if word in (END, ""):
            return False
        tag = yield from found(reader)
        if tag.kind == "open" and tag.name in ("response", "think", "message"):
            reader.back()
            return False
        if tag.kind == "close" and tag.name == "message":
            reader.back()
            return False
        if tag.kind != "open" or tag.name != "call" or not (yield from self._call(tag)):
            if tag.kind == "none":
                reader.at = reader.base + 1
            reader.drop()
        return tag.kind != "close" or tag.name != "tools"

    def _call(self, tag: Found) -> Machine[bool]:
        """Read the call whose tag was moved over; return whether it is one."""
        reader = self.reader
        name = tag.attributes.get("tool", "")
        if not is_name(name) or reader.out.calls >= CALLS_MAX:
            reader.note("tool_markup_unparsed")
            return False
        reader.out.call(name)
        reader.drop()
        parameters = Parameters(reader.out, self.asked.schema(name))
        while (yield from _part(reader, parameters)):
            pass
        return True


def _part(reader: Reader, parameters: Parameters) -> Machine[bool]:
    """Read an argument, or the end of the call; return whether there may be more of it."""
    yield from reader.space()
    reader.drop()
    tag = yield from found(reader)
    if tag.kind == "open" and tag.name == "argument":
        return (yield from _argument(reader, parameters, tag))
    if tag.kind == "open" and tag.name == "json" and parameters.empty:
        return (yield from _json(reader, parameters))
    if tag.kind == "none" and (yield from _noise(reader)):
        return True
    if tag.kind == "close" and tag.name in ("argument", "json"):
        reader.drop()
        return True
    if tag.kind in ("cut", "torn") and tag.bracket == OPEN:
        parameters.broken()
    else:
        parameters.end()
    if tag.kind in ("cut", "torn") or (tag.kind == "close" and tag.name == "call"):
        reader.drop()
    else:
        reader.back()
    return False


def _noise(reader: Reader) -> Machine[bool]:
    """Drop what is neither an argument nor the end of the call; return whether there was any."""
    if not (yield from reader.peek()) or (yield from reader.have(END)):
        reader.back()
        return False
    reader.at += 1
    reader.drop()
    yield from skip(reader, TOKENS)
    return True


def _argument(reader: Reader, parameters: Parameters, tag: Found) -> Machine[bool]:
    """Read the argument whose tag was moved over; return whether it ended."""
    key = tag.attributes.get("key", "")
    reader.drop()
    if not key:
        parameters.broken()
        return False
    types = type_named(tag.attributes.get("type", ""))
    closer = yield from parameter(reader, parameters, key, _ARGUMENT_ENDS, _FOLLOWED, types=types)
    reader.at += len(closer)
    reader.drop()
    return bool(closer)


def _json(reader: Reader, parameters: Parameters) -> Machine[bool]:
    """Read arguments that are one body of JSON, whose tag was moved over; return whether it ended."""
    yield from reader.space()
    reader.drop()
    parameters.body("")
    return (yield from arguments(reader))


def _read(reader: Reader, asked: FormatRequest, start: Start, calls: bool) -> Machine[None]:
    yield from _Answer(reader, asked, calls=calls).read(start)


def _ids(_: NewId) -> NewId:
    return lambda name, ordinal: f"{name}:{ordinal}"


_CALL: Final = f'{OPEN}call tool="NAME" index="INDEX"{SEP}'
_TOOLS: Final = f"{OPEN}tools{SEP}"
_THINK: Final = f"{OPEN}think{SEP}"
_THOUGHT: Final = f"{CLOSE}think{SEP}"
_RESPONSE: Final = f"{OPEN}response{SEP}"
_RESPONDED: Final = f"{CLOSE}response{SEP}"


def _tag(before: str, trigger: str) -> Tag:
    return Tag(f"{before}{_CALL}", f"{CLOSE}call{SEP}", (trigger,), style="kimi_k3_xml")


FORMATS: Final = (
    JointFormat(
        "kimi_k3",
        _read,
        openers=(_THINK,),
        closers=(_THOUGHT, _RESPONSE),
        ids=_ids,
        # Whatever has to be printed before a forced call must be a way into it too; the last is the way into
        # another one.
        tags=(
            _tag(_TOOLS, _TOOLS),
            _tag(f"{_THOUGHT}{_TOOLS}", _THOUGHT),
            _tag(f"{_RESPONDED}{_TOOLS}", _RESPONDED),
            _tag("", f"{OPEN}call"),
        ),
        thought=Tag(_THINK, _THOUGHT, (_THINK,), style="any_text"),
        answer=Tag(_RESPONSE, _RESPONDED, (_RESPONSE,)),
        encloses=True,
    ),
)
