"""Pages of a conversation: each item once, in order, whatever is added or taken out meanwhile."""

import asyncio

import pytest

from smg_storage.records import Item, PageAsk
from smg_storage.store import HistoryStore
from support.store_contract.stage import BAD_REFERENCE, Stage, ids, refused


class PagingCases:
    async def test_a_conversation_that_is_not_there_has_no_pages(self, stage: Stage) -> None:
        unknown = stage.new_id("conv")
        assert await stage.store.list_items(stage.access, unknown, PageAsk()) is None
        assert (
            await stage.store.newest_items(stage.access, unknown, items_max=9, bytes_max=999)
            is None
        )

    async def test_an_empty_conversation_has_an_empty_page(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        page = await stage.page(conversation_id)
        newest = await stage.store.newest_items(
            stage.access, conversation_id, items_max=9, bytes_max=999
        )
        assert newest is not None
        for empty in (page, newest):
            assert (list(empty.items), list(empty.positions), empty.has_more) == ([], [], False)

    @pytest.mark.parametrize(
        ("limit", "newest_first", "expected", "has_more"),
        [
            (1, False, [0], True),
            (4, False, [0, 1, 2, 3], True),
            (5, False, [0, 1, 2, 3, 4], False),
            (6, False, [0, 1, 2, 3, 4], False),
            (1, True, [4], True),
            (4, True, [4, 3, 2, 1], True),
            (5, True, [4, 3, 2, 1, 0], False),
        ],
    )
    async def test_a_page_has_what_was_asked_for(
        self, stage: Stage, limit: int, newest_first: bool, expected: list[int], has_more: bool
    ) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 5)
        page = await stage.page(conversation_id, limit, newest_first=newest_first)
        assert list(page.items) == [items[index] for index in expected]
        assert list(page.positions) == [page.positions[0] - expected[0] + n for n in expected]
        assert page.has_more is has_more

    @pytest.mark.parametrize(
        ("after", "newest_first", "expected", "has_more"),
        [
            (0, False, [1, 2], True),
            (2, False, [3, 4], False),
            (4, False, [], False),
            (4, True, [3, 2], True),
            (2, True, [1, 0], False),
            (0, True, [], False),
        ],
    )
    async def test_a_page_goes_on_after_an_item(
        self, stage: Stage, after: int, newest_first: bool, expected: list[int], has_more: bool
    ) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 5)
        page = await stage.page(conversation_id, 2, items[after].id, newest_first=newest_first)
        assert list(page.items) == [items[index] for index in expected]
        assert page.has_more is has_more

    async def test_a_page_after_what_is_not_in_the_conversation_is_refused(
        self, stage: Stage
    ) -> None:
        first, second = await stage.new_conversation(), await stage.new_conversation()
        (item,) = await stage.append(first, 1)
        (gone,) = await stage.append(second, 1)
        await stage.store.delete_item(stage.access, second, gone.id)
        for after in (stage.new_id("msg"), item.id, gone.id):
            for newest_first in (True, False):
                with refused(BAD_REFERENCE, missing=after):
                    await stage.page(second, 2, after, newest_first=newest_first)

    @pytest.mark.parametrize("newest_first", [True, False])
    async def test_two_thousand_items_come_once_each_in_order(
        self, stage: Stage, newest_first: bool
    ) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 2_000)
        found: list[Item] = []
        places: list[int] = []
        async for page in stage.pages(conversation_id, newest_first=newest_first):
            found += page.items
            places += page.positions
        if newest_first:
            found, places = found[::-1], places[::-1]
        assert found == items
        assert places == list(range(places[0], places[0] + 2_000))

    async def test_what_is_added_meanwhile_moves_nothing(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 6)
        seen: list[str] = []
        async for page in stage.pages(conversation_id, 2, newest_first=True):
            seen += ids(page.items)
            await stage.append(conversation_id, 3)
        assert seen == ids(items)[::-1]

    async def test_who_reads_on_sees_what_was_added(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 3)
        first = await stage.page(conversation_id, 2)
        items += await stage.append(conversation_id, 2)
        rest = await stage.page(conversation_id, 9, first.items[-1].id)
        assert list(first.items) + list(rest.items) == items

    @pytest.mark.parametrize("newest_first", [True, False])
    async def test_what_is_taken_out_meanwhile_moves_nothing(
        self, stage: Stage, newest_first: bool
    ) -> None:
        conversation_id = await stage.new_conversation()
        items = ids(await stage.append(conversation_id, 9))
        ordered = items[::-1] if newest_first else items
        seen: list[str] = []
        turn = 0
        async for page in stage.pages(conversation_id, 2, newest_first=newest_first):
            seen += ids(page.items)
            # One that was seen, and one that is still to come.
            for index in (turn * 2, turn * 2 + 3):
                if index < len(ordered) and ordered[index] != page.items[-1].id:
                    await stage.store.delete_item(stage.access, conversation_id, ordered[index])
            turn += 1
        assert len(seen) == len(set(seen))
        assert seen == [each for each in ordered if each in seen]
        left = await stage.listed(conversation_id, newest_first=newest_first)
        assert [each for each in ordered if each in left] == left
        assert set(left) <= set(seen)

    async def test_four_writers_leave_no_gap_and_part_nobodys_items(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()

        async def write(store: HistoryStore, batches: list[list[Item]]) -> list[list[int]]:
            return [
                list(
                    await store.append_items(
                        stage.access, conversation_id, batch, now_us=stage.now_us
                    )
                )
                for batch in batches
            ]

        scripts = [[stage.items(1 + (n + m) % 3) for n in range(12)] for m in range(4)]
        answers = await asyncio.gather(
            *(
                write((stage.store, stage.other)[number % 2], script)
                for number, script in enumerate(scripts)
            )
        )
        by_place: dict[int, str] = {}
        for script, places in zip(scripts, answers, strict=True):
            assert places == sorted(places)
            for batch, place in zip(script, places, strict=True):
                assert place == list(range(place[0], place[0] + len(batch)))
                by_place.update(zip(place, ids(batch), strict=True))
        order = sorted(by_place)
        assert order == list(range(order[0], order[0] + len(order)))
        assert await stage.listed(conversation_id) == [by_place[place] for place in order]
        assert await stage.positions(conversation_id) == order


class NewestCases:
    async def test_the_newest_of_two_thousand_come_first(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 2_000)
        page = await stage.store.newest_items(
            stage.access, conversation_id, items_max=50, bytes_max=1 << 20
        )
        assert page is not None
        assert list(page.items) == items[:-51:-1]
        assert list(page.positions) == [page.positions[0] - n for n in range(50)]
        assert page.has_more is True

    @pytest.mark.parametrize(("items_max", "count"), [(1, 1), (4, 4), (5, 5), (9, 5)])
    async def test_there_are_as_many_as_there_may_be(
        self, stage: Stage, items_max: int, count: int
    ) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 5)
        page = await stage.store.newest_items(
            stage.access, conversation_id, items_max=items_max, bytes_max=1 << 20
        )
        assert page is not None
        assert list(page.items) == items[::-1][:count]
        assert page.has_more is (count < 5)

    @pytest.mark.parametrize(
        ("spare", "count"), [(-1, 2), (0, 3), (1, 3)], ids=["short", "exact", "more"]
    )
    async def test_they_fit_into_the_bytes_there_may_be(
        self, stage: Stage, spare: int, count: int
    ) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 5)
        fitting = sum(len(item.document) for item in items[-3:]) + spare
        page = await stage.store.newest_items(
            stage.access, conversation_id, items_max=99, bytes_max=fitting
        )
        assert page is not None
        assert list(page.items) == items[::-1][:count]
        assert page.has_more is True

    async def test_the_newest_comes_even_if_it_is_too_long(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 2)
        page = await stage.store.newest_items(
            stage.access, conversation_id, items_max=9, bytes_max=1
        )
        assert page is not None
        assert list(page.items) == [items[1]]
        assert page.has_more is True

    async def test_what_was_taken_out_is_not_among_the_newest(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 4)
        await stage.store.delete_item(stage.access, conversation_id, items[3].id)
        page = await stage.other.newest_items(
            stage.access, conversation_id, items_max=2, bytes_max=9_999
        )
        assert page is not None
        assert list(page.items) == [items[2], items[1]]
        assert page.has_more is True
