"""How much a tenant may keep: refused before it runs, counted now and then, and kept up in between."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.history.ports import HistoryOptions, Quota
from smg_node.history.turns import quotas as limits
from smg_node.history.turns.quotas import COUNT_EVERY_S, TENANTS_MAX, Quotas
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, StoreFigures
from support.history.history_world import (
    HistoryWorld,
    ask_of,
    context,
    failing,
    history_world,
    question,
)

ACME, OTHER = Access(tenant="acme"), Access(tenant="other")


class Counter:
    """A keeper whose store can only be counted."""

    def __init__(self) -> None:
        self.store: Any = self
        self.counts: list[str] = []
        self.figures = StoreFigures(0, 0, 0, 0)
        self.away = False
        self.during: Callable[[], None] = lambda: None

    async def tenant_figures(self, access: Access) -> StoreFigures:
        self.counts.append(access.tenant)
        figures = self.figures
        await asyncio.sleep(0)
        self.during()
        if self.away:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "away")
        return figures


class Scene:
    def __init__(self, **quota: int) -> None:
        self.now_s = 1_000.0
        self.counter = Counter()
        self.options = HistoryOptions(quota=Quota(**quota))
        self.quotas = Quotas(
            self.counter,  # type: ignore[arg-type]  # all that is asked of it
            now_s=lambda: self.now_s,
            options=self.options,
        )

    async def refused(self, access: Access = ACME, length: int = 0) -> bool:
        try:
            (await self.quotas.response(access, length)).left()
        except SmgError as error:
            return (error.status, error.code) == (429, "storage_quota")
        return False

    async def one_look(self) -> None:
        """Let what is due be counted."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.quotas.run())
            for _ in range(8):
                await asyncio.sleep(0)
            task.cancel()


async def test_without_a_quota_nothing_is_counted() -> None:
    scene = Scene()
    for _ in range(100):
        (await scene.quotas.response(ACME, 1 << 30)).kept(1)
        await scene.quotas.conversation(ACME, 1 << 30)
        await scene.quotas.items(ACME, 1 << 30)
    assert scene.counter.counts == []


async def test_a_tenant_is_counted_once_and_what_is_kept_is_added() -> None:
    scene = Scene(responses=5)
    scene.counter.figures = StoreFigures(0, 0, 3, 0)
    (await scene.quotas.response(ACME, 1)).kept(1)
    (await scene.quotas.response(ACME, 1)).left()
    (await scene.quotas.response(ACME, 1)).kept(1)
    assert await scene.refused()
    assert not await scene.refused(OTHER)
    assert scene.counter.counts == ["acme", "other"]


async def test_those_that_are_being_made_have_their_places() -> None:
    scene = Scene(responses=2)
    first = await scene.quotas.response(ACME, 1)
    await scene.quotas.response(ACME, 1)
    assert await scene.refused()
    first.left()
    first.left()
    (await scene.quotas.response(ACME, 1)).kept(1)
    assert await scene.refused()


async def test_many_who_come_first_at_once_are_counted_together() -> None:
    scene = Scene(responses=3)
    asked = await asyncio.gather(
        *(scene.quotas.response(ACME, 1) for _ in range(10)), return_exceptions=True
    )
    assert scene.counter.counts == ["acme"]
    assert sum(isinstance(one, SmgError) for one in asked) == 7


async def test_bytes_are_of_what_is_asked_and_of_what_was_answered() -> None:
    scene = Scene(bytes=1_000)
    scene.counter.figures = StoreFigures(0, 0, 0, 700)
    assert await scene.refused(length=301)
    (await scene.quotas.response(ACME, 100)).kept(250)
    assert await scene.refused(length=51)
    await scene.quotas.items(ACME, 50)
    assert await scene.refused()
    with pytest.raises(SmgError, match="1000 bytes"):
        await scene.quotas.items(ACME, 1)


async def test_conversations_are_counted_before_they_are_written() -> None:
    scene = Scene(conversations=2)
    await scene.quotas.conversation(ACME, 0)
    await scene.quotas.conversation(ACME, 0)
    with pytest.raises(SmgError, match=r"2 conversations.*storage\.quota\.conversations_max"):
        await scene.quotas.conversation(ACME, 0)
    assert not await scene.refused()


async def test_after_a_minute_it_is_counted_again_and_nobody_waits_for_it() -> None:
    scene = Scene(responses=3)
    scene.counter.figures = StoreFigures(0, 0, 3, 0)
    assert await scene.refused()
    scene.counter.figures = StoreFigures(0, 0, 1, 0)
    scene.now_s += COUNT_EVERY_S
    assert await scene.refused()
    assert scene.counter.counts == ["acme"]
    await scene.one_look()
    assert scene.counter.counts == ["acme"] * 2
    assert not await scene.refused()
    await scene.one_look()
    assert scene.counter.counts == ["acme"] * 2


