"""Harmony format of gpt-oss: messages with a header each, whose channel and recipient give the kind
of the body.

    <|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Four.<|return|>
    <|start|>assistant<|channel|>commentary to=functions.get_tide <|constrain|>json<|message|>{"port":"Brest"}<|call|>

    message = [<|start|> ROLE [to=WHOM]] [<|channel|> CHANNEL [to=WHOM]] [[<|constrain|>] TYPE] <|message|> BODY end

The prompt ends behind the role, so an answer begins inside a header. A message's recipient beats
its channel: a function gets a call, a tool of the model's own is part of its thoughts unless it stands for one that
is offered: `browser.search`, `browser.open` and `python`, whose body is a program, for the built-in tools. Everything
that no header claims is text, also a header that never comes to its body. Models print odd tokens
into headers; those are dropped.
"""

import re
from dataclasses import dataclass
from typing import Final

from smg_node.parsers.notations.json_calls import is_name
from smg_node.parsers.notations.message_bodies import Bodies
from smg_node.parsers.reading.format import FormatRequest, JointFormat, Start, Tag
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, NAME_MAX, Machine, Reader

_START: Final = "<|start|>"
_CHANNEL: Final = "<|channel|>"
_CONSTRAIN: Final = "<|constrain|>"
_MESSAGE: Final = "<|message|>"
_RETURN: Final = "<|return|>"
_CALL: Final = "<|call|>"
_BODY_ENDS: Final = ("<|end|>", _CALL, _RETURN, "<|endoftext|>")
_STRUCTURE: Final = (_START, _CHANNEL, *_BODY_ENDS)
_TOKENS: Final = Markers((*_STRUCTURE, _CONSTRAIN, _MESSAGE))
_IN_TEXT: Final = frozenset((_CONSTRAIN, _MESSAGE))
_BODIES: Final = Bodies(_STRUCTURE, (_CONSTRAIN, _MESSAGE))

HEADER_MAX: Final = 1024
"""Characters of a header; one that is longer is text."""
_RUN: Final = re.compile(r"[^<]*")
_WHOLE_WORD: Final = re.compile(r"[^\s<]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_]*")
_WHOM: Final = re.compile(r"(?:^|\s)to=([^\s<]+)")
_ANY_TOKEN: Final = re.compile(r"<\|[A-Za-z0-9_]*\|>")
# A header as it should be, without tokens: roles or channels, recipients, types, any number.
_PROPER: Final = re.compile(r"\s*(?:[\w.-]+)?(?:\s*to=\S*)?\s*\w*\s*")
_FUNCTIONS: Final = "functions."
_OWN_TOOLS: Final = ("python", "browser", "container")
_BROWSER: Final = "browser"
_PYTHON: Final = "python"
_BUILTINS: Final = {
    "browser.search": "web_search",
    "browser.open": "web_fetch",
    _PYTHON: "code_interpreter",
}
"""Built-in tools that these models have learnt to call by recipients of their own."""


@dataclass(slots=True)
class _Header:
    """Fields of a header read so far."""

    channel: str = ""
    whom: str = ""
    role_whom: str = ""
    proper: bool = True

    def restart(self) -> None:
        """Begin a second channel: fields since the first one do not count."""
        self.channel = ""
        self.whom = self.role_whom

    def take(self, part: str, after: str) -> None:
        """Read the part of a header that stands behind the token `after`."""
        whom = _WHOM.search(part)
        if whom is not None and not self.whom:
            self.whom = whom.group(1)
            if after != _CHANNEL:
                self.role_whom = self.whom
        if after == _CHANNEL:
            first = (part[: whom.start()] if whom else part).split()
            self.channel = first[0] if first else ""
        self.proper = self.proper and _PROPER.fullmatch(part) is not None


def _read(reader: Reader, asked: FormatRequest, start: Start, calls: bool) -> Machine[None]:
    """Read a whole answer; see `JointFormat`."""
    if start == "inside":
        yield from _BODIES.thought(reader)
    elif start == "undecided":
        yield from _first(reader, asked, calls=calls)
    while True:
        word = yield from reader.until(_TOKENS, "text")
        if not word:
            return
        reader.at += len(word)
        reader.drop()
        if word in _BODY_ENDS:
            yield from _between(reader)
        elif word not in _IN_TEXT:
            yield from _message(reader, asked, word, calls=calls)


def _between(reader: Reader) -> Machine[None]:
    """Drop white space behind a message, if nothing but another one follows."""
    if not (yield from reader.space()) or (yield from _token(reader)):
        reader.drop()
    else:
        reader.back()


def _token(reader: Reader) -> Machine[bool]:
    """Whether a token of the format stands at the cursor, which stays."""
    token = yield from reader.one_of(_TOKENS)
    reader.at -= len(token)
    return bool(token)


def _first(reader: Reader, asked: FormatRequest, *, calls: bool) -> Machine[None]:
    """Read the first message if the answer goes on with the header that the prompt began."""
    yield from reader.space()
    named = yield from reader.have("assistant")
    if named:
        yield from reader.space()
    addressed = yield from reader.have("to=")
    if addressed:
        yield from reader.pattern(_WHOLE_WORD)
        yield from reader.space()
    token = yield from _token(reader)
    if token and not (named or addressed):
        reader.drop()
        return
    over = token or (addressed and not (yield from reader.peek()))
    reader.back()
    if over:
        yield from _message(reader, asked, _START, calls=calls)


