"""What is over counts as missing at once; purging takes it away, and nothing else."""

import msgspec
import pytest

from smg_storage.records import PageAsk, Patch, Status, Turn
from support.store_contract.maker import StoreMaker
from support.store_contract.stage import BAD_REFERENCE, HOUR_S, Stage, ids, refused
from support.store_contract.turns import located


class ExpiryCases:
    async def test_a_conversation_that_is_over_is_missing(self, stage: Stage) -> None:
        made = msgspec.structs.replace(stage.conversation(), expires_us=stage.in_s(HOUR_S))
        await stage.store.create_conversation(stage.access, made)
        (item,) = await stage.append(made.id, 1)
        stage.clock.advance_s(HOUR_S + 1)
        assert await stage.store.get_conversation(stage.access, made.id) is None
        assert await stage.store.list_items(stage.access, made.id, PageAsk()) is None
        assert (
            await stage.store.newest_items(stage.access, made.id, items_max=9, bytes_max=99) is None
        )
        assert await stage.store.is_item_linked(stage.access, made.id, item.id) is False
        updated = await stage.store.update_conversation(
            stage.access, made.id, b"{}", now_us=stage.now_us
        )
        assert updated is None
        assert await stage.store.delete_item(stage.access, made.id, item.id) is False
        with refused(BAD_REFERENCE, missing=made.id):
            await stage.store.append_items(
                stage.access, made.id, [stage.item()], now_us=stage.now_us
            )
        with refused(BAD_REFERENCE, missing=made.id):
            await stage.store.commit_turn(stage.access, stage.turn(made.id))
        assert await stage.store.delete_conversation(stage.access, made.id) is False

    async def test_things_are_over_at_their_very_time(self, stage: Stage) -> None:
        over_us = stage.in_s(HOUR_S)
        conversation = msgspec.structs.replace(stage.conversation(), expires_us=over_us)
        item = msgspec.structs.replace(stage.item(), expires_us=over_us)
        response = msgspec.structs.replace(stage.response(), expires_us=over_us)
        await stage.store.create_conversation(stage.access, conversation)
        await stage.store.create_item(stage.access, item)
        await stage.kept(response)
        stage.clock.now_us = over_us - 1
        assert await stage.store.get_conversation(stage.access, conversation.id) is not None
        assert await stage.store.get_item(stage.access, item.id) is not None
        assert await stage.store.get_response(stage.access, response.id) is not None
        stage.clock.now_us = over_us
        assert await stage.store.get_conversation(stage.access, conversation.id) is None
        assert await stage.store.get_item(stage.access, item.id) is None
        assert await stage.store.get_response(stage.access, response.id) is None

    async def test_an_item_that_is_over_is_missing(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = stage.items(3)
        items[1] = msgspec.structs.replace(items[1], expires_us=stage.in_s(HOUR_S))
        await stage.store.append_items(stage.access, conversation_id, items, now_us=stage.now_us)
        assert await stage.listed(conversation_id) == ids(items)
        stage.clock.advance_s(HOUR_S + 1)
        assert await stage.listed(conversation_id) == [items[0].id, items[2].id]
        page = await stage.store.newest_items(
            stage.access, conversation_id, items_max=9, bytes_max=9_999
        )
        assert page is not None
        assert list(page.items) == [items[2], items[0]]
        assert await stage.store.get_item(stage.access, items[1].id) is None
        assert dict(await stage.store.find_items(stage.access, [items[1].id])) == {}
        other = await stage.new_conversation()
        with refused(BAD_REFERENCE, missing=items[1].id):
            await stage.store.link_items(stage.access, other, [items[1].id], now_us=stage.now_us)

    async def test_a_response_that_is_over_is_missing(self, stage: Stage) -> None:
        before = await stage.kept(stage.response())
        over = msgspec.structs.replace(
            stage.response(
                previous=before, status=Status.IN_PROGRESS, background=True, identifier="p"
            ),
            expires_us=stage.in_s(HOUR_S),
        )
        await stage.kept(over)
        after = await stage.kept(stage.response(previous=over))
        stage.clock.advance_s(HOUR_S + 1)
        assert await stage.store.get_response(stage.access, over.id) is None
        chain = await stage.chain(after.id)
        assert ids(chain.responses) == [after.id]
        assert (chain.complete, chain.missing) == (False, over.id)
        assert (await stage.chain(over.id)).missing == over.id
        page = await stage.store.list_identifier_responses(stage.access, "p", PageAsk())
        assert list(page.responses) == []
        assert await stage.store.request_cancel(stage.access, over.id) is None
        patched = await stage.store.patch_response(
            stage.access,
            over.id,
            Patch(status=Status.FAILED),
            from_statuses=[Status.IN_PROGRESS],
        )
        assert patched is None
        assert await stage.claim(over) is None
        found = await stage.store.orphan_runs(now_us=stage.now_us, limit=9, timeout_s=30)
        assert list(found) == []
        assert await stage.store.delete_response(stage.access, over.id) is False

    async def test_an_item_inside_of_what_is_over_is_missing(self, stage: Stage) -> None:
        turn, _, _ = located(stage)
        response = msgspec.structs.replace(turn.response, expires_us=stage.in_s(HOUR_S))
        turn = msgspec.structs.replace(turn, response=response)
        await stage.store.commit_turn(stage.access, turn)
        assert await stage.store.get_item(stage.access, turn.locations[0].item_id) is not None
        stage.clock.advance_s(HOUR_S + 1)
        assert await stage.store.get_item(stage.access, turn.locations[0].item_id) is None

    async def test_what_is_patched_is_over_later(self, stage: Stage) -> None:
        made = msgspec.structs.replace(
            stage.response(status=Status.QUEUED), expires_us=stage.in_s(HOUR_S)
        )
        await stage.kept(made)
        await stage.store.patch_response(
            stage.access,
            made.id,
            Patch(status=Status.COMPLETED, expires_us=stage.in_s(3 * HOUR_S)),
            from_statuses=[Status.QUEUED],
        )
        stage.clock.advance_s(2 * HOUR_S)
        assert await stage.store.get_response(stage.access, made.id) is not None
        stage.clock.advance_s(2 * HOUR_S)
        assert await stage.store.get_response(stage.access, made.id) is None

    async def purged(self, stage: Stage, batch: int) -> list[int]:
        """Purge until nothing is left to be purged, and return how much it was each time."""
        counts: list[int] = []
        while True:
            count = await stage.store.purge(now_us=stage.now_us, batch=batch, timeout_s=30)
            if count == 0:
                return counts
            counts.append(count)
            assert len(counts) < 1_000

    @pytest.mark.parametrize("batch", [1, 3, 500])
    async def test_what_is_over_is_purged_and_nothing_else(
        self, stage: Stage, maker: StoreMaker, batch: int
    ) -> None:
        over_us = stage.in_s(HOUR_S)
        kept = await stage.chain_of(2)
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 2)
        gone = [
            await stage.kept(msgspec.structs.replace(stage.response(), expires_us=over_us))
            for _ in range(5)
        ]
        for _ in range(2):
            made = msgspec.structs.replace(stage.conversation(), expires_us=over_us)
            await stage.store.create_conversation(stage.access, made)
            await stage.append(made.id, 2)
        assert await self.purged(stage, batch) == []
        stage.clock.advance_s(HOUR_S + 1)
        counts = await self.purged(stage, batch)
        if maker.expires_by_itself:
            # Only the items of what were conversations are swept, those of one at a time.
            assert sum(counts) == 4
        else:
            assert sum(counts) >= len(gone) + 2
            assert max(counts) <= batch
        for each in gone:
            assert await stage.store.get_response(stage.access, each.id) is None
        chain = await stage.chain(kept[-1].id)
        assert ids(chain.responses) == ids(kept[::-1])
        assert await stage.listed(conversation_id) == ids(items)

    async def test_an_id_that_is_over_is_free(self, stage: Stage) -> None:
        made = msgspec.structs.replace(stage.response(), expires_us=stage.in_s(HOUR_S))
        await stage.kept(made)
        stage.clock.advance_s(HOUR_S)
        other = msgspec.structs.replace(made, response=b'{"output":[2]}', expires_us=0)
        committed = await stage.store.commit_turn(stage.access, Turn(response=other))
        assert committed.again is False
        read = await stage.store.get_response(stage.access, made.id)
        assert read is not None
        assert read.response == other.response
