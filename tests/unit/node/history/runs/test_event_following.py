from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.stored_replay import replayed
from smg_node.history.runs.event_following import POLL_FIRST_S, POLL_MOST_S
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, EventBlob, StoredResponse
from support.answers.responses import checked
from support.history.history_world import begin, block, finish
from support.history.remote_run import (
    ID,
    MINUTE_US,
    Elsewhere,
    RunHere,
    Steps,
    broken,
    every,
    nothing,
)

ENDS = [
    FinalStatus.completed(),
    FinalStatus.incomplete("max_output_tokens"),
    FinalStatus.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")),
    FinalStatus.cancelled(),
]


async def refusal(there: Elsewhere, after: int | None = None, **more: Any) -> SmgError:
    with pytest.raises(SmgError) as found:
        await there.following(**more).follow(there.access, ID, after)
    return found.value


# ── Over ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ended", ENDS, ids=lambda ended: ended.status)
async def test_a_log_and_its_row_are_the_whole_stream_from_any_number_on(
    ended: FinalStatus,
) -> None:
    there = await Elsewhere(ended=ended).whole(4)
    following = there.following()
    for after in (None, *range(len(there.told) + 2)):
        events = await following.follow(there.access, ID, after)
        assert await every(events) == there.told[0 if after is None else after + 1 :]
    checked(there.told)


async def test_a_number_far_beyond_the_end_is_followed_by_nothing() -> None:
    there = await Elsewhere().whole(4)
    asked: list[int] = []
    read = there.store.read_events

    async def watched(*args: Any, after: int, **more: Any) -> Sequence[EventBlob]:
        asked.append(after)
        return await read(*args, after=after, **more)

    there.store.read_events = watched  # type: ignore[method-assign]  # a spy
    assert await every(await there.following().follow(there.access, ID, 10**17)) == []
    # Databases count in 32 bits.
    assert max(asked) < 2**31


async def test_without_a_log_what_is_stored_is_told_again_but_never_from_a_number_on() -> None:
    there = Elsewhere(background=False)
    await there.end()
    told = await every(await there.following().follow(there.access, ID, None))
    assert told == replayed(there.response)
    checked(told)
    error = await refusal(there, 0)
    assert (error.status, error.code, error.where) == (400, "stream_expired", "starting_after")


async def test_what_is_told_again_comes_in_bounded_parts() -> None:
    texts: list[Event] = [begin()]
    for number in range(12):
        texts += block(number, "text", "x" * 40_000)
    there = Elsewhere([*texts, *finish()])
    await there.end()
    events = await there.following().follow(there.access, ID, None)
    sizes = [sum(len(one.data) for one in told) async for told in events]
    assert len(sizes) > 4
    # The last event has all of it once more, and is one.
    assert max(sizes[:-1]) < (256 << 10) + 41_000


async def test_thoughts_told_again_have_the_names_that_are_set_now() -> None:
    there = Elsewhere()
    await there.end()
    following = there.following(reasoning_events="open")
    told = await every(await following.follow(there.access, ID, None))
    assert "response.reasoning.delta" in {one.type for one in told}


async def test_a_log_that_is_over_is_as_none() -> None:
    there = await Elsewhere().whole(4)
    there.now_us += 2 * MINUTE_US
    told = await every(await there.following().follow(there.access, ID, None))
    assert told == replayed(there.response)
    assert (await refusal(there, 3)).code == "stream_expired"


async def test_a_log_whose_beginning_is_gone_is_good_for_whoever_has_the_beginning() -> None:
    there = Elsewhere()
    await there.begin()
    await there.append(6, len(there.logged))
    await there.end()
    following = there.following()
    assert await every(await following.follow(there.access, ID, None)) == replayed(there.response)
    assert (await refusal(there, 4)).code == "stream_expired"
    assert await every(await following.follow(there.access, ID, 7)) == there.told[8:]


@pytest.mark.parametrize("after", [None, 0])
async def test_what_is_unknown_or_another_tenants_is_not_found(after: int | None) -> None:
    there = await Elsewhere().whole(4)
    for access, response_id in (
        (there.access, ID.replace("resp", "rasp")),
        (there.access, "no id!"),
        (Access(tenant="other"), ID),
    ):
        with pytest.raises(SmgError) as found:
            await there.following(run=RunHere(there.told)).follow(access, response_id, after)
        assert found.value.kind is ErrorKind.NOT_FOUND


async def test_a_stored_object_that_makes_no_sense_is_a_mistake_of_ours() -> None:
    there = Elsewhere()
    there.response = b'{"status":"queued","output":[]}'
    await there.whole(4)
    told, error = await broken(await there.following().follow(there.access, ID, None))
    assert (told, error.kind) == (there.logged, ErrorKind.INTERNAL)
    bare = Elsewhere()
    bare.response = b"[]"
    await bare.end()
    assert (await refusal(bare)).kind is ErrorKind.INTERNAL


async def test_a_hole_is_never_told_over() -> None:
    there = Elsewhere()
    await there.begin()
    await there.append(0, 5)
    await there.append(6, len(there.logged))
    await there.end()
    told, error = await broken(await there.following().follow(there.access, ID, None))
    assert told == there.told[:5]
    assert error.kind is ErrorKind.INTERNAL


