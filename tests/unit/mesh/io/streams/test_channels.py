"""Channels to peers: few, gone when silent, new after a failure, and there as soon as the peer is."""

import socket
from contextlib import AsyncExitStack

import pytest

from smg_mesh.io.streams import Channels, StreamClient, StreamError
from smg_mesh.io.streams.channels import CHANNELS_MAX, IDLE_S
from smg_mesh.swim.messages import Address
from support.mesh.mesh_streams import Node, Ring, derived, key, plain, up
from support.state.exchanges import claims


class Clock:
    """Time that tests move."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def address(number: int) -> Address:
    return Address("127.0.0.1", 20_000 + number)


async def test_a_channel_is_used_again_for_the_same_name_at_the_same_address() -> None:
    channels = Channels(plain("a"), monotonic_s=Clock())
    async with channels.lease(address(1), "b") as first:
        pass
    async with channels.lease(address(1), "b") as second:
        assert second is first
        async with (
            channels.lease(address(1), "c") as third,
            channels.lease(address(1), None) as any_,
        ):
            assert len({first, third, any_}) == 3
    assert len(channels) == 3
    await channels.close()
    assert len(channels) == 0


async def test_silent_channels_go_when_another_is_used() -> None:
    clock = Clock()
    channels = Channels(plain("a"), monotonic_s=clock)
    for number in range(5):
        async with channels.lease(address(number), "b"):
            pass
    clock.now_s = IDLE_S - 1
    async with channels.lease(address(0), "b"):
        pass
    assert len(channels) == 5
    clock.now_s = IDLE_S + 1
    async with channels.lease(address(9), "b"):
        pass
    assert len(channels) == 2
    await channels.close()


async def test_the_channel_that_was_not_used_longest_makes_room() -> None:
    channels = Channels(plain("a"), monotonic_s=Clock())
    leased = {}
    for number in (*range(CHANNELS_MAX), 0, CHANNELS_MAX):
        async with channels.lease(address(number), "b") as channel:
            leased[number] = channel
    assert len(channels) == CHANNELS_MAX
    async with channels.lease(address(0), "b") as channel:
        assert channel is leased[0]
    async with channels.lease(address(1), "b") as channel:
        assert channel is not leased[1]
    await channels.close()


async def test_more_calls_than_channels_are_refused() -> None:
    channels = Channels(plain("a"), monotonic_s=Clock())
    async with AsyncExitStack() as stack:
        for number in range(CHANNELS_MAX):
            await stack.enter_async_context(channels.lease(address(number), "b"))
        with pytest.raises(StreamError) as raised:
            await stack.enter_async_context(channels.lease(address(99), "b"))
        assert raised.value.reason == "busy"
        async with channels.lease(address(0), "b"):
            pass
    async with channels.lease(address(99), "b"):
        assert len(channels) == CHANNELS_MAX
    await channels.close()
    with pytest.raises(StreamError, match="closed"):
        async with channels.lease(address(1), "b"):
            pass


async def test_a_failed_channel_is_closed_after_its_last_call() -> None:
    channels = Channels(plain("a"), monotonic_s=Clock())
    async with channels.lease(address(1), "b") as first:
        async with channels.lease(address(1), "b") as same:
            assert same is first
            same.retire()
        async with channels.lease(address(1), "b") as other:
            assert other is not first
        assert len(channels) == 2
    assert len(channels) == 1
    await channels.close()


async def test_other_credentials_make_other_channels_one_by_one() -> None:
    ring = Ring([key(1)])
    channels = Channels(derived("a", ring=ring), monotonic_s=Clock())
    async with channels.lease(address(1), "b") as one, channels.lease(address(2), "b") as two:
        pass
    ring.held = [key(2), key(1)]
    async with channels.lease(address(1), "b") as again:
        assert again is not one
    assert len(channels) == 2
    async with channels.lease(address(2), "b") as again:
        assert again is not two
    assert len(channels) == 2
    await channels.close()


async def test_a_peer_that_returns_is_reached_by_the_next_call() -> None:
    a, b = Node("a", derived("a"), claims(2)), Node("b", derived("b"), claims(2), boot=1)
    async with up(a):
        async with up(b):
            place = b.address
            assert await a.client.ping(place, "b", 1, deadline_ms=5000)
        for _ in range(3):
            assert not await a.client.ping(place, "b", 1, deadline_ms=5000)
        assert a.client.open_channels == 0, "nothing tries behind our back"
        again = Node("b", derived("b"), claims(2), boot=2, address=place)
        async with up(again):
            assert await a.client.ping(place, "b", 2, deadline_ms=5000)


async def test_a_call_to_a_process_that_says_nothing_ends_at_its_deadline() -> None:
    a = Node("a", derived("a"))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = Address("127.0.0.1", silent.getsockname()[1])
        async with up(a):
            assert not await a.client.ping(place, "b", 1, deadline_ms=300)
            assert a.client.open_channels == 0
            assert a.counts == {("stream_failed", "deadline"): 1}


async def test_the_operator_is_told_about_strangers_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    b = Node("b", derived("b", key(2)))
    client = StreamClient(derived("a", key(1)), count=b.count, monotonic_s=clock)
    async with up(b):
        for now_s, told in ((0, 1), (59, 1), (61, 2)):
            clock.now_s = now_s
            assert not await client.ping(b.address, "b", 1, deadline_ms=5000)
            assert caplog.text.count("does not share our mesh key or label") == told
        await client.close()
