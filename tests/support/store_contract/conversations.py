"""Conversations: made once, changed by whoever has seen the last change, forgotten whole."""

import asyncio

import msgspec

from smg_storage.errors import StoreError
from smg_storage.records import Conversation
from support.store_contract.stage import BAD_REFERENCE, CONFLICT, HOUR_S, Stage, ids, refused


class ConversationCases:
    async def test_a_conversation_that_nobody_made_is_not_there(self, stage: Stage) -> None:
        assert await stage.store.get_conversation(stage.access, stage.new_id("conv")) is None

    async def test_a_conversation_is_read_as_it_was_made(self, stage: Stage) -> None:
        made = msgspec.structs.replace(stage.conversation(), expires_us=stage.in_s(HOUR_S))
        assert await stage.store.create_conversation(stage.access, made) == made
        assert await stage.store.get_conversation(stage.access, made.id) == made
        assert await stage.other.get_conversation(stage.access, made.id) == made

    async def test_a_conversation_of_any_id_is_kept(self, stage: Stage) -> None:
        for foreign_id in ("conv_client-1.x:y", "A", "a", "x" * 64):
            made = Conversation(id=foreign_id, created_us=stage.now_us, updated_us=stage.now_us)
            await stage.store.create_conversation(stage.access, made)
            assert await stage.store.get_conversation(stage.access, foreign_id) == made

    async def test_making_it_again_answers_what_is_there(self, stage: Stage) -> None:
        made = stage.conversation()
        await stage.store.create_conversation(stage.access, made)
        assert await stage.other.create_conversation(stage.access, made) == made

    async def test_making_another_one_of_that_id_is_a_conflict(self, stage: Stage) -> None:
        made = stage.conversation()
        await stage.store.create_conversation(stage.access, made)
        another = msgspec.structs.replace(made, metadata=b'{"topic":"wires"}')
        with refused(CONFLICT):
            await stage.other.create_conversation(stage.access, another)
        assert await stage.store.get_conversation(stage.access, made.id) == made

    async def test_making_it_again_later_takes_nothing_back(self, stage: Stage) -> None:
        made = stage.conversation()
        await stage.store.create_conversation(stage.access, made)
        items = await stage.append(made.id, 3)
        again = await stage.store.create_conversation(stage.access, made)
        assert again.version > made.version
        assert await stage.listed(made.id) == ids(items)

    async def test_many_who_make_the_same_one_all_have_it(self, stage: Stage) -> None:
        made = stage.conversation()
        answers = await asyncio.gather(
            *(
                store.create_conversation(stage.access, made)
                for store in (stage.store, stage.other) * 4
            )
        )
        assert answers == [made] * 8

    async def test_metadata_can_be_changed(self, stage: Stage) -> None:
        made = await stage.store.create_conversation(stage.access, stage.conversation())
        stage.clock.advance_s(5)
        changed = await stage.store.update_conversation(
            stage.access, made.id, b'{"topic":null}', now_us=stage.now_us
        )
        assert changed is not None
        assert changed.version > made.version
        assert changed == msgspec.structs.replace(
            made, metadata=b'{"topic":null}', updated_us=stage.now_us, version=changed.version
        )
        assert await stage.other.get_conversation(stage.access, made.id) == changed

    async def test_what_is_not_there_is_not_changed(self, stage: Stage) -> None:
        unknown = stage.new_id("conv")
        for version in (None, 0):
            assert (
                await stage.store.update_conversation(
                    stage.access, unknown, b"{}", now_us=stage.now_us, if_version=version
                )
                is None
            )
        assert await stage.store.get_conversation(stage.access, unknown) is None

    async def test_who_has_seen_the_last_version_may_change_it(self, stage: Stage) -> None:
        made = await stage.store.create_conversation(stage.access, stage.conversation())
        for metadata in (b'{"n":1}', b'{"n":2}'):
            before = await stage.store.get_conversation(stage.access, made.id)
            assert before is not None
            changed = await stage.store.update_conversation(
                stage.access,
                made.id,
                metadata,
                now_us=stage.now_us,
                if_version=before.version,
            )
            assert changed is not None
            assert changed.metadata == metadata

    async def test_who_has_seen_an_older_version_may_not(self, stage: Stage) -> None:
        made = await stage.store.create_conversation(stage.access, stage.conversation())
        changed = await stage.store.update_conversation(
            stage.access, made.id, b'{"n":1}', now_us=stage.now_us
        )
        with refused(CONFLICT):
            await stage.other.update_conversation(
                stage.access, made.id, b'{"n":2}', now_us=stage.now_us, if_version=made.version
            )
        assert await stage.store.get_conversation(stage.access, made.id) == changed

    async def test_changing_it_again_in_the_same_way_changes_nothing(self, stage: Stage) -> None:
        made = await stage.store.create_conversation(stage.access, stage.conversation())

        async def change(version: int | None) -> Conversation | None:
            return await stage.store.update_conversation(
                stage.access, made.id, b'{"n":1}', now_us=stage.now_us, if_version=version
            )

        changed = await change(made.version)
        assert await change(made.version) == changed
        assert await change(None) == changed

    async def test_of_many_who_saw_the_same_version_one_may_change_it(self, stage: Stage) -> None:
        made = await stage.store.create_conversation(stage.access, stage.conversation())
        outcomes = await asyncio.gather(
            *(
                (stage.store, stage.other)[n % 2].update_conversation(
                    stage.access,
                    made.id,
                    b'{"n":%d}' % n,
                    now_us=stage.now_us,
                    if_version=made.version,
                )
                for n in range(6)
            ),
            return_exceptions=True,
        )
        (won,) = (outcome for outcome in outcomes if isinstance(outcome, Conversation))
        lost = [outcome for outcome in outcomes if isinstance(outcome, StoreError)]
        assert [error.kind for error in lost] == [CONFLICT] * 5
        assert await stage.store.get_conversation(stage.access, made.id) == won

    async def test_a_conversation_can_be_forgotten_once(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        assert await stage.store.delete_conversation(stage.access, conversation_id) is True
        assert await stage.other.get_conversation(stage.access, conversation_id) is None
        assert (
            await stage.store.newest_items(
                stage.access, conversation_id, items_max=9, bytes_max=999
            )
            is None
        )
        assert await stage.other.delete_conversation(stage.access, conversation_id) is False

    async def test_its_items_are_forgotten_with_it(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 3)
        await stage.store.delete_conversation(stage.access, conversation_id)
        assert await stage.store.find_items(stage.access, ids(items)) == {}
        assert not await stage.store.is_item_linked(stage.access, conversation_id, items[0].id)

    async def test_items_of_another_conversation_are_not_forgotten(self, stage: Stage) -> None:
        first, second = await stage.new_conversation(), await stage.new_conversation()
        items = await stage.append(first, 3)
        await stage.store.link_items(stage.access, second, [items[1].id], now_us=stage.now_us)
        await stage.store.delete_conversation(stage.access, first)
        assert await stage.store.find_items(stage.access, ids(items)) == {items[1].id: items[1]}
        assert await stage.listed(second) == [items[1].id]

    async def test_responses_outlive_their_conversation(self, stage: Stage) -> None:
        turn = stage.turn(await stage.new_conversation())
        await stage.store.commit_turn(stage.access, turn)
        await stage.store.delete_conversation(stage.access, turn.response.conversation_id)
        assert await stage.store.get_response(stage.access, turn.response.id) is not None
        assert ids((await stage.chain(turn.response.id)).responses) == [turn.response.id]

    async def test_nothing_is_added_to_what_was_forgotten(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        await stage.store.delete_conversation(stage.access, conversation_id)
        item = stage.item()
        with refused(BAD_REFERENCE, missing=conversation_id):
            await stage.store.append_items(
                stage.access, conversation_id, [item], now_us=stage.now_us
            )
        assert await stage.store.get_item(stage.access, item.id) is None
