import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from smg_node.history.spool.dead_letters import DeadTurns
from smg_node.history.spool.spool import Spool
from smg_node.history.spool.spool_format import SpooledTurn
from smg_node.history.spool.spool_replay import TRIES_MAX, Replay
from support.history.spools import (
    ACCESS,
    TENANT,
    MoodyStore,
    SaltSource,
    in_order,
    response_id,
    spool_at,
    turn,
)
from support.http.raw_http import until


class Clock:
    """Monotonic time that goes on by a minute whenever it is looked at: waits are over at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 60.0
        return self.now


class Replayed:
    """A spool, a store, and what writes from one to the other."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.store = MoodyStore()
        self.replay = Replay(
            spool, self._commit, away=lambda: False, now_s=Clock(), adopt_every_s=5.0
        )

    async def _commit(self, one: SpooledTurn) -> None:
        await self.store.commit_turn(one.access(1.0), one.turn)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.replay.run())
            yield
            task.cancel()
        await self.spool.close()


async def test_what_waits_is_written_in_the_order_of_each_thread(tmp_path: Path) -> None:
    world = Replayed(spool_at(tmp_path, turns_max=1_000))
    for number in range(1, 41):
        for thread in (1, 2, 3):
            await world.spool.add(ACCESS, turn(thread, number))
    async with world.running():
        await until(lambda: world.spool.turns == 0)
    assert len(world.store.came) == world.replay.written == 120
    assert in_order(world.store.came)
    found = await world.store.get_response(ACCESS, response_id(2, 7))
    assert found == turn(2, 7).response
    assert os.listdir(tmp_path) == []


async def test_a_store_that_is_away_is_waited_for(tmp_path: Path) -> None:
    world = Replayed(spool_at(tmp_path))
    world.store.away = True
    await world.spool.add(ACCESS, turn(1, 1))
    async with world.running():
        await until(lambda: world.store.asked > 3)
        assert world.spool.turns == 1
        await world.spool.add(ACCESS, turn(1, 2))
        world.store.away = False
        world.spool.hurry()
        await until(lambda: world.spool.turns == 0)
    assert world.store.came == [response_id(1, 1), response_id(1, 2)]


async def test_a_turn_that_is_not_taken_is_set_aside_and_its_thread_goes_on(tmp_path: Path) -> None:
    world = Replayed(spool_at(tmp_path))
    world.store.disliked.add(response_id(1, 2))
    for number in (1, 2, 3):
        await world.spool.add(ACCESS, turn(1, number))
    async with world.running():
        await until(lambda: world.spool.turns == 0)
        assert world.spool.dead == 1
        assert world.store.came == [response_id(1, 1), response_id(1, 3)]
        assert world.store.asked == 2 + TRIES_MAX

        # Somebody looks at it, and wants it tried again.
        dead = DeadTurns(tmp_path, salt=SaltSource())
        (one,) = dead.all()
        assert (one.tenant, one.response_id) == (TENANT, response_id(1, 2))
        assert (one.kind, one.reason) == ("rejected", "it is not liked")
        world.store.disliked.clear()
        assert dead.retry([one.number, 99]) == 1
        await until(lambda: len(world.store.came) == 3)
    assert world.store.came[-1] == response_id(1, 2)
    assert dead.all() == []


async def test_dead_turns_are_dropped_for_good(tmp_path: Path) -> None:
    world = Replayed(spool_at(tmp_path))
    world.store.disliked |= {response_id(1, 1), response_id(2, 1)}
    await world.spool.add(ACCESS, turn(1, 1))
    await world.spool.add(ACCESS, turn(2, 1))
    async with world.running():
        await until(lambda: world.spool.dead == 2)
    dead = DeadTurns(tmp_path, salt=SaltSource())
    numbers = [one.number for one in dead.all()]
    assert dead.drop([numbers[0], 77]) == 1
    assert [one.number for one in dead.all()] == numbers[1:]
    later = spool_at(tmp_path, "2")
    assert await later.adopt() == 0
    assert later.dead == 1
    await later.close()


async def test_nothing_is_forgotten_before_the_store_has_it(tmp_path: Path) -> None:
    world = Replayed(spool_at(tmp_path))
    await world.spool.add(ACCESS, turn(1, 1))
    hanging = asyncio.Event()

    async def never(_: SpooledTurn) -> None:
        hanging.set()
        await asyncio.Event().wait()

    replay = Replay(world.spool, never, away=lambda: False, now_s=Clock())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(replay.run())
        await hanging.wait()
        task.cancel()
    assert world.spool.turns == 1
    await world.spool.close()
    later = spool_at(tmp_path, "2")
    assert await later.adopt() == 1
    await later.close()
