"""Brace calls: `call:name{key:value,…}` with quotes of a family's own, one or more behind an
opener.
"""

from smg_node.parsers.notations.python_calls import call
from smg_node.parsers.notations.python_literals import Notation, Quote
from smg_node.parsers.reading.format import FormatRequest, ReadCall
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader


def own_calls(quote: str, end: str) -> ReadCall:
    """Return the reader of calls before an `end`, whose strings stand between two `quote` or are JSON's.

    The word `call` may be missing, and parentheses may stand for the braces.
    """
    notation = Notation(Quote(quote, escapes=False), Quote('"'), assign=":=", named=True)
    ends = Markers((end,))

    def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
        reader.at += len(opener)
        yield from _word(reader)
        found = yield from call(reader, asked, notation, ends=ends)
        any_call = found != "nothing"
        while found == "whole":
            if (yield from reader.space()) == ",":
                reader.at += 1
            if not (yield from _word(reader)):
                break
            found = yield from call(reader, asked, notation, ends=ends)
        if any_call:
            reader.back()
        return any_call

    return read


def _word(reader: Reader) -> Machine[bool]:
    """Move over `call:`, or the colon alone; return whether it was there."""
    yield from reader.space()
    size = reader.at - reader.base
    if (yield from reader.have("call:")):
        return True
    reader.at = reader.base + size
    return (yield from reader.have(":"))
