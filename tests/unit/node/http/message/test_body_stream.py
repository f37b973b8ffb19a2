import asyncio

import pytest

from smg_node.http.message.body_stream import HELD_MAX_BYTES, NO_BODY, ArrivingBody
from smg_node.http.message.request_head import FramingError


class Flow:
    """Counts how often it is held back."""

    def __init__(self) -> None:
        self.held = 0

    def pause_reading(self) -> None:
        self.held += 1

    def resume_reading(self) -> None:
        self.held -= 1


def test_what_nobody_takes_holds_the_client_back_until_it_is_taken() -> None:
    flow = Flow()
    body = ArrivingBody(flow)
    body.feed(b"x" * HELD_MAX_BYTES)
    assert flow.held == 0
    for _ in range(3):
        body.feed(b"y")
        assert flow.held == 1
    assert body.take() == b"x" * HELD_MAX_BYTES + b"yyy"
    assert flow.held == 0
    assert body.take() == b""


def test_a_whole_body_that_nobody_takes_holds_back_nothing_that_follows() -> None:
    flow = Flow()
    body = ArrivingBody(flow)
    body.feed(b"x" * (HELD_MAX_BYTES + 1))
    body.end()
    assert (flow.held, body.whole, body.over) == (0, True, True)
    assert len(body.take()) == HELD_MAX_BYTES + 1
    assert flow.held == 0


async def test_a_reader_gets_every_byte_once_and_then_the_end() -> None:
    body, got = ArrivingBody(Flow()), bytearray()

    async def read() -> None:
        while part := await body.more():
            got.extend(part)

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        for number in range(50):
            body.feed(bytes([number]))
            if number % 7 == 0:
                await asyncio.sleep(0)
        body.end()
    assert got == bytes(range(50))
    assert await body.more() == b""


async def test_a_waiting_reader_does_not_let_the_client_be_held_back() -> None:
    flow = Flow()
    body = ArrivingBody(flow)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(body.more())
        await asyncio.sleep(0)
        body.feed(b"x" * HELD_MAX_BYTES)
        body.feed(b"x" * HELD_MAX_BYTES)
        assert flow.held == 0
    assert len(reading.result()) == 2 * HELD_MAX_BYTES


async def test_a_broken_body_is_an_error_for_who_waits_and_who_comes_later() -> None:
    body = ArrivingBody(Flow())
    body.feed(b"half")
    assert await body.more() == b"half"
    asyncio.get_running_loop().call_soon(body.fail)
    with pytest.raises(FramingError):
        await body.more()
    assert (body.whole, body.over) == (False, True)
    with pytest.raises(FramingError):
        body.take()


async def test_no_body_is_whole_from_the_start() -> None:
    assert (NO_BODY.whole, NO_BODY.take(), await NO_BODY.more()) == (True, b"", b"")
