"""Argument text: the arguments of a call of the history as the text of an object, which vendors and servers insist on. Pure."""

import json
from typing import Final

import msgspec

from smg_node.core.generation.call_arguments import (
    UNREADABLE_KEY,
    read_arguments,
    without_halves,
)

_decode: Final = msgspec.json.Decoder().decode


def object_text(text: str) -> str:
    """Return the text of an object; servers fail on anything else, which a truncated call has.

    What is no strict JSON is written anew, and what is no object is put into one.
    """
    try:
        if isinstance(_decode(text), dict):
            return text
    except (msgspec.DecodeError, RecursionError, ValueError):
        pass
    read = read_arguments(text)
    said = {UNREADABLE_KEY: without_halves(text)} if read is None else read
    return json.dumps(said, ensure_ascii=False)
