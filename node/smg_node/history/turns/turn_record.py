"""Turn record: turns a finished response into the one turn that is committed, or into nothing."""

from typing import Final

import msgspec

from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.items.item_document import ItemDoc, list_of
from smg_node.history.context.history_loading import LoadedHistory
from smg_storage.records import (
    NEVER_US,
    Idempotency,
    Item,
    Lease,
    Location,
    Side,
    Status,
    StoredResponse,
    Turn,
)

_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_HOUR_US: Final = 3_600_000_000
_WORD_CHARACTERS_MAX: Final = 16
_APPENDED = ("completed", "incomplete")
"""What becomes part of a conversation. What broke or was given up would stand in the way of trying again."""


def turn_of(
    hydrated: LoadedHistory,
    *,
    response_id: str,
    ended: FinalStatus,
    response: bytes,
    output: tuple[ItemDoc, ...],
    created_us: int,
    completed_us: int,
    kept_us: int,
    token: int = 0,
    idempotency: Idempotency | None = None,
    conversation_kept_us: int = 0,
) -> Turn:
    """Return the turn to be stored for a response that has `ended`: `response` is the whole public
    object.

    `kept_us` is its retention, 0 for ever. Items of a conversation are rows of their own; others
    are located within the stored document of their response. `token` is that of the lease under
    which it was made, if there is one; `idempotency` the client's key that it answers from now on.
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
        background=bool(token),
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
            idempotency=idempotency,
            token=token,
            conversation_expires_us=over_us(completed_us, conversation_kept_us),
        )
    return Turn(
        response=record,
        locations=_locations(hydrated, response_id, output),
        idempotency=idempotency,
        token=token,
    )


def over_us(appended_us: int, kept_us: int) -> int:
    """Return until when a conversation is kept to which something was appended at that time, in
    whole hours.
    """
    if not kept_us:
        return NEVER_US
    # Not with every turn: moving the end moves a row in an index.
    return -(-(appended_us + kept_us) // _HOUR_US) * _HOUR_US


def begun_row(
    hydrated: LoadedHistory,
    *,
    response_id: str,
    status: Status,
    response: bytes,
    created_us: int,
    expires_us: int,
    lease: Lease,
) -> StoredResponse:
    """Return the row of a response that is about to be made under a lease, through which every node
    finds it.

    Its `background` says only that there is a lease; the client's own choice is in the object.
    """
    ask = hydrated.ask
    return StoredResponse(
        id=response_id,
        status=status,
        model=ask.model,
        created_us=created_us,
        input=list_of(ask.items),
        response=response,
        conversation_id=ask.conversation_id,
        previous_response_id=ask.previous_response_id,
        depth=hydrated.depth,
        background=True,
        safety_identifier=ask.safety_identifier,
        owner=lease.owner,
        lease_token=lease.token,
        lease_until_us=lease.until_us,
        expires_us=expires_us,
    )


def with_status(response: bytes, status: Status) -> bytes:
    """Return the object of a response with another status."""
    return _changed(response, "status", json_line(status.value))


def without_output(response: bytes) -> bytes:
    """Return the object of a response without its output."""
    return _changed(response, "output", b"[]")


def _changed(response: bytes, key: str, value: bytes) -> bytes:
    fields = _fields(response)
    fields[key] = msgspec.Raw(value)
    return json_line(fields)


def row_of(item: ItemDoc, created_us: int, response_id: str = "") -> Item:
    """Return an item as conversations store it."""
    return Item(
        id=item.id,
        item_type=item.type,
        document=item.document,
        created_us=created_us,
        role=_word(item.role),
        status=_word(item.status),
        response_id=response_id,
    )


def _word(said: str) -> str:
    """Return a role or a status for the column beside the document, which has all that was said.

    Those of kept types are the words of some other server, or of the client. What is no word of ours in form is
    not repeated: columns hold 16 characters, and no NUL.
    """
    return said if len(said) <= _WORD_CHARACTERS_MAX and said.isprintable() else ""


def _locations(
    hydrated: LoadedHistory, response_id: str, output: tuple[ItemDoc, ...]
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
