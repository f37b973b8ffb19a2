"""Chains: a response and what it continues, whole or with the reason why not."""

import asyncio

import msgspec
import pytest

from smg_storage.errors import StoreErrorKind
from support.store_contract.stage import Stage, ids, refused, unversioned


class ChainCases:
    async def test_a_response_that_continues_nothing_is_a_chain(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        chain = await stage.chain(made.id)
        assert [unversioned(record) for record in chain.responses] == [made]
        assert chain.complete is True
        assert chain.missing == ""

    async def test_a_chain_of_what_is_not_there_names_it(self, stage: Stage) -> None:
        unknown = stage.new_id("resp")
        chain = await stage.chain(unknown)
        assert (list(chain.responses), chain.complete, chain.missing) == ([], False, unknown)

    async def test_a_chain_comes_whole_and_newest_first(self, stage: Stage) -> None:
        made = await stage.chain_of(7)
        chain = await stage.chain(made[-1].id)
        assert [unversioned(record) for record in chain.responses] == made[::-1]
        assert chain.complete is True
        middle = await stage.chain(made[3].id)
        assert ids(middle.responses) == ids(made[3::-1])
        assert middle.complete is True

    async def test_each_fork_of_a_chain_is_a_chain(self, stage: Stage) -> None:
        made = await stage.chain_of(4)
        for root in made:
            left = await stage.kept(stage.response(previous=root, text="left"))
            right = await stage.kept(stage.response(previous=left, text="right"))
            chain = await stage.chain(right.id)
            assert ids(chain.responses) == ids([right, left, *made[root.depth :: -1]])
            assert chain.complete is True

    async def test_a_chain_of_many_threads_is_a_chain(self, stage: Stage) -> None:
        made = await stage.chain_of(2)
        for _ in range(3):
            stage.begin_thread()
            made.append(await stage.kept(stage.response(previous=made[-1])))
        chain = await stage.chain(made[-1].id)
        assert ids(chain.responses) == ids(made[::-1])
        assert chain.complete is True

    @pytest.mark.parametrize("gone", [0, 2, 4])
    async def test_a_chain_ends_at_what_was_deleted(self, stage: Stage, gone: int) -> None:
        made = await stage.chain_of(5)
        await stage.store.delete_response(stage.access, made[gone].id)
        chain = await stage.chain(made[-1].id)
        assert ids(chain.responses) == ids(made[:gone:-1])
        assert (chain.complete, chain.missing) == (False, made[gone].id)

    @pytest.mark.parametrize("length", [1, 2, 5])
    async def test_a_chain_that_continues_itself_is_corrupt(
        self, stage: Stage, length: int
    ) -> None:
        made = [stage.response() for _ in range(length)]
        for index, record in enumerate(made):
            before = made[index - 1].id
            await stage.kept(msgspec.structs.replace(record, previous_response_id=before))
        after = await stage.kept(stage.response(previous=made[-1]))
        for begin in (made[-1], after):
            with refused(StoreErrorKind.CORRUPT):
                await stage.chain(begin.id)

    @pytest.mark.parametrize(("items_max", "count"), [(1, 1), (3, 3), (5, 5), (6, 5)])
    async def test_a_chain_has_as_many_as_there_may_be(
        self, stage: Stage, items_max: int, count: int
    ) -> None:
        made = await stage.chain_of(5)
        chain = await stage.chain(made[-1].id, items_max=items_max)
        assert ids(chain.responses) == ids(made[::-1][:count])
        assert (chain.complete, chain.missing) == (count == 5, "")

    @pytest.mark.parametrize(
        ("fitting", "spare", "count"), [(2, -1, 1), (2, 0, 2), (2, 1, 2), (5, 0, 5), (5, -1, 4)]
    )
    async def test_a_chain_fits_into_the_bytes_there_may_be(
        self, stage: Stage, fitting: int, spare: int, count: int
    ) -> None:
        made = await stage.chain_of(5)
        lengths = [len(record.input) + len(record.response) for record in made[::-1]]
        bytes_max = sum(lengths[:fitting]) + spare
        chain = await stage.chain(made[-1].id, bytes_max=bytes_max)
        assert ids(chain.responses) == ids(made[::-1][:count])
        assert (chain.complete, chain.missing) == (count == 5, "")

    async def test_the_first_one_comes_even_if_it_is_too_long(self, stage: Stage) -> None:
        made = await stage.chain_of(2)
        chain = await stage.chain(made[-1].id, bytes_max=1)
        assert ids(chain.responses) == [made[-1].id]
        assert (chain.complete, chain.missing) == (False, "")

    async def test_a_chain_of_two_thousand_comes_whole(self, stage: Stage) -> None:
        made = [stage.response()]
        while len(made) < 2_000:
            made.append(stage.response(previous=made[-1]))
        for begin in range(0, 2_000, 100):
            await asyncio.gather(*map(stage.kept, made[begin : begin + 100]))
        chain = await stage.chain(made[-1].id)
        assert ids(chain.responses) == ids(made[::-1])
        assert chain.complete is True
        one_more = await stage.kept(stage.response(previous=made[-1]))
        chain = await stage.chain(one_more.id)
        assert ids(chain.responses) == ids([one_more, *made[:0:-1]])
        assert (chain.complete, chain.missing) == (False, "")

    async def test_a_chain_of_turns_is_a_chain(self, stage: Stage) -> None:
        first = stage.turn(items=0)
        second = msgspec.structs.replace(first, response=stage.response(previous=first.response))
        for turn in (first, second):
            await stage.store.commit_turn(stage.access, turn)
        chain = await stage.chain(second.response.id)
        assert ids(chain.responses) == ids([second.response, first.response])
        assert chain.complete is True
