"""Served call ids: ids of calls of tools on this node's side, the same in a loop's prompts and in a history of it. Pure.

    call_ + tail         as the model is told of the call
    mcp_ … + tail        as its client is: the id of an item or a block ends with the same 14 hexadecimal digits

So a template that prints ids makes of the history what it made in the loop. Nine letters and digits, the ids that models
of Mistral print and their templates insist on, stay as they are: as a number to base 62 they are the tail. Other tails are
larger numbers.
"""

import re
from hashlib import blake2b
from typing import Final

TAIL_CHARS: Final = 14
_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NINE: Final = 9
_NINES: Final = len(_LETTERS) ** _NINE
"""So many ids of nine letters and digits there are: less than 2^54, where tails have 56 bits."""
_TOLD: Final = re.compile(r"call_([0-9a-f]{14})")
_SHOWN: Final = re.compile(
    r"(?:mcp|ws|fs|ci|ig|tsc)_[0-9a-f]{34}([0-9a-f]{14})"
    r"|(?:mcptoolu|srvtoolu)_[0-9a-f]{10}([0-9a-f]{14})"
)


class ServedCallIds:
    """Ids of the calls of one answer."""

    def __init__(self, answer_id: str) -> None:
        self._answer_id = answer_id
        self._given: set[str] = set()

    def give(self, call_id: str) -> str:
        """Return the id of the next call, which its model gave another; no two calls of an answer have the same."""
        made = call_id
        if _number(call_id) is None or call_id in self._given:
            name = f"{self._answer_id}:{len(self._given)}"
            number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest())
            made = f"call_{_NINES + number % (16**TAIL_CHARS - _NINES):014x}"
        self._given.add(made)
        return made


def tail_of(call_id: str) -> str:
    """Return the tail of an id as models are told it; "" for one of other origin."""
    number = _number(call_id)
    if number is not None:
        return f"{number:014x}"
    found = _TOLD.fullmatch(call_id)
    return found[1] if found is not None else ""


def prompt_id(shown_id: str) -> str:
    """Return the id that a model is told of a call which its client knows by another; that of others is the same."""
    found = _SHOWN.fullmatch(shown_id)
    if found is None:
        return shown_id
    tail: str = found[1] or found[2]
    number = int(tail, 16)
    return f"call_{tail}" if number >= _NINES else _nine_letters(number)


def _nine_letters(number: int) -> str:
    letters = ""
    for _ in range(_NINE):
        number, at = divmod(number, len(_LETTERS))
        letters += _LETTERS[at]
    return letters


def _number(call_id: str) -> int | None:
    if len(call_id) != _NINE or not (call_id.isascii() and call_id.isalnum()):
        return None
    number = 0
    for letter in reversed(call_id):
        number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number