async def test_a_log_cleared_away_while_it_is_read_does_not_end_well() -> None:
    there = await Elsewhere().whole(4)
    events = await there.following().follow(there.access, ID, None)
    told = list(await anext(events))
    there.now_us += 2 * MINUTE_US
    rest, error = await broken(events)
    assert told + rest == there.logged
    assert error.code == "stream_lost"


# ── Under way elsewhere ──────────────────────────────────────────────────────


async def test_a_log_is_followed_while_it_grows() -> None:
    there = Elsewhere()
    await there.begin()
    steps = Steps(
        nothing,
        lambda: there.append(0, 2),
        nothing,
        nothing,
        lambda: there.append(2, 9),
        lambda: there.append(9, len(there.logged)),
        there.end,
    )
    events = await there.following(sleep=steps).follow(there.access, ID, None)
    assert await every(events) == there.told
    assert steps.done
    # It doubles until there is something new.
    first = POLL_FIRST_S
    assert steps.waited_s == [first, 2 * first, first, 2 * first, 4 * first, first, first]


async def test_it_looks_ever_less_often_but_often_enough() -> None:
    there = Elsewhere()
    await there.begin()
    steps = Steps(*[nothing] * 9, there.end)
    events = await there.following(sleep=steps).follow(there.access, ID, 3)
    assert await every(events) == []
    assert steps.waited_s[:5] == [0.05, 0.1, 0.2, 0.4, 0.5]
    assert max(steps.waited_s) == POLL_MOST_S


async def test_the_row_is_looked_at_every_second_time_at_most() -> None:
    class CountedRows(Elsewhere):
        rows = 0

    there = CountedRows()
    asked = there.store.get_response

    async def counted(access: Access, response_id: str) -> StoredResponse | None:
        CountedRows.rows += 1
        return await asked(access, response_id)

    there.store.get_response = counted  # type: ignore[method-assign]  # a spy
    await there.begin()
    steps = Steps(*[nothing] * 20, lambda: there.log(99), there.end)
    events = await there.following(sleep=steps).follow(there.access, ID, None)
    assert await every(events) == there.told
    assert CountedRows.rows == 12


@given(st.data())
@settings(max_examples=60, deadline=None)
async def test_whoever_comes_whenever_from_any_number_on_gets_the_same(data: st.DataObject) -> None:
    there = Elsewhere(data.draw(st.sampled_from([None, [begin(), *block(0, "text", "x")]])))
    await there.begin()
    cuts = data.draw(st.sets(st.integers(1, len(there.logged) - 1)))
    steps: list[Any] = []
    places = [0, *sorted(cuts), len(there.logged)]
    for first, stop in pairwise(places):
        steps += [nothing] * data.draw(st.integers(0, 3))
        steps.append(partial(there.append, first, stop))
    steps.append(there.end)
    for _ in range(data.draw(st.integers(0, len(steps)))):
        await steps.pop(0)()
    after = data.draw(st.none() | st.integers(0, len(there.told) + 2))
    waiting = Steps(*steps)
    events = await there.following(sleep=waiting).follow(there.access, ID, after)
    assert await every(events) == there.told[0 if after is None else after + 1 :]


async def test_an_end_without_any_log_is_told_again() -> None:
    there = Elsewhere()
    await there.begin()
    events = await there.following(sleep=Steps(there.end)).follow(there.access, ID, None)
    assert await every(events) == replayed(there.response)


async def test_a_row_that_disappears_breaks_the_stream_off() -> None:
    there = Elsewhere()
    await there.begin()
    await there.append(0, 5)

    async def deleted() -> None:
        await there.store.delete_response(there.access, ID)

    events = await there.following(sleep=Steps(deleted)).follow(there.access, ID, None)
    told, error = await broken(events)
    assert told == there.told[:5]
    assert error.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("after", [None, 0, 3])
async def test_a_log_without_its_beginning_is_damage_as_long_as_it_grows(after: int | None) -> None:
    there = Elsewhere()
    await there.begin()
    await there.append(5, 9)
    assert (await refusal(there, after)).kind is ErrorKind.INTERNAL
    late = Elsewhere()
    await late.begin()
    steps = Steps(lambda: late.append(5, 9))
    _, error = await broken(await late.following(sleep=steps).follow(late.access, ID, after))
    assert error.kind is ErrorKind.INTERNAL


class Away:
    """A store that does not answer from its `left`-th question on."""

    def __init__(self, there: Elsewhere, left: int) -> None:
        self._there = there
        self._left = left

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._there.store, name)

        async def asked(*args: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise StoreError(StoreErrorKind.UNAVAILABLE, "away")
            return await found(*args, **named)

        return asked


@pytest.mark.parametrize("answers", range(10))
async def test_a_store_that_goes_away_is_told_at_once_and_no_end_is_made_up(answers: int) -> None:
    there = Elsewhere()
    await there.begin()
    await there.append(0, 5)
    steps = Steps(nothing, lambda: there.append(5, len(there.logged)), there.end)
    store: Any = Away(there, answers)
    following = there.following(store=store, sleep=steps)
    if answers < 2:
        with pytest.raises(SmgError) as found:
            await following.follow(there.access, ID, None)
        assert found.value.code == "store_unavailable"
        return
    events = await following.follow(there.access, ID, None)
    if answers < 9:
        told, error = await broken(events)
        assert told in (there.told[:5], there.logged)
        assert error.code == "store_unavailable"
    else:
        assert await every(events) == there.told
