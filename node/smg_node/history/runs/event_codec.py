"""Event codec: batches of a response's events as blobs in the store: deflate over JSON lines.

Each line is the event as it stands in the stream: what comes out is byte for byte what went in. The
terminal event is not in the log; it is made from the response's object, so that every reader of the
row has it.
"""

import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_storage.records import EventBlob

LEVEL: Final = 1
"""Events repeat themselves so much that more effort gains next to nothing."""
_SMALL_BYTES: Final = 32 << 10
"""A flush of one stream is a few KB. For more than this the usual window pays."""
_SMALL_WINDOW_BITS: Final = 13
_SMALL_MEMORY_LEVEL: Final = 6
"""48 KB of tables instead of 260: what is asked for and given back at every flush costs more than packing does."""
UNPACKED_BYTES_MAX: Final = 64 << 20
"""More in one blob is a damaged one, or none of ours."""

_ENDINGS: Final = {
    "completed": "response.completed",
    "failed": "response.failed",
    "incomplete": "response.incomplete",
    # There is no event of its own for what was given up.
    "cancelled": "response.incomplete",
}


class _Line(msgspec.Struct):
    """Head of an event: of a response, or of an interaction, whose number is a text."""

    type: str = ""
    sequence_number: int = -1
    event_type: str = ""
    event_id: str = ""


class _Object(msgspec.Struct):
    status: str
    object: str = ""


_line: Final = msgspec.json.Decoder(_Line).decode
_object: Final = msgspec.json.Decoder(_Object).decode


def packed(events: Sequence[NumberedEvent]) -> EventBlob:
    """Return events, at least one and numbered without a gap, as one blob."""
    assert events, "a blob has an event at least"
    first, last = events[0].sequence, events[-1].sequence
    assert last - first + 1 == len(events), "events of a blob follow one another"
    lines = b"\n".join([event.data for event in events])
    return EventBlob(first=first, last=last, payload=_deflated(lines))


def unpacked(blob: EventBlob) -> list[NumberedEvent]:
    """Return the events of a blob; ValueError if they are not those that its numbers promise."""
    events = [_told(line) for line in _inflated(blob.payload).split(b"\n")]
    numbers = [event.sequence for event in events]
    if numbers != list(range(blob.first, blob.last + 1)):
        raise ValueError(f"the blob does not have the events {blob.first} to {blob.last}")
    return events


def terminal(response: bytes, sequence: int) -> NumberedEvent:
    """Return the terminal event with this number for a response's object; ValueError if the object
    is not final.

    `response` is the object as it was kept; it stands in the event byte for byte.
    """
    try:
        shown = _object(response)
    except msgspec.DecodeError as error:
        raise ValueError("this is no response") from error
    kind = _ENDINGS.get(shown.status)
    if kind is None:
        raise ValueError(f"a response that is {shown.status[:32]!r} has not ended")
    if shown.object == "interaction":
        # Imported here: most nodes never need it.
        from smg_node.dialects.interactions.events.interaction_object import last_event

        return last_event(response, sequence)
    fields = {"type": kind, "sequence_number": sequence, "response": msgspec.Raw(response)}
    return NumberedEvent(sequence, kind, json_line(fields))


def _deflated(lines: bytes) -> bytes:
    """Return a stream that any inflater reads, whatever window it was made with."""
    if len(lines) > _SMALL_BYTES:
        return zlib.compress(lines, LEVEL)
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, _SMALL_WINDOW_BITS, _SMALL_MEMORY_LEVEL)
    return packer.compress(lines) + packer.flush()


def _inflated(payload: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        lines = stream.decompress(payload, UNPACKED_BYTES_MAX)
    except zlib.error as error:
        raise ValueError("the blob cannot be unpacked") from error
    if not stream.eof or stream.unused_data:
        raise ValueError("the blob is not whole, or too large")
    return lines


def _told(line: bytes) -> NumberedEvent:
    try:
        head = _line(line)
    except msgspec.DecodeError as error:
        raise ValueError("the blob has a line that is no event") from error
    if head.type:
        return NumberedEvent(head.sequence_number, head.type, line)
    if not head.event_type or not head.event_id.isdecimal():
        raise ValueError("the blob has a line that is no event")
    return NumberedEvent(int(head.event_id), head.event_type, line)
