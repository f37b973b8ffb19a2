"""What is too large for one message between nodes, too much at a time, or makes no sense."""

import asyncio

import pytest

from smg_node.history.errors import HolderAwayError
from smg_node.history.peers import chunked_messages as parcels
from smg_node.history.peers import remote_store as elsewhere
from smg_node.history.peers import remote_store_server as holding
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    Access,
    StoredResponse,
    Turn,
)
from support.history.peer_histories import ACCESS, Three, three_nodes


@pytest.fixture
def three() -> Three:
    return three_nodes()


# ── Much ─────────────────────────────────────────────────────────────────────


async def test_a_turn_of_many_parts_comes_whole(three: Three) -> None:
    long = three.response("b", "long " * 600_000)
    parts = parcels.parts_of(long.response)
    await three.a.holders.commit(ACCESS, Turn(long))
    assert len(three.net.asked) >= parts
    assert await three.b.own.get_response(ACCESS, long.id) == long
    three.net.asked.clear()
    assert await three.c.holders.get_response(ACCESS, long.id) == long
    assert len(three.net.asked) >= parts
    assert len(three.b.holding._parcels) == 0


@pytest.mark.parametrize("broken", range(4))
@pytest.mark.parametrize("fault", ["busy", "unreachable", "lost"])
async def test_parts_that_are_lost_are_sent_again(three: Three, broken: int, fault: str) -> None:
    long = three.response("b", "long " * 600_000)
    three.net.faults += [""] * broken + [fault]
    await three.a.holders.commit(ACCESS, Turn(long))
    three.net.faults += [""] * broken + [fault]
    assert await three.a.holders.get_response(ACCESS, long.id) == long


async def test_more_than_that_is_too_large(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    long = three.response("b", "long " * 600_000)
    monkeypatch.setattr(elsewhere, "PARCEL_BYTES_MAX", 2_000_000)
    with pytest.raises(StoreError) as caught:
        await three.a.holders.commit(ACCESS, Turn(long))
    assert caught.value.kind is StoreErrorKind.TOO_LARGE
    assert three.net.asked == []
    await three.b.own.store_response(ACCESS, long)
    monkeypatch.setattr(holding, "PARCEL_BYTES_MAX", 2_000_000)
    with pytest.raises(StoreError) as caught:
        await three.a.holders.get_response(ACCESS, long.id)
    assert caught.value.kind is StoreErrorKind.TOO_LARGE


async def test_a_node_does_only_so_much_for_others_at_a_time(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "AT_ONCE_MAX", 3)
    at_once, most = 0, 0
    found = three.b.own.get_response

    async def slow(access: Access, response_id: str) -> StoredResponse | None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.005)
        at_once -= 1
        return await found(access, response_id)

    monkeypatch.setattr(three.b.own, "get_response", slow)
    record = three.response("b")
    await three.b.own.store_response(ACCESS, record)
    asked = [
        node.holders.get_response(ACCESS, record.id)
        for node in (three.a, three.c)
        for _ in range(2 * elsewhere.AT_ONCE_MAX)
    ]
    assert await asyncio.gather(*asked) == [record] * len(asked)
    assert most == 3


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x94\xa0\xa0\x00\x01"])
async def test_whatever_is_not_understood_is_answered_so(three: Three, payload: bytes) -> None:
    answer = await three.b.holding.answer(payload, "a")
    from smg_node.history.peers import remote_store_messages as words

    with pytest.raises(StoreError, match="understand"):
        words.read_reply(words.read_answer(answer).content, "get_response")


async def test_an_answer_that_is_none_is_no_answer(three: Three) -> None:
    async def mumble(payload: bytes, caller: str) -> bytes:
        return b"\xc1"

    three.net.answers["b", "history.store"] = mumble
    with pytest.raises(HolderAwayError, match="not understood"):
        await three.a.holders.get_response(ACCESS, three.id("resp", "b"))
