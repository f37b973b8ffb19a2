"""Located item: the item that a location means: a piece of a
response's own documents, byte for byte.
"""

import msgspec

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Item, Location, Side, StoredResponse


class _Output(msgspec.Struct):
    output: list[msgspec.Raw] = []


class _Told(msgspec.Struct):
    """What an item says of itself; a message may leave out its type."""

    type: str | None = None
    role: str | None = None
    status: str | None = None


def located_item(response: StoredResponse, location: Location) -> Item:
    """Return an item of this response as if it had been kept by itself; CORRUPT if it is not where it should be."""
    try:
        items = _items(response, location.side)
        document = bytes(items[location.index])
        told = msgspec.json.decode(document, type=_Told)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError) as error:
        raise StoreError(
            StoreErrorKind.CORRUPT,
            f"item {location.item_id} is not where it should be in {response.id}",
        ) from error
    return Item(
        id=location.item_id,
        item_type=told.type or "message",
        document=document,
        created_us=response.created_us,
        role=told.role or "",
        status=told.status or "",
        response_id=response.id,
        expires_us=response.expires_us,
    )


def _items(response: StoredResponse, side: Side) -> list[msgspec.Raw]:
    if side is Side.INPUT:
        return msgspec.json.decode(response.input, type=list[msgspec.Raw])
    return msgspec.json.decode(response.response, type=_Output).output
