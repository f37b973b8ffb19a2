"""What a response leaves behind: one turn, written as one, or nothing."""

from smg_node.dialects.responses.ended import Ended
from smg_node.dialects.responses.item import ItemDoc, list_of
from smg_node.history.hydrate import Hydrated
from smg_storage.records import (
    NEVER_US,
    Item,
    Location,
    Side,
    Status,
    StoredResponse,
    Turn,
)

_APPENDED = ("completed", "incomplete")
"""What becomes part of a conversation. What broke or was given up would stand in the way of trying again."""


def turn_of(
    hydrated: Hydrated,
    *,
    response_id: str,
    ended: Ended,
    response: bytes,
    output: tuple[ItemDoc, ...],
    created_us: int,
    completed_us: int,
    kept_us: int,
) -> Turn:
    """Return all that is to be kept of a response that has `ended`: `response` is the whole object, as it is answered.

    `kept_us` is for how long, 0 for ever. Items of a conversation are rows of their own; others are found where they
    stand in their response.
    """
    ask = hydrated.ask
    record = StoredResponse(
        id=response_id,
        status=Status(ended.status),
        model=ask.model,
        created_us=created_us,
        input=list_of(ask.items),
        response=response,
        conversation_id=ask.conversation_id,
        previous_response_id=ask.previous_response_id,
        depth=hydrated.depth,
        background=ask.background,
        completed_us=completed_us,
        safety_identifier=ask.safety_identifier,
        expires_us=completed_us + kept_us if kept_us else NEVER_US,
    )
    if ask.conversation_id and ended.status in _APPENDED:
        items = (*ask.items, *output)
        return Turn(
            response=record,
            items=tuple(row_of(item, created_us, response_id) for item in items),
            links=tuple(item.id for item in items),
        )
    return Turn(response=record, locations=_locations(hydrated, response_id, output))


def row_of(item: ItemDoc, created_us: int, response_id: str = "") -> Item:
    """Return an item as conversations keep it."""
    return Item(
        id=item.id,
        item_type=item.type,
        document=item.document,
        created_us=created_us,
        role=item.role,
        status=item.status,
        response_id=response_id,
    )


def _locations(
    hydrated: Hydrated, response_id: str, output: tuple[ItemDoc, ...]
) -> tuple[Location, ...]:
    asked = [
        Location(item.id, response_id, Side.INPUT, place)
        for place, item in enumerate(hydrated.ask.items)
        if item.id not in hydrated.referred
    ]
    answered = [
        Location(item.id, response_id, Side.OUTPUT, place) for place, item in enumerate(output)
    ]
    return (*asked, *answered)
