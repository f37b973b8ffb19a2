"""Items: kept once, linked in order, found by id, gone when nothing refers to them."""

import asyncio

import msgspec
import pytest

from support.store_contract.stage import BAD_REFERENCE, CONFLICT, HOUR_S, Stage, ids, refused


class ItemCases:
    async def test_an_item_that_nobody_made_is_not_there(self, stage: Stage) -> None:
        assert await stage.store.get_item(stage.access, stage.new_id("msg")) is None

    async def test_an_item_is_read_as_it_was_made(self, stage: Stage) -> None:
        made = msgspec.structs.replace(
            stage.item(response_id=stage.new_id("resp")), expires_us=stage.in_s(HOUR_S)
        )
        assert await stage.store.create_item(stage.access, made) == made
        assert await stage.other.get_item(stage.access, made.id) == made

    async def test_an_item_without_role_and_status_has_none(self, stage: Stage) -> None:
        made = msgspec.structs.replace(stage.item(), item_type="smg:note", role="", status="")
        await stage.store.create_item(stage.access, made)
        assert await stage.other.get_item(stage.access, made.id) == made

    async def test_making_an_item_again_answers_what_is_there(self, stage: Stage) -> None:
        made = stage.item()
        await stage.store.create_item(stage.access, made)
        assert await stage.other.create_item(stage.access, made) == made

    async def test_making_another_item_of_that_id_is_a_conflict(self, stage: Stage) -> None:
        made = stage.item("one")
        await stage.store.create_item(stage.access, made)
        with refused(CONFLICT):
            await stage.store.create_item(stage.access, stage.item("two", item_id=made.id))
        assert await stage.store.get_item(stage.access, made.id) == made

    async def test_items_are_linked_in_their_order(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = stage.items(4)
        for item in items:
            await stage.store.create_item(stage.access, item)
        chosen = ids(items)[::-1]
        places = await stage.store.link_items(
            stage.access, conversation_id, chosen, now_us=stage.now_us
        )
        assert list(places) == list(range(places[0], places[0] + 4))
        assert await stage.listed(conversation_id) == chosen
        assert await stage.positions(conversation_id) == list(places)

    async def test_what_is_linked_already_stays_where_it_is(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        first, second, third = await stage.append(conversation_id, 3)
        before = await stage.positions(conversation_id)
        places = await stage.other.link_items(
            stage.access, conversation_id, [third.id, first.id], now_us=stage.now_us
        )
        assert list(places) == [before[2], before[0]]
        assert await stage.listed(conversation_id) == ids([first, second, third])

    async def test_an_item_that_is_named_twice_is_linked_once(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        one, two = stage.items(2)
        for item in (one, two):
            await stage.store.create_item(stage.access, item)
        places = await stage.store.link_items(
            stage.access, conversation_id, [one.id, two.id, one.id], now_us=stage.now_us
        )
        assert list(places) == [places[0], places[0] + 1, places[0]]
        assert await stage.listed(conversation_id) == [one.id, two.id]

    async def test_linking_nothing_does_nothing(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        assert (
            list(
                await stage.store.link_items(stage.access, conversation_id, [], now_us=stage.now_us)
            )
            == []
        )
        assert await stage.listed(conversation_id) == []

    async def test_an_item_that_is_not_there_links_none_of_them(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        item, unknown = stage.item(), stage.new_id("msg")
        await stage.store.create_item(stage.access, item)
        with refused(BAD_REFERENCE, missing=unknown):
            await stage.store.link_items(
                stage.access, conversation_id, [item.id, unknown], now_us=stage.now_us
            )
        assert await stage.listed(conversation_id) == []

    async def test_nothing_is_linked_to_a_conversation_that_is_not_there(
        self, stage: Stage
    ) -> None:
        item, unknown = stage.item(), stage.new_id("conv")
        await stage.store.create_item(stage.access, item)
        with refused(BAD_REFERENCE, missing=unknown):
            await stage.store.link_items(stage.access, unknown, [item.id], now_us=stage.now_us)

    @pytest.mark.parametrize("own_thread", [True, False])
    async def test_one_item_may_be_in_several_conversations(
        self, stage: Stage, own_thread: bool
    ) -> None:
        first = await stage.new_conversation()
        items = await stage.append(first, 3)
        if own_thread:
            stage.begin_thread()
        second = await stage.new_conversation()
        await stage.store.link_items(stage.access, second, [items[2].id], now_us=stage.now_us)
        last = await stage.append(second, 1)
        assert await stage.listed(first) == ids(items)
        assert await stage.listed(second) == [items[2].id, last[0].id]
        assert (await stage.page(second)).items[0] == items[2]

    async def test_appending_keeps_and_links(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = stage.items(3)
        places = await stage.store.append_items(
            stage.access, conversation_id, items, now_us=stage.now_us
        )
        more = stage.items(2)
        after = await stage.other.append_items(
            stage.access, conversation_id, more, now_us=stage.now_us
        )
        assert [*places, *after] == list(range(places[0], places[0] + 5))
        page = await stage.page(conversation_id)
        assert list(page.items) == items + more
        assert await stage.store.get_item(stage.access, more[1].id) == more[1]

    async def test_appending_again_appends_nothing(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = stage.items(3)

        async def append(count: int) -> list[int]:
            answer = await stage.store.append_items(
                stage.access, conversation_id, items[:count], now_us=stage.now_us
            )
            return list(answer)

        first = await append(2)
        assert await append(2) == first
        assert await append(3) == [*first, first[1] + 1]
        assert await stage.listed(conversation_id) == ids(items)

    async def test_another_item_of_an_id_appends_none_of_them(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        (kept,) = await stage.append(conversation_id, 1)
        new = stage.item("new")
        with refused(CONFLICT):
            await stage.store.append_items(
                stage.access,
                conversation_id,
                [new, stage.item("changed", item_id=kept.id)],
                now_us=stage.now_us,
            )
        assert await stage.listed(conversation_id) == [kept.id]
        assert await stage.store.get_item(stage.access, new.id) is None

    async def test_items_of_clients_own_ids_are_kept_apart(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = [
            stage.item(chosen, item_id=chosen)
            for chosen in ("msg_A", "msg_a", "msg_a-b_c", "msg_" + "z" * 60)
        ]
        await stage.store.append_items(stage.access, conversation_id, items, now_us=stage.now_us)
        assert list((await stage.page(conversation_id)).items) == items
        found = await stage.store.find_items(stage.access, [*ids(items), "MSG_A"])
        assert dict(found) == {item.id: item for item in items}

    async def test_other_changes_leave_no_gap_between_positions(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        for number in range(3):
            await stage.append(conversation_id, 2)
            await stage.store.update_conversation(
                stage.access, conversation_id, b'{"n":%d}' % number, now_us=stage.now_us
            )
        places = await stage.positions(conversation_id)
        assert places == list(range(places[0], places[0] + 6))

    async def test_a_conversation_changes_with_every_item(self, stage: Stage) -> None:
        made = await stage.store.create_conversation(stage.access, stage.conversation())
        stage.clock.advance_s(7)
        await stage.append(made.id, 1)
        changed = await stage.store.get_conversation(stage.access, made.id)
        assert changed is not None
        assert changed.version > made.version
        assert changed.updated_us == stage.now_us
        assert changed.created_us == made.created_us

    async def test_what_is_linked_is_known(self, stage: Stage) -> None:
        first, second = await stage.new_conversation(), await stage.new_conversation()
        (item,) = await stage.append(first, 1)
        assert await stage.store.is_item_linked(stage.access, first, item.id) is True
        assert await stage.store.is_item_linked(stage.access, second, item.id) is False
        assert await stage.store.is_item_linked(stage.access, first, second) is False
        assert await stage.store.is_item_linked(stage.access, item.id, item.id) is False

    async def test_an_item_can_be_taken_out_once(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 3)
        before = await stage.positions(conversation_id)
        assert await stage.store.delete_item(stage.access, conversation_id, items[1].id) is True
        assert await stage.other.delete_item(stage.access, conversation_id, items[1].id) is False
        assert await stage.listed(conversation_id) == [items[0].id, items[2].id]
        assert await stage.positions(conversation_id) == [before[0], before[2]]
        assert await stage.store.get_item(stage.access, items[1].id) is None
        assert not await stage.store.is_item_linked(stage.access, conversation_id, items[1].id)

    async def test_an_item_of_two_conversations_is_taken_out_of_one(self, stage: Stage) -> None:
        first, second = await stage.new_conversation(), await stage.new_conversation()
        (item,) = await stage.append(first, 1)
        await stage.store.link_items(stage.access, second, [item.id], now_us=stage.now_us)
        assert await stage.store.delete_item(stage.access, first, item.id) is True
        assert await stage.store.get_item(stage.access, item.id) == item
        assert await stage.listed(second) == [item.id]
        assert await stage.store.delete_item(stage.access, second, item.id) is True
        assert await stage.store.get_item(stage.access, item.id) is None

    async def test_the_position_of_what_was_taken_out_is_not_given_again(
        self, stage: Stage
    ) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 2)
        before = await stage.positions(conversation_id)
        await stage.store.delete_item(stage.access, conversation_id, items[1].id)
        places = await stage.store.append_items(
            stage.access, conversation_id, [items[1]], now_us=stage.now_us
        )
        assert list(places) == [before[1] + 1]
        assert await stage.listed(conversation_id) == ids(items)

    async def test_an_item_is_taken_out_of_its_own_conversation_only(self, stage: Stage) -> None:
        first, second = await stage.new_conversation(), await stage.new_conversation()
        (item,) = await stage.append(first, 1)
        assert await stage.store.delete_item(stage.access, second, item.id) is False
        assert await stage.store.delete_item(stage.access, stage.new_id("conv"), item.id) is False
        assert await stage.listed(first) == [item.id]

    async def test_items_are_found_by_their_ids(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 3)
        asked = [items[2].id, stage.new_id("msg"), items[0].id, items[2].id]
        found = await stage.other.find_items(stage.access, asked)
        assert dict(found) == {items[2].id: items[2], items[0].id: items[0]}
        assert dict(await stage.store.find_items(stage.access, [])) == {}

    async def test_more_items_are_found_than_one_statement_can_name(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 1_200)
        found = await stage.store.find_items(stage.access, ids(items))
        assert dict(found) == {item.id: item for item in items}

    async def test_many_who_link_the_same_item_have_one_position(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        item = await stage.store.create_item(stage.access, stage.item())
        places = await asyncio.gather(
            *(
                store.link_items(stage.access, conversation_id, [item.id], now_us=stage.now_us)
                for store in (stage.store, stage.other) * 4
            )
        )
        assert len({tuple(answer) for answer in places}) == 1
        assert await stage.listed(conversation_id) == [item.id]
