"""How much a tenant has, as far as a store knows; and how busy its connections are."""

import asyncio

import msgspec

from smg_storage.records import PoolFigures, StoreFigures
from support.store_contract.stage import Stage

ROW_BYTES = 16_000
"""So much a row may be said to take besides its documents."""


class FigureCases:
    async def has(self, stage: Stage, *, conversations: int, items: int, responses: int) -> int:
        """Assert that a tenant is told so much, as far as anything is known; return how many bytes."""
        figures = await stage.other.tenant_figures(stage.access)
        expected = StoreFigures(conversations, items, responses)
        for name in ("conversations", "items", "responses"):
            assert getattr(figures, name) in (-1, getattr(expected, name)), name
        return figures.bytes

    async def test_who_has_nothing_is_told_so(self, stage: Stage) -> None:
        await stage.store.store_response(stage.foreign, stage.response())
        length = await self.has(stage, conversations=0, items=0, responses=0)
        assert length in (-1, 0)

    async def test_a_tenant_is_told_what_it_has(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 3)
        chain = await stage.chain_of(2)
        for record in chain:
            foreign = msgspec.structs.replace(record, response=b'{"output":[1]}')
            await stage.store.store_response(stage.foreign, foreign)
        await stage.store.create_item(stage.foreign, items[0])
        length = await self.has(stage, conversations=1, items=3, responses=2)
        documents = sum(len(item.document) for item in items)
        documents += sum(len(each.input) + len(each.response) for each in chain)
        assert length == -1 or documents <= length <= documents + 6 * ROW_BYTES

    async def test_what_is_deleted_does_not_count(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 3)
        first, second = await stage.chain_of(2)
        await stage.store.delete_response(stage.access, first.id)
        await stage.store.delete_item(stage.access, conversation_id, items[0].id)
        await self.has(stage, conversations=1, items=2, responses=1)
        await stage.store.delete_conversation(stage.access, conversation_id)
        await stage.store.delete_response(stage.access, second.id)
        length = await self.has(stage, conversations=0, items=0, responses=0)
        assert length in (-1, 0)

    async def test_it_says_how_busy_its_connections_are(self, stage: Stage) -> None:
        idle = stage.store.pool()
        if idle is None:
            return
        assert idle.size > 0
        assert (idle.in_use, idle.waiting) == (0, 0)
        many = 3 * idle.size
        async with asyncio.TaskGroup() as group:
            for _ in range(many):
                group.create_task(stage.new_conversation())
            busy = idle
            while busy.in_use == 0:
                await asyncio.sleep(0)
                seen = stage.store.pool()
                assert seen is not None
                busy = seen
        assert busy.size == idle.size
        assert busy.in_use <= busy.size
        assert busy.in_use + busy.waiting <= many
        after = stage.store.pool()
        assert isinstance(after, PoolFigures)
        assert (after.in_use, after.waiting) == (0, 0)
        assert after.waits > idle.waits
        assert after.waited_s > idle.waited_s
