"""Client event: one text frame of a client as a checked head, its id and its type. Pure."""

from typing import Any, Final

from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.json_body import read_json

EVENT_ID_CHARACTERS_MAX: Final = 512
HEAD: Final = ("type", "event_id")
"""Keys of every event."""


def object_in(frame: bytes) -> dict[str, Any]:
    """Return the object that a frame spells; INVALID_REQUEST `invalid_payload` for anything else."""
    try:
        return read_json(frame)
    except SmgError as error:
        message = error.message.replace("the body", "the event")
        raise invalid(message, None, "invalid_payload") from error


def event_id_of(event: Cursor) -> str | None:
    """Return the client's name for the event; INVALID_REQUEST for one that is none, and the error then has none either."""
    event_id = event.text("event_id", characters_max=EVENT_ID_CHARACTERS_MAX)
    event.problems.check()
    return event_id


def type_of(event: Cursor) -> str:
    """Return the type; INVALID_REQUEST `invalid_payload` for an event without one."""
    kind = event.values.get("type")
    if type(kind) is not str:
        raise invalid("an event must have a type, a string", "type", "invalid_payload")
    return kind


def unknown_event(kind: str) -> SmgError:
    """Return the error for a type that is none of a client's events."""
    return invalid(f"there is no event of type {quoted(kind)}", "type", "unknown_event")


def named_item(event: Cursor) -> str:
    """Return the item that an event of nothing else is about; INVALID_REQUEST if it names none."""
    event.only((*HEAD, "item_id"))
    item_id = event.text("item_id", required=True)
    event.problems.check()
    assert item_id is not None, "it is required"
    return item_id
