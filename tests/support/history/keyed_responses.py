"""Responses under a client's key, over a history in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.request.idempotency_key import IdempotencyKey, PriorResult
from smg_node.history.turns.idempotency import HeldKey
from smg_node.history.turns.response_run import ResponseRun
from smg_storage.records import Access
from support.history.history_world import HistoryWorld, ask_of, context

SAME = IdempotencyKey("k", b"d" * 16)
OTHER = IdempotencyKey("k", b"e" * 16)


def now_ms(world: HistoryWorld) -> int:
    return world.desks.responses._parts.clock.now_ms()


@asynccontextmanager
async def running(world: HistoryWorld) -> AsyncIterator[None]:
    """Carry what outlives its client."""
    async with asyncio.TaskGroup() as group:
        carrying = group.create_task(world.runs.run())
        yield
        carrying.cancel()


async def reserve(
    world: HistoryWorld, asked: IdempotencyKey = SAME, access: Access | None = None, **body: Any
) -> HeldKey | PriorResult | None:
    return await world.desks.responses.reserve(
        ask_of(**{"input": "hi", **body}), asked, context(), access or world.access
    )


async def held(world: HistoryWorld, asked: IdempotencyKey = SAME, **body: Any) -> HeldKey:
    found = await reserve(world, asked, **body)
    assert isinstance(found, HeldKey)
    return found


async def keyed(world: HistoryWorld, asked: IdempotencyKey = SAME, **body: Any) -> ResponseRun:
    """Return a response under a key, not begun."""
    key = await held(world, asked, **body)
    return await world.desks.responses.create(
        ask_of(**{"input": "hi", **body}), context(), world.access, held=key
    )


async def made(world: HistoryWorld, asked: IdempotencyKey = SAME, **body: Any) -> ResponseRun:
    run = await keyed(world, asked, **body)
    async for _ in run.told():
        pass
    return run


async def refusal(world: HistoryWorld, asked: IdempotencyKey = SAME) -> SmgError:
    with pytest.raises(SmgError) as found:
        await reserve(world, asked)
    return found.value
