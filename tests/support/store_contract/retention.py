"""How long conversations last: from the last time that something was appended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
import pytest

from smg_storage.records import Conversation, PageAsk
from support.store_contract.stage import BAD_REFERENCE, HOUR_S, Stage, ids, refused


async def _append(stage: Stage, conversation_id: str, expires_us: int) -> None:
    await stage.store.append_items(
        stage.access, conversation_id, [stage.item()], now_us=stage.now_us, expires_us=expires_us
    )


async def _link(stage: Stage, conversation_id: str, expires_us: int) -> None:
    item = await stage.store.create_item(stage.access, stage.item())
    await stage.store.link_items(
        stage.access, conversation_id, [item.id], now_us=stage.now_us, expires_us=expires_us
    )


async def _commit(stage: Stage, conversation_id: str, expires_us: int) -> None:
    turn = msgspec.structs.replace(stage.turn(conversation_id), conversation_expires_us=expires_us)
    await stage.store.commit_turn(stage.access, turn)


Way = Callable[[Stage, str, int], Awaitable[None]]
WAYS: Final[Mapping[str, Way]] = {"append": _append, "link": _link, "commit": _commit}
by_every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


class RetentionCases:
    async def lasting(self, stage: Stage, hours: int) -> Conversation:
        """Keep a conversation that is over after so many hours."""
        ends_us = stage.in_s(hours * HOUR_S) if hours else 0
        made = msgspec.structs.replace(stage.conversation(), expires_us=ends_us)
        return await stage.store.create_conversation(stage.access, made)

    async def end_of(self, stage: Stage, conversation_id: str) -> int:
        found = await stage.other.get_conversation(stage.access, conversation_id)
        assert found is not None
        return found.expires_us

    @by_every_way
    async def test_what_is_appended_to_lasts_longer(self, stage: Stage, way: Way) -> None:
        made = await self.lasting(stage, 2)
        (old,) = await stage.append(made.id, 1)
        stage.clock.advance_s(HOUR_S)
        await way(stage, made.id, stage.in_s(2 * HOUR_S))
        assert await self.end_of(stage, made.id) == stage.in_s(2 * HOUR_S)
        stage.clock.advance_s(2 * HOUR_S - 1)
        page = await stage.page(made.id)
        assert page.items[0] == old
        assert len(page.items) in (2, 3)
        assert await stage.store.get_item(stage.access, old.id) == old
        newest = await stage.store.newest_items(stage.access, made.id, items_max=9, bytes_max=9_999)
        assert newest is not None
        assert len(newest.items) == len(page.items)
        stage.clock.advance_s(1)
        assert await stage.store.get_conversation(stage.access, made.id) is None
        assert await stage.store.list_items(stage.access, made.id, PageAsk()) is None
        with refused(BAD_REFERENCE, missing=made.id):
            await way(stage, made.id, stage.in_s(HOUR_S))

    @by_every_way
    async def test_it_never_lasts_less_long(self, stage: Stage, way: Way) -> None:
        made = await self.lasting(stage, 3)
        await way(stage, made.id, stage.in_s(HOUR_S))
        assert await self.end_of(stage, made.id) == made.expires_us
        await way(stage, made.id, 0)
        assert await self.end_of(stage, made.id) == made.expires_us
        for_ever = await self.lasting(stage, 0)
        await way(stage, for_ever.id, stage.in_s(HOUR_S))
        assert await self.end_of(stage, for_ever.id) == 0

    async def test_where_nothing_is_appended_it_lasts_as_before(self, stage: Stage) -> None:
        made = await self.lasting(stage, 2)
        (item,) = await stage.append(made.id, 1)
        before = await stage.store.get_conversation(stage.access, made.id)
        await stage.store.link_items(
            stage.access, made.id, [item.id], now_us=stage.now_us, expires_us=stage.in_s(9 * HOUR_S)
        )
        assert await stage.store.get_conversation(stage.access, made.id) == before

    async def test_a_turn_that_is_done_again_prolongs_nothing(self, stage: Stage) -> None:
        made = await self.lasting(stage, 2)
        turn = msgspec.structs.replace(
            stage.turn(made.id), conversation_expires_us=stage.in_s(3 * HOUR_S)
        )
        await stage.store.commit_turn(stage.access, turn)
        later = msgspec.structs.replace(turn, conversation_expires_us=stage.in_s(9 * HOUR_S))
        assert (await stage.other.commit_turn(stage.access, later)).again is True
        assert await self.end_of(stage, made.id) == stage.in_s(3 * HOUR_S)

    async def test_of_turns_at_once_the_longest_counts(self, stage: Stage) -> None:
        made = await self.lasting(stage, 2)
        await asyncio.gather(
            *(_commit(stage, made.id, stage.in_s(hours * HOUR_S)) for hours in (3, 7, 1, 5))
        )
        assert await self.end_of(stage, made.id) == stage.in_s(7 * HOUR_S)
        assert len(await stage.listed(made.id)) == 8

    async def swept_until(self, stage: Stage, item_ids: list[str], left: set[str]) -> None:
        """Purge until of these items only those are left; a sweep looks at some things each time."""
        for _ in range(1_000):
            if (await stage.store.find_items(stage.access, item_ids)).keys() == left:
                return
            await stage.store.purge(now_us=stage.now_us, batch=99, timeout_s=30)
        raise AssertionError(f"never are of {item_ids} only {left} left")

    async def test_items_go_with_the_last_conversation_that_has_them(self, stage: Stage) -> None:
        made, longer = await self.lasting(stage, 1), await self.lasting(stage, 3)
        own = await stage.append(made.id, 3)
        loose = await stage.store.create_item(stage.access, stage.item("in none"))
        await stage.store.link_items(stage.access, longer.id, [own[1].id], now_us=stage.now_us)
        known = [*ids(own), loose.id]
        await self.swept_until(stage, known, set(known))
        stage.clock.advance_s(HOUR_S)
        await self.swept_until(stage, known, {own[1].id, loose.id})
        assert await stage.listed(longer.id) == [own[1].id]
        stage.clock.advance_s(2 * HOUR_S)
        await self.swept_until(stage, known, {loose.id})
        for _ in range(20):
            await stage.store.purge(now_us=stage.now_us, batch=99, timeout_s=30)
        assert await stage.store.get_item(stage.access, loose.id) == loose
