"""Four writers at once, some of whom do things twice: the outcome is that of one after the other."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from smg_storage.records import Item, Patch, Status, StoredResponse, Turn
from smg_storage.store import HistoryStore
from support.store_contract.stage import Stage, ids, unversioned

WRITERS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a writer does: a turn, or items by themselves, of which one may be taken out again."""

    turn: Turn | None
    items: Sequence[Item]
    taken_out: bool = False


@dataclass(slots=True)
class Book:
    """What should be there, if all was done one after the other."""

    order: list[str] = field(default_factory=list)
    responses: dict[str, StoredResponse] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    next_place: int | None = None

    def write(self, step: Step, positions: Sequence[int]) -> None:
        """Note a step that is done for the first time, where its items should be."""
        if self.next_place is None and positions:
            self.next_place = positions[0]
        for item in step.items:
            assert self.next_place is not None
            self.places[item.id] = self.next_place
            self.order.append(item.id)
            self.next_place += 1
        if step.taken_out:
            self.order.remove(step.items[0].id)
        if step.turn is not None:
            self.responses[step.turn.response.id] = step.turn.response

    def places_of(self, step: Step) -> list[int]:
        """Return where the items of a step should be."""
        return [self.places[item.id] for item in step.items]


# Of each writer: how many items a step has, and whether it is a turn (1), items (0) or items less one (2).
scripts = st.lists(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3)).filter(lambda made: made != (2, 0)),
        max_size=5,
    ),
    min_size=WRITERS,
    max_size=WRITERS,
)
# Who is next; through which connection; and whether to do something over again instead.
weaves = st.lists(
    st.tuples(st.integers(0, WRITERS - 1), st.booleans(), st.integers(-3, 9)), max_size=40
)
thorough = settings(
    max_examples=20,
    deadline=None,
    # Shrinking runs against a store that keeps what was written: examples use ids of their own.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
        HealthCheck.too_slow,
    ],
)


def steps_of(stage: Stage, conversation_id: str, script: list[tuple[int, int]]) -> list[Step]:
    """Write a script out; the turns of one writer are a chain."""
    steps: list[Step] = []
    previous: StoredResponse | None = None
    for what, count in script:
        if what == 1:
            previous = stage.response(previous=previous, conversation_id=conversation_id)
            items = [stage.item(f"{n}", response_id=previous.id) for n in range(count)]
            turn = Turn(response=previous, items=items, links=ids(items))
            steps.append(Step(turn, items))
        else:
            steps.append(Step(None, stage.items(count), taken_out=what == 2))
    return steps


class InterleavingCases:
    async def do(
        self, stage: Stage, store: HistoryStore, conversation_id: str, step: Step
    ) -> tuple[list[int], bool]:
        """Do a step, and return positions and whether it had been done."""
        if step.turn is not None:
            committed = await store.commit_turn(stage.access, step.turn)
            return list(committed.positions), committed.again
        places = await store.append_items(
            stage.access, conversation_id, step.items, now_us=stage.now_us
        )
        if step.taken_out:
            assert await store.delete_item(stage.access, conversation_id, step.items[0].id) is True
        return list(places), False

    async def check(self, stage: Stage, conversation_id: str, book: Book) -> None:
        """Assert that exactly what should be there is there."""
        assert await stage.listed(conversation_id) == book.order
        assert await stage.positions(conversation_id) == [book.places[each] for each in book.order]
        for record in book.responses.values():
            kept = await stage.other.get_response(stage.access, record.id)
            assert unversioned(kept) == record
            chain = await stage.chain(record.id)
            assert chain.complete is True
            assert len(chain.responses) == record.depth + 1

    @thorough
    @given(scripts=scripts, weave=weaves)
    async def test_any_order_of_steps_and_repetitions_is_one_after_the_other(
        self,
        stage: Stage,
        scripts: list[list[tuple[int, int]]],
        weave: list[tuple[int, bool, int]],
    ) -> None:
        stage.begin_thread()
        conversation_id = await stage.new_conversation()
        waiting = [steps_of(stage, conversation_id, script) for script in scripts]
        done: list[Step] = []
        book = Book()
        for writer, by_other, again in weave:
            store = stage.other if by_other else stage.store
            if 0 <= again < len(done):
                if not done[again].taken_out:
                    places, repeated = await self.do(stage, store, conversation_id, done[again])
                    assert places == book.places_of(done[again])
                    assert repeated is (done[again].turn is not None)
            elif waiting[writer]:
                step = waiting[writer].pop(0)
                places, repeated = await self.do(stage, store, conversation_id, step)
                book.write(step, places)
                assert places == book.places_of(step)
                assert repeated is False
                done.append(step)
        await self.check(stage, conversation_id, book)

    @thorough
    @given(scripts=scripts)
    async def test_four_at_once_are_one_after_the_other(
        self, stage: Stage, scripts: list[list[tuple[int, int]]]
    ) -> None:
        stage.begin_thread()
        conversation_id = await stage.new_conversation()
        written: list[tuple[Step, list[int]]] = []

        async def write(number: int, script: list[tuple[int, int]]) -> None:
            for step in steps_of(stage, conversation_id, script):
                stores = (stage.store, stage.other)
                # Each does a turn twice at once, as after a time-out.
                twice = [self.do(stage, stores[number % 2], conversation_id, step)]
                if step.turn is not None:
                    twice.append(self.do(stage, stores[1 - number % 2], conversation_id, step))
                answers = await asyncio.gather(*twice)
                assert len({tuple(places) for places, _ in answers}) == 1
                assert [again for _, again in answers].count(False) == 1
                written.append((step, answers[0][0]))

        await asyncio.gather(*(write(number, script) for number, script in enumerate(scripts)))
        book = Book()
        empty = [step for step, places in written if not places]
        placed = sorted((places, index) for index, (_, places) in enumerate(written) if places)
        for places, index in placed:
            book.write(written[index][0], places)
            assert places == book.places_of(written[index][0])
        for step in empty:
            book.write(step, [])
        await self.check(stage, conversation_id, book)

    async def test_a_run_fought_over_by_four_ends_once(self, stage: Stage) -> None:
        running = await stage.kept(stage.running())
        ended: list[str] = []

        async def fight(number: int) -> None:
            store = (stage.store, stage.other)[number % 2]
            lease = await store.claim_run(
                stage.access,
                running.id,
                f"node-{number}",
                now_us=stage.now_us,
                until_us=stage.in_s(60),
            )
            if lease is None:
                return
            await store.patch_response(
                stage.access,
                running.id,
                Patch(status=Status.IN_PROGRESS),
                from_statuses=[Status.QUEUED],
                token=lease.token,
            )
            done = msgspec.structs.replace(
                running, status=Status.COMPLETED, response=b'{"by":"%d"}' % number
            )
            await store.commit_turn(stage.access, Turn(response=done, token=lease.token))
            ended.append(f'{{"by":"{number}"}}')

        await asyncio.gather(*(fight(number) for number in range(WRITERS)))
        kept = await stage.store.get_response(stage.access, running.id)
        assert kept is not None
        assert (kept.status, [kept.response.decode()]) == (Status.COMPLETED, ended)
