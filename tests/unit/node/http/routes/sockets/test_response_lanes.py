"""Lanes of a Responses socket: how much may wait in them."""

import asyncio

import msgspec

from smg_node.dialects.responses.sockets.client_events import Create
from smg_node.http.routes.sockets.response_lanes import WAITING_MAX_BYTES, ResponseLanes


def asked(size: int) -> Create:
    return Create("a", {"input": msgspec.Raw(b"1" * size)})


async def test_a_socket_is_not_read_while_too_much_waits_in_its_lanes() -> None:
    go_on, made = asyncio.Event(), list[int]()

    async def make(create: Create) -> None:
        await go_on.wait()
        made.append(create.size)

    async with asyncio.TaskGroup() as group:
        lanes = ResponseLanes(group, make)
        half = WAITING_MAX_BYTES // 2
        lanes.add(asked(half))
        await asyncio.sleep(0)
        # That one has begun, so it does not wait.
        lanes.add(asked(half))
        await asyncio.wait_for(lanes.room(), 5)
        lanes.add(asked(half))
        room = group.create_task(lanes.room())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not room.done()
        go_on.set()
        await asyncio.wait_for(room, 5)
        await lanes.finished()
    assert made == [half] * 3
