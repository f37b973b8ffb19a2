"""Hy3 and Hy4 (hy_v3) calls: arguments in pairs, as in `glm`, several calls in one wrapper; tags
may carry a suffix.

    <tool_calls><tool_call>find_museum<tool_sep>⏎<arg_key>city</arg_key>⏎<arg_value>Ghent</arg_value>⏎</tool_call></tool_calls>

Newer models leave `<tool_sep>` out. The suffix belongs to the model's vocabulary (`<tool_calls:opensource>`);
it is read from the opener, and the other tags of the call must carry the same.
"""

import re
from functools import lru_cache
from typing import Final

from smg_node.parsers.notations.key_value_pairs import Pairs
from smg_node.parsers.notations.tagged_arguments import Parameters, skip
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader
from smg_node.parsers.tools.glm import named

_SUFFIX: Final = re.compile(r"[A-Za-z0-9_-]*")
_SUFFIX_MAX: Final = 32
_OPENERS: Final = ("<tool_calls", "<tool_call")


class _Tags:
    """The tags with one suffix."""

    def __init__(self, suffix: str) -> None:
        self.wrapper = f"<tool_calls{suffix}>"
        self.wrapper_end = f"</tool_calls{suffix}>"
        self.call = f"<tool_call{suffix}>"
        self.call_end = f"</tool_call{suffix}>"
        self.separator = Markers((f"<tool_sep{suffix}>",))
        key = f"<arg_key{suffix}>"
        self.pairs = Pairs(
            key=(key, f"</arg_key{suffix}>"),
            value=(f"<arg_value{suffix}>", f"</arg_value{suffix}>"),
            ends=(self.call_end,),
            stops=(self.call,),
            outer=(self.wrapper_end,),
        )
        self.behind = Markers((*self.separator.words, key, self.call_end))
        self.opens = Markers((self.call,))
        self.closes = Markers((self.wrapper_end,))
        self.between = Markers((self.wrapper, self.wrapper_end, self.call))


@lru_cache(maxsize=64)
def _tags(suffix: str) -> _Tags:
    return _Tags(suffix)


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read one wrapper's calls, or the one call that stands without; see `ReadCall`."""
    reader.at += len(opener)
    suffix = ""
    if opener.endswith(":"):
        suffix = ":" + (yield from reader.pattern(_SUFFIX, _SUFFIX_MAX))
        if not (yield from reader.have(">")):
            return False
    tags = _tags(suffix)
    if not opener.startswith(_OPENERS[0]):
        return (yield from _call(reader, asked, tags, alone=reader.at - reader.base))
    yield from reader.space()
    if not (yield from reader.one_of(tags.opens)) or not (yield from _call(reader, asked, tags)):
        return False
    while (yield from _another(reader, asked, tags)):
        pass
    return True


def _another(reader: Reader, asked: FormatRequest, tags: _Tags) -> Machine[bool]:
    """Read on in a wrapper up to behind the next call; return whether there was one or may be."""
    word = yield from skip(reader, tags.between)
    if word == tags.call and reader.out.calls >= CALLS_MAX:
        return False
    reader.at += len(word)
    if word == tags.call and not (yield from _call(reader, asked, tags)):
        reader.note("tool_markup_unparsed")
    reader.drop()
    return word not in ("", tags.wrapper_end)


def _call(reader: Reader, asked: FormatRequest, tags: _Tags, *, alone: int = 0) -> Machine[bool]:
    """Read the call behind its opener; return whether it is one.

    `alone` is the length of an opener outside a wrapper: the lines before a name are text there.
    """
    found = yield from named(reader, asked, tags.behind)
    if found is None:
        return False
    before = reader.held()[alone : found[0]]
    if alone and not before.isspace():
        reader.out.text(before)
    reader.out.call(found[1])
    reader.drop()
    yield from reader.space()
    yield from reader.one_of(tags.separator)
    reader.drop()
    yield from tags.pairs.arguments(reader, Parameters(reader.out, asked.schema(found[1])))
    return True


FORMATS: Final = (
    ToolFormat(
        "hy_v3",
        read,
        openers=tuple(f"{opener}{end}" for opener in _OPENERS for end in (">", ":")),
    ),
)
