"""Numbered events of the Responses API, and their form in an SSE stream."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from smg_node.dialects.openai.frames import DONE, json_line

__all__ = ["DONE", "NumberedEvent", "Script", "frame"]


class NumberedEvent(NamedTuple):
    """One event: its sequence number, its type, and its JSON line."""

    sequence: int
    type: str
    data: bytes


def frame(told: NumberedEvent) -> bytes:
    """Return the event as bytes of an SSE stream."""
    opening = _OPENINGS.get(told.type) or _opening(told.type)
    return opening + told.data + b"\n\n"


def _opening(kind: str) -> bytes:
    return b"event: %b\ndata: " % kind.encode()


# Of the types that come once per token.
_OPENINGS: Final[Mapping[str, bytes]] = {
    kind: _opening(kind)
    for kind in (
        "response.output_text.delta",
        "response.reasoning_text.delta",
        "response.reasoning.delta",
        "response.function_call_arguments.delta",
        "step.delta",
    )
}


class Script:
    """Numbers events, from 0, without gaps. `next` is the number of the next event."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = 0

    def say(self, kind: str, fields: Mapping[str, Any]) -> NumberedEvent:
        """Return the next event, of this type and with these fields."""
        sequence = self.next
        self.next = sequence + 1
        data = json_line({"type": kind, "sequence_number": sequence, **fields})
        return NumberedEvent(sequence, kind, data)
