"""Pieces that parsers emit: text, reasoning, and calls with their arguments."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(slots=True)
class Text:
    """Text of the answer itself."""

    text: str


@dataclass(slots=True)
class Reasoning:
    """Text of the model's reasoning."""

    text: str


@dataclass(slots=True)
class Call:
    """The start of a call; its arguments follow."""

    name: str
    call_id: str


@dataclass(slots=True)
class Arguments:
    """More JSON text of the last call's arguments."""

    text: str


Piece: TypeAlias = Text | Reasoning | Call | Arguments
