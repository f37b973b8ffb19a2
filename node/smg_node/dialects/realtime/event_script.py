"""Event script: numbers the events that a session says, and writes their frames. Pure.

An id is `event_`, 16 hex digits of a counter and 8 of chance, drawn once for the session: of two events of one session the
larger id is the later one, and two sessions have none in common.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.errors import SmgError
from smg_node.core.ports import Rng
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.openai_errors import error_object

EVENT_HEAD: Final = b',"event_id":"event_%016x'


class EventScript:
    """Writes the frames of one session. `next` is the number of its next event."""

    __slots__ = ("next", "tail")

    def __init__(self, chance: Rng) -> None:
        self.next = 1
        self.tail = b"%08x" % chance.getrandbits(32)
        """What all ids end with."""

    def say(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        """Return the frame of the next event, of this type and with these fields."""
        number = self.next
        self.next = number + 1
        event_id = f"event_{number:016x}{self.tail.decode()}"
        return json_line({"type": kind, "event_id": event_id, **fields})

    def error(self, error: SmgError, event_id: str | None) -> bytes:
        """Return the frame of an error; `event_id` is that of the client's event, None where it has none."""
        return self.say("error", {"error": {**error_object(error), "event_id": event_id}})
