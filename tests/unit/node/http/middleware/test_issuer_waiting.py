"""Requests wait for an issuer a moment, not too many of them, and do each other no harm."""

import asyncio

import pytest

from smg_node.access.identity import KeysWantedError
from smg_node.http.middleware.issuer_waiting import IssuerWaiting


class WantedError(KeysWantedError):
    """What is wanted, with the future that a test ends."""

    def __init__(self, issuer: str = "corp") -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        super().__init__(issuer, self.future)


def wanted(issuer: str = "corp") -> WantedError:
    return WantedError(issuer)


async def test_a_request_waits_until_it_is_ready() -> None:
    waiting, one = IssuerWaiting(60), wanted()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(waiting.wait(one))
        await asyncio.sleep(0)
        assert not task.done()
        one.future.set_result(None)
    assert waiting._waiting == {}


async def test_it_waits_no_longer_than_a_moment_and_cancels_nothing() -> None:
    waiting, one = IssuerWaiting(0.01), wanted()
    await waiting.wait(one)
    assert not one.future.done()
    assert waiting._waiting == {}


async def test_a_fetch_that_failed_has_ended_too() -> None:
    one = wanted()
    one.future.set_exception(OSError("away"))
    await IssuerWaiting(60).wait(one)
    assert isinstance(one.future.exception(), OSError)


async def test_too_many_are_refused_at_once_and_by_issuer() -> None:
    waiting, one = IssuerWaiting(60, waiting_max=2), wanted()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(waiting.wait(one))
        await asyncio.sleep(0)
        with pytest.raises(KeysWantedError) as caught:
            await waiting.wait(one)
        assert caught.value is one
        other = wanted("other")
        group.create_task(waiting.wait(other))
        await asyncio.sleep(0)
        assert waiting._waiting == {"corp": 2, "other": 1}
        one.future.set_result(None)
        other.future.set_result(None)
    assert waiting._waiting == {}


async def test_a_client_that_goes_waits_no_more() -> None:
    waiting, one = IssuerWaiting(60), wanted()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(waiting.wait(one))
        await asyncio.sleep(0)
        task.cancel()
    assert waiting._waiting == {}
    assert not one.future.done()
