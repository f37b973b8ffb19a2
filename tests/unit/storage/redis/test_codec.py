import zlib
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    DOCUMENT_BYTES_MAX,
    Item,
    Lease,
    Location,
    Side,
    Status,
    StoredResponse,
)
from smg_storage.redis import codec

T = TypeVar("T")
CORRUPT = StoreErrorKind.CORRUPT
DEFLATE_BYTES_MIN = 256 << 10
ITEM = Item("msg_1", "message", b'{"a":1}', 5, "user", "completed", "resp_1", 7)
RESPONSE = StoredResponse(
    id="resp_1",
    status=Status.IN_PROGRESS,
    model="llama",
    created_us=1_763_794_786_000_001,
    input=b"[1]",
    response=b'{"output":[]}',
    conversation_id="conv_1",
    previous_response_id="resp_0",
    depth=3,
    background=True,
    completed_us=0,
    safety_identifier="p\u00e9rson",
    owner="node-a",
    lease_token=2,
    lease_until_us=1_763_794_786_000_002,
    cancel_requested=True,
    expires_us=1_763_794_786_000_003,
    version=4,
)


async def outcome(work: Awaitable[T]) -> T | StoreError:
    try:
        return await work
    except StoreError as error:
        return error


def row_of(record: StoredResponse, asked: bytes, answered: bytes) -> list[Any]:
    fields = (
        *(record.status.value, record.completed_us, record.expires_us, record.version),
        *(record.owner, record.lease_token, record.lease_until_us, int(record.cancel_requested)),
    )
    return [*(str(field).encode() for field in fields), codec.pack_head(record), asked, answered]


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 100, 2 << 20, 10 << 20])
async def test_a_document_comes_back_byte_for_byte(size: int) -> None:
    document = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    packed = await codec.pack_document(document, 10)
    assert (len(packed) < len(document)) is (size > 20)
    assert await codec.open_document(packed, "doc") == document


@given(document=st.binary(max_size=300), deflate_bytes_min=st.integers(0, 300))
async def test_any_document_comes_back_at_any_limit(
    document: bytes, deflate_bytes_min: int
) -> None:
    packed = await codec.pack_document(document, deflate_bytes_min)
    assert packed[0] == (len(document) > deflate_bytes_min)
    assert await codec.open_document(packed, "doc") == document


@given(packed=st.binary(max_size=200))
async def test_garbage_is_a_document_or_corrupt(packed: bytes) -> None:
    found = await outcome(codec.open_document(packed, "doc_1"))
    if isinstance(found, StoreError):
        assert (found.kind, found.message) == (CORRUPT, "doc_1 cannot be read")
    else:
        assert packed[0] == 0 or zlib.decompress(packed[1:]) == found


async def test_half_a_document_is_corrupt_and_so_is_one_that_swells() -> None:
    packed = await codec.pack_document(b"abc" * 1_000, 10)
    swelling = b"\1" + zlib.compress(bytes(DOCUMENT_BYTES_MAX + 1), 1)
    for broken in (packed[:-5], swelling, b""):
        with pytest.raises(StoreError) as told:
            await codec.open_document(broken, "doc_1")
        assert told.value.kind is CORRUPT


async def test_what_is_too_large_is_refused_before_it_is_sent() -> None:
    with pytest.raises(StoreError) as told:
        await codec.pack_document(bytes(DOCUMENT_BYTES_MAX + 1), DEFLATE_BYTES_MIN)
    assert told.value.kind is StoreErrorKind.TOO_LARGE


async def test_an_item_comes_back() -> None:
    packed = await codec.pack_item(ITEM, DEFLATE_BYTES_MIN)
    assert await codec.open_item("msg_1", packed) == ITEM


@given(packed=st.binary(max_size=100))
async def test_garbage_is_an_item_or_corrupt(packed: bytes) -> None:
    found = await outcome(codec.open_item("msg_1", packed))
    assert found.kind is CORRUPT if isinstance(found, StoreError) else found.id == "msg_1"


def test_an_item_is_the_same_by_what_it_says_and_not_by_how_long_it_is_kept() -> None:
    alike = msgspec.structs.replace(ITEM, expires_us=9, created_us=9, response_id="resp_2")
    assert codec.item_digest(alike) == codec.item_digest(ITEM)
    others = [
        msgspec.structs.replace(ITEM, **{field: value})
        for field, value in (("document", b"{}"), ("role", ""), ("status", ""), ("item_type", "x"))
    ]
    assert len({codec.item_digest(item) for item in (ITEM, *others)}) == 5