async def test_what_is_kept_while_it_is_counted_is_not_forgotten() -> None:
    scene = Scene(responses=3)
    assert not await scene.refused()
    place = await scene.quotas.response(ACME, 1)
    scene.now_s += COUNT_EVERY_S
    assert not await scene.refused()
    scene.counter.during = lambda: place.kept(1)
    scene.counter.figures = StoreFigures(0, 0, 2, 0)
    await scene.one_look()
    assert await scene.refused()


async def test_while_it_cannot_be_counted_the_last_count_holds() -> None:
    scene = Scene(responses=1)
    scene.counter.figures = StoreFigures(0, 0, 1, 0)
    assert await scene.refused()
    scene.counter.away = True
    scene.now_s += COUNT_EVERY_S
    assert await scene.refused()
    await scene.one_look()
    assert await scene.refused()


async def test_who_was_never_counted_is_let_in_and_counted_soon() -> None:
    scene = Scene(responses=1)
    scene.counter.away = True
    assert not await scene.refused()
    assert not await scene.refused()
    assert scene.counter.counts == ["acme"]
    scene.counter.away = False
    scene.counter.figures = StoreFigures(0, 0, 1, 0)
    scene.now_s += limits.AGAIN_S
    assert await scene.refused()


async def test_what_a_store_cannot_count_is_not_limited() -> None:
    scene = Scene(responses=1, conversations=1, bytes=1)
    scene.counter.figures = StoreFigures()
    for _ in range(3):
        (await scene.quotas.response(ACME, 9)).kept(9)
        await scene.quotas.conversation(ACME, 9)
    scene.counter.figures = StoreFigures(conversations=0, bytes=0)
    scene.now_s += COUNT_EVERY_S
    assert not await scene.refused()
    await scene.one_look()
    assert not await scene.refused(length=1)
    assert await scene.refused(length=2)


async def test_a_quota_that_changes_counts_from_then_on() -> None:
    scene = Scene(responses=1)
    (await scene.quotas.response(ACME, 1)).kept(1)
    assert await scene.refused()
    scene.options.become(HistoryOptions(quota=Quota(responses=2)))
    assert not await scene.refused()
    scene.options.become(HistoryOptions())
    assert not await scene.refused()


async def test_only_so_many_tenants_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TENANTS_MAX", 3)
    assert TENANTS_MAX == 4_096
    scene = Scene(responses=1)
    places = [await scene.quotas.response(Access(tenant=f"t{number}"), 1) for number in range(5)]
    assert len(scene.quotas._tenants) == 3
    for place in places:
        place.kept(1)
    assert await scene.refused(Access(tenant="t4"))
    assert not await scene.refused(Access(tenant="t0"))


# ── In the desks ─────────────────────────────────────────────────────────────


async def over(world: HistoryWorld, **body: Any) -> bool:
    try:
        await world.answer(input="hi", **body)
    except SmgError as error:
        return (error.status, error.code) == (429, "storage_quota")
    return False


async def test_a_response_over_the_quota_is_refused_before_it_runs() -> None:
    world = history_world(options=HistoryOptions(quota=Quota(responses=2)))
    assert [await over(world) for _ in range(3)] == [False, False, True]
    assert len(world.generations.runs) == 2
    assert not await over(world, store=False)


async def test_what_fails_takes_no_room() -> None:
    world = history_world(failing, options=HistoryOptions(quota=Quota(responses=1)))
    for _ in range(3):
        with pytest.raises(SmgError, match="the engine died"):
            await world.answer(input="hi")
        with pytest.raises(SmgError, match="resp_none"):
            await world.answer(input="hi", previous_response_id="resp_none")


async def test_conversations_and_their_items_count() -> None:
    world = history_world(options=HistoryOptions(quota=Quota(conversations=1, bytes=400)))
    conversation = await world.conversation()
    with pytest.raises(SmgError, match="1 conversations"):
        await world.conversation()
    with pytest.raises(SmgError, match="400 bytes"):
        await world.desks.conversations.add_items(
            world.access, conversation, ask_of(input=[question("x" * 400)]).items
        )
    listed = await world.keeper.store.tenant_figures(world.access)
    assert (listed.conversations, listed.items) == (1, 0)


async def test_a_background_response_has_its_room_until_it_is_over() -> None:
    world = history_world(options=HistoryOptions(quota=Quota(responses=1)))
    async with asyncio.TaskGroup() as group:
        carrying = group.create_task(world.runs.run())
        ask = ask_of(input="hi", background=True)
        run = await world.desks.responses.register(ask, context(), world.access)
        assert await over(world)
        await run.ended()
        assert await over(world)
        carrying.cancel()