def _message(reader: Reader, asked: FormatRequest, after: str, *, calls: bool) -> Machine[None]:
    """Read a message whose header stands at the cursor, behind the token `after`, which is dropped.

    What follows a body that is text is left to `_read`: that is where text is said.
    """
    header = _Header()
    if not (yield from _header(reader, header, after)):
        if not header.proper:
            reader.out.text(_ANY_TOKEN.sub("", reader.held()))
            reader.note("header_without_body")
        reader.drop()
        return
    name = header.whom.removeprefix(_FUNCTIONS) if header.whom.startswith(_FUNCTIONS) else ""
    if calls and is_name(name) and reader.out.calls < CALLS_MAX:
        reader.out.call(name)
        reader.drop()
        yield from _BODIES.arguments(reader)
        return
    reader.drop()
    offered = _offered(header.whom, asked) if calls and reader.out.calls < CALLS_MAX else ""
    if offered:
        reader.out.call(offered)
        if header.whom == _PYTHON:
            yield from _BODIES.string(reader, "code")
        else:
            yield from _BODIES.arguments(reader)
    elif header.whom.split(".", 1)[0] in _OWN_TOOLS or (
        not header.whom and header.channel == "analysis"
    ):
        reader.out.thought()
        yield from _BODIES.thought(reader)
    elif header.whom or header.channel not in ("final", "commentary", ""):
        reader.note("tool_markup_unparsed" if header.whom else "unknown_channel")


def _offered(whom: str, asked: FormatRequest) -> str:
    """Return the name of the function that a recipient of the model's own stands for, "" where none is offered.

    What else it has learnt of a browser is called as it calls it where it is offered a part of one: it is told that
    there is no such tool.
    """
    if whom != _PYTHON and not whom.startswith(f"{_BROWSER}."):
        return ""
    kinds = {tool.builtin: name for name, tool in asked.tools.items() if tool.builtin}
    found = kinds.get(_BUILTINS.get(whom, ""), "")
    if found or whom == _PYTHON:
        return found
    browses = "web_search" in kinds or "web_fetch" in kinds
    return whom if browses and is_name(whom) else ""


def _header(reader: Reader, header: _Header, after: str) -> Machine[bool]:
    """Read a header up to behind its last token; return whether it has one.

    If it has none, what ends it is at the cursor.
    """
    while True:
        part, word = yield from _part(reader)
        header.take(part, after)
        if word == _MESSAGE:
            return True
        if word == _CHANNEL and after == _CHANNEL:
            header.restart()
        elif word not in (_CHANNEL, _CONSTRAIN):
            reader.at -= len(word)
            return False
        if reader.at - reader.base > HEADER_MAX:
            header.proper = False
            return False
        after = word


def _part(reader: Reader) -> Machine[tuple[str, str]]:
    """Move over a part of a header and the token behind it; return both, without unknown tokens.

    The token is "" at the end of the answer and where the part is too long to be one.
    """
    parts: list[str] = []
    begun = reader.at - reader.base
    while reader.at - reader.base - begun <= HEADER_MAX:
        run = yield from reader.pattern(_RUN, HEADER_MAX)
        parts.append(run)
        if (yield from reader.peek()) != "<":
            break
        word = yield from reader.one_of(_TOKENS)
        if word:
            return "".join(parts), word
        if (
            reader.ended
            and _TOKENS.held(reader.buffer, reader.at) == len(reader.buffer) - reader.at
        ):
            # The answer breaks off inside a token.
            reader.at = len(reader.buffer)
            break
        reader.at += 1
        # A token ends a word, whichever it is.
        parts.append(" " if (yield from _strange_token(reader)) else "<")
    return "".join(parts), ""


def _strange_token(reader: Reader) -> Machine[bool]:
    """Move over the rest of a special token that no header should have; return whether it is one."""
    distance = reader.at - reader.base
    if (yield from reader.have("|")):
        yield from reader.pattern(_WORD, NAME_MAX)
        if (yield from reader.have("|>")):
            return True
    reader.at = reader.base + distance
    return False


_COMMENTARY: Final = f"{_CHANNEL}commentary to={_FUNCTIONS}"
_OPENER: Final = f"{_START}assistant"
_JSON: Final = f"NAME{_CONSTRAIN}json{_MESSAGE}"

FORMATS: Final = (
    JointFormat(
        "harmony",
        _read,
        openers=(f"{_CHANNEL}analysis{_MESSAGE}",),
        closers=(f"{_CHANNEL}final{_MESSAGE}", f"{_CHANNEL}final {_CONSTRAIN}json{_MESSAGE}"),
        tags=(
            Tag(f"{_COMMENTARY}{_JSON}", "", (_COMMENTARY,)),
            Tag(f"{_OPENER}{_COMMENTARY}{_JSON}", "", (f"{_OPENER}{_COMMENTARY}",)),
        ),
        stops=(_RETURN, _CALL),
        thought=Tag(
            f"{_CHANNEL}analysis{_MESSAGE}",
            f"<|end|>{_OPENER}",
            (f"{_CHANNEL}analysis",),
            style="any_text",
        ),
        answer=Tag(f"{_CHANNEL}final {_CONSTRAIN}json{_MESSAGE}", "", (f"{_CHANNEL}final",)),
    ),
)
