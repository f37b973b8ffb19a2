"""Codec of records inside the server: packed, with long documents deflated.

A document begins with one byte: whether the rest is deflated. Numbers are decimal text, as the functions read them.
"""

import asyncio
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    DOCUMENT_BYTES_MAX,
    Conversation,
    Item,
    Lease,
    Location,
    Side,
    Status,
    StoredResponse,
)
from smg_storage.redis.errors import corrupt
from smg_storage.text_limits import check_item, check_response

_PLAIN: Final = b"\0"
_DEFLATED: Final = b"\1"
_LEVEL: Final = 1
"""Of deflating: history is written once and mostly read soon; the higher ones cost four times the time for a tenth."""
_THREAD_BYTES_MIN: Final = 1 << 20
"""What takes longer than some milliseconds is done beside the loop."""


class _Head(msgspec.Struct, array_like=True, frozen=True):
    """What of a response the functions need not look at."""

    model: str
    created_us: int
    conversation_id: str
    previous_response_id: str
    depth: int
    background: bool
    safety_identifier: str


class _PackedItem(msgspec.Struct, array_like=True, frozen=True):
    item_type: str
    role: str
    status: str
    response_id: str
    created_us: int
    expires_us: int
    document: bytes


def check_size(*documents: bytes) -> None:
    """Raise TOO_LARGE for a document that no store takes."""
    for document in documents:
        if len(document) > DOCUMENT_BYTES_MAX:
            raise StoreError(
                StoreErrorKind.TOO_LARGE,
                f"a document has {len(document)} bytes, {DOCUMENT_BYTES_MAX} are the most",
            )


async def pack_document(document: bytes, deflate_bytes_min: int) -> bytes:
    """Return a document as it is kept."""
    check_size(document)
    if len(document) <= deflate_bytes_min:
        return _PLAIN + document
    if len(document) < _THREAD_BYTES_MIN:
        return _DEFLATED + zlib.compress(document, _LEVEL)
    return _DEFLATED + await asyncio.to_thread(zlib.compress, document, _LEVEL)


def _open(packed: bytes, what: str) -> bytes:
    if packed[:1] == _PLAIN:
        return packed[1:]
    stream = zlib.decompressobj()
    try:
        document = stream.decompress(packed[1:], DOCUMENT_BYTES_MAX + 1)
    except zlib.error as error:
        raise corrupt(what) from error
    if packed[:1] != _DEFLATED or not stream.eof or len(document) > DOCUMENT_BYTES_MAX:
        raise corrupt(what)
    return document


async def open_document(packed: bytes, what: str) -> bytes:
    """Return a document as it was given; CORRUPT if it is none."""
    if packed[:1] == _DEFLATED and len(packed) > _THREAD_BYTES_MIN // 8:
        return await asyncio.to_thread(_open, packed, what)
    return _open(packed, what)


def unbundle(text: bytes, width: int) -> list[tuple[bytes, ...]]:
    """Return the rows of a bundle: lengths, a line's end, contents."""
    begin = text.find(b"\n") + 1
    contents = []
    for size in text[:begin].split():
        end = begin + int(size)
        contents.append(text[begin:end])
        begin = end
    return list(zip(*[iter(contents)] * width, strict=True))


def digest(*parts: object) -> str:
    """Return what tells contents apart: 32 hexadecimal digits."""
    return blake2b(msgspec.msgpack.encode(parts), digest_size=16).hexdigest()


def item_digest(item: Item) -> str:
    """Return the digest of what makes an item the same."""
    return digest(item.item_type, item.role, item.status, item.document)


def response_digest(record: StoredResponse) -> str:
    """Return the digest of what makes a response the same: not its owner, nor its end."""
    return digest(
        record.status,
        record.model,
        record.created_us,
        record.input,
        record.response,
        record.conversation_id,
        record.previous_response_id,
        record.background,
        record.completed_us,
        record.safety_identifier,
    )


async def pack_item(item: Item, deflate_bytes_min: int) -> bytes:
    """Return an item as it is kept, without its id; errors as `check_item`."""
    check_item(item)
    return msgspec.msgpack.encode(
        _PackedItem(
            item.item_type,
            item.role,
            item.status,
            item.response_id,
            item.created_us,
            item.expires_us,
            await pack_document(item.document, deflate_bytes_min),
        )
    )


async def open_item(item_id: str, packed: bytes) -> Item:
    """Return an item that was kept."""
    try:
        found = msgspec.msgpack.decode(packed, type=_PackedItem)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise corrupt(item_id) from error
    return Item(
        id=item_id,
        item_type=found.item_type,
        document=await open_document(found.document, item_id),
        created_us=found.created_us,
        role=found.role,
        status=found.status,
        response_id=found.response_id,
        expires_us=found.expires_us,
    )


def pack_head(record: StoredResponse) -> bytes:
    """Return what is kept of a response beside its fields and documents; errors as `check_response`."""
    check_response(record)
    return msgspec.msgpack.encode(
        _Head(
            record.model,
            record.created_us,
            record.conversation_id,
            record.previous_response_id,
            record.depth,
            record.background,
            record.safety_identifier,
        )
    )


async def open_response(response_id: str, row: Sequence[Any]) -> StoredResponse:
    """Return a response from its row, as the functions answer it."""
    status, completed, expires, version, owner, token, until, cancel, head, asked, answer = row[:11]
    try:
        rest = msgspec.msgpack.decode(head, type=_Head)
        return StoredResponse(
            id=response_id,
            status=Status(status.decode()),
            model=rest.model,
            created_us=rest.created_us,
            input=await open_document(asked, response_id),
            response=await open_document(answer, response_id),
            conversation_id=rest.conversation_id,
            previous_response_id=rest.previous_response_id,
            depth=rest.depth,
            background=rest.background,
            completed_us=int(completed),
            safety_identifier=rest.safety_identifier,
            owner=owner.decode(),
            lease_token=int(token),
            lease_until_us=int(until),
            cancel_requested=cancel == b"1",
            expires_us=int(expires),
            version=int(version),
        )
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError) as error:
        raise corrupt(response_id) from error


class Run(msgspec.Struct, frozen=True):
    """Run of a response that is not final: its owner, and since when it is there."""

    lease: Lease
    created_us: int


def open_run(tenant: str, response_id: str, row: Sequence[Any]) -> Run | None:
    """Return the run of a response in the background; None if it needs none."""
    status, owner, token, until, cancel, head = row
    try:
        rest = msgspec.msgpack.decode(head, type=_Head)
        if Status(status.decode()).is_final or not rest.background:
            return None
        lease = Lease(tenant, response_id, owner.decode(), int(token), int(until), cancel == b"1")
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError) as error:
        raise corrupt(response_id) from error
    return Run(lease, rest.created_us)


async def open_conversation(conversation_id: str, row: Sequence[Any]) -> Conversation:
    """Return a conversation from its row."""
    created, updated, metadata, version, expires = row
    return Conversation(
        id=conversation_id,
        created_us=int(created),
        updated_us=int(updated),
        metadata=await open_document(metadata, conversation_id),
        version=int(version),
        expires_us=int(expires),
    )


def location_text(place: Location) -> str:
    """Return side and index as they are kept."""
    return f"{place.side.value} {place.index}"


def open_location(item_id: str, text: bytes) -> Location:
    """Return a location that was kept: side, index, thread and response."""
    try:
        side, index, _thread, response_id = text.decode().split(" ", 3)
        return Location(item_id, response_id, Side(int(side)), int(index))
    except ValueError as error:
        raise corrupt(item_id) from error