def test_a_response_is_the_same_whoever_is_at_it() -> None:
    mine = codec.response_digest(RESPONSE)
    alike: dict[str, Any] = {
        "owner": "",
        "lease_token": 9,
        "lease_until_us": 0,
        "cancel_requested": False,
        "expires_us": 0,
        "version": 0,
        "depth": 0,
    }
    assert codec.response_digest(msgspec.structs.replace(RESPONSE, **alike)) == mine
    others: dict[str, Any] = {
        "status": Status.FAILED,
        "model": "m",
        "created_us": 1,
        "input": b"[]",
        "response": b"{}",
        "conversation_id": "",
        "previous_response_id": "",
        "background": False,
        "completed_us": 1,
        "safety_identifier": "",
    }
    assert {*others, *alike, "id"} == {field.name for field in msgspec.structs.fields(RESPONSE)}
    for field, value in others.items():
        other = msgspec.structs.replace(RESPONSE, **{field: value})
        assert codec.response_digest(other) != mine, field


async def test_a_response_comes_back() -> None:
    asked = await codec.pack_document(RESPONSE.input, 0)
    answered = await codec.pack_document(RESPONSE.response, 1_000)
    assert await codec.open_response("resp_1", row_of(RESPONSE, asked, answered)) == RESPONSE


@pytest.mark.parametrize("field", range(11))
async def test_a_row_with_a_broken_field_is_corrupt(field: int) -> None:
    row = row_of(RESPONSE, b"\0[]", b"\0{}")
    row[field] = None if field in (4, 7) else b"\xff"
    if field == 7:
        # Whether it is to be cancelled is yes or anything else.
        assert (await codec.open_response("resp_1", row)).cancel_requested is False
        return
    with pytest.raises(StoreError) as told:
        await codec.open_response("resp_1", row)
    assert told.value.kind is CORRUPT


def run_row(record: StoredResponse) -> list[Any]:
    row = row_of(record, b"", b"")
    return [row[place] for place in (0, 4, 5, 6, 7, 8)]


def test_who_is_at_a_run_is_read_without_its_documents() -> None:
    lease = Lease("acme", "resp_1", "node-a", 2, RESPONSE.lease_until_us, cancel_requested=True)
    found = codec.open_run("acme", "resp_1", run_row(RESPONSE))
    assert found == codec.Run(lease, RESPONSE.created_us)
    done = msgspec.structs.replace(RESPONSE, status=Status.FAILED)
    foreground = msgspec.structs.replace(RESPONSE, background=False)
    for record in (done, foreground):
        assert codec.open_run("acme", "resp_1", run_row(record)) is None


@pytest.mark.parametrize("field", [0, 1, 2, 3, 5])
def test_a_run_with_a_broken_field_is_corrupt(field: int) -> None:
    row = run_row(RESPONSE)
    row[field] = b"\xff"
    with pytest.raises(StoreError) as told:
        codec.open_run("acme", "resp_1", row)
    assert told.value.kind is CORRUPT


@given(side=st.sampled_from(Side), index=st.integers(0, 5_000), response_id=st.text(min_size=1))
def test_a_location_comes_back(side: Side, index: int, response_id: str) -> None:
    place = Location("msg_1", response_id, side, index)
    text = f"{codec.location_text(place)} 5eed5eed5eed {response_id}"
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return
    assert codec.open_location("msg_1", encoded) == place


@given(text=st.binary(max_size=40))
async def test_garbage_is_a_location_or_corrupt(text: bytes) -> None:
    async def opened() -> Location:
        return codec.open_location("msg_1", text)

    found = await outcome(opened())
    assert found.kind is CORRUPT if isinstance(found, StoreError) else found.item_id == "msg_1"


@given(rows=st.lists(st.tuples(st.binary(), st.binary(), st.binary())))
def test_a_bundle_is_taken_apart(rows: list[tuple[bytes, ...]]) -> None:
    texts = [text for row in rows for text in row]
    sizes = " ".join(str(len(text)) for text in texts).encode()
    assert codec.unbundle(sizes + b"\n" + b"".join(texts), 3) == rows
