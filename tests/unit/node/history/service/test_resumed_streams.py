"""Resumed streams are counted once, by API, by why they broke and by how the rest of them ended."""

import contextlib
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs.event_codec import packed
from smg_node.history.runs.run_registry import FIRST_TOKEN
from smg_node.history.service.resumed_streams import Events, ResumedStreams
from smg_storage.records import Status, StoredResponse, Turn
from support.history.history_world import history_world
from support.history.remote_run import ID, MINUTE_US, Elsewhere, Steps, broken, every, nothing

INTERACTION = "int_" + "0123456789ab" * 4
HERE = "a/00000002"
STATES = {"b": "alive", "c": "suspect", "d": "dead", "e": "left"}
FIRST = [NumberedEvent(4, "step.delta", b"{}")]
LAST = [NumberedEvent(5, "step.stop", b"{}"), NumberedEvent(6, "interaction.completed", b"{}")]


def streams() -> ResumedStreams:
    return ResumedStreams(HERE, lambda: STATES)


def row(
    owner: str, *, token: int = FIRST_TOKEN, status: Status = Status.IN_PROGRESS
) -> StoredResponse:
    return replace(Elsewhere().row(), owner=owner, lease_token=token, status=status)


# ── Why it broke ─────────────────────────────────────────────────────────────

OVER = Status.COMPLETED
CAUSES: dict[str, tuple[list[StoredResponse], str]] = {
    "made by this process": ([], "cut"),
    "this process, as the store knows": ([row(HERE)], "cut"),
    "an alive node": ([row("b/1")], "cut"),
    "a suspected node": ([row("c/1")], "cut"),
    "a node nobody knows": ([row("z/1")], "cut"),
    "nobody": ([row("")], "cut"),
    "a dead node": ([row("d/1")], "death"),
    "a node that has left": ([row("e/1")], "drain"),
    "a dead node that had ended it": ([row("d/1", status=OVER)], "cut"),
    "an earlier process of this node": ([row("a/00000001")], "death"),
    "an earlier process that had ended it": ([row("a/00000001", status=OVER)], "cut"),
    "taken over from a node, and ended": ([row("b/1", token=2, status=Status.FAILED)], "death"),
    "alive at first, then taken over": ([row("b/1"), row(HERE, token=2)], "death"),
    "left at first, then taken over": ([row("e/1"), row(HERE, token=2)], "drain"),
}


@pytest.mark.parametrize("made_by", CAUSES)
async def test_the_cause_shows_in_who_makes_the_answer(made_by: str) -> None:
    rows, cause = CAUSES[made_by]
    counts = streams()
    resumed = counts.of(ID)
    for one in rows:
        resumed.seen(one)
    resumed.refused()
    assert counts.over == {("responses", cause, "refused"): 1}


@pytest.mark.parametrize("made_by", CAUSES)
async def test_a_client_that_a_draining_node_sent_on_was_drained_whoever_makes_the_answer(
    made_by: str,
) -> None:
    counts = streams()
    resumed = counts.of(INTERACTION, drained=True)
    for one in CAUSES[made_by][0]:
        resumed.seen(one)
    resumed.refused()
    assert counts.over == {("interactions", "drain", "refused"): 1}


# ── How the rest ended ───────────────────────────────────────────────────────


async def told(*batches: list[NumberedEvent], breaks: bool = False) -> Events:
    for batch in batches:
        yield batch
    if breaks:
        raise SmgError(ErrorKind.OVERLOADED, "the store is away")


async def read_all(events: Events) -> None:
    with contextlib.suppress(SmgError):
        await every(events)


def read_and_leave(batches: int) -> Callable[[Events], Awaitable[None]]:
    async def read(events: Events) -> None:
        for _ in range(batches):
            await anext(events)
        await events.aclose()

    return read


ENDINGS: dict[str, tuple[Callable[[], Events], Callable[[Events], Awaitable[None]], str]] = {
    "to the last event": (lambda: told(FIRST, LAST), read_all, "whole"),
    "nothing was left": (told, read_all, "whole"),
    "closed behind the last event": (lambda: told(FIRST, LAST), read_and_leave(2), "whole"),
    "closed before the last event": (lambda: told(FIRST, LAST), read_and_leave(1), "left"),
    "broke after some events": (lambda: told(FIRST, breaks=True), read_all, "lost"),
    "broke before any": (lambda: told(breaks=True), read_all, "refused"),
}


@pytest.mark.parametrize("how", ENDINGS)
async def test_the_ending_is_that_of_its_events(how: str) -> None:
    make, read, ending = ENDINGS[how]
    counts = streams()
    await read(counts.of(INTERACTION).told(make()))
    assert counts.over == {("interactions", "cut", ending): 1}


async def test_an_end_that_is_none_counts_as_lost() -> None:
    counts = streams()
    resumed = counts.of(INTERACTION)

    async def cut_short() -> Events:
        yield FIRST
        resumed.lost()
        yield LAST

    await read_all(resumed.told(cut_short()))
    assert counts.over == {("interactions", "cut", "lost"): 1}


async def test_counts_of_the_same_labels_add_up() -> None:
    counts = streams()
    for _ in range(3):
        await read_all(counts.of(ID).told(told(FIRST)))
    assert counts.over == {("responses", "cut", "whole"): 3}


# ── Of a response that another node makes ────────────────────────────────────


async def test_a_maker_that_dies_while_its_stream_is_resumed_is_the_cause() -> None:
    there, counts = Elsewhere(), streams()
    await there.begin()
    await there.log(4)

    async def taken_over() -> None:
        held = [
            await there.store.claim_run(there.access, ID, owner, now_us=now_us, until_us=now_us + 1)
            for owner, now_us in (("b/1", there.now_us), (HERE, there.now_us + 2))
        ][-1]
        assert held is not None
        assert held.token == FIRST_TOKEN + 1
        final = there.row(Status(there.ended.status))
        await there.store.commit_turn(there.access, Turn(response=final, token=held.token))

    resumed = counts.of(ID)
    following = there.following(sleep=Steps(nothing, taken_over))
    events = await following.follow(there.access, ID, 0, seen=resumed.seen)
    assert await every(resumed.told(events)) == there.told[1:]
    assert counts.over == {("responses", "death", "whole"): 1}


async def test_a_stream_whose_log_goes_away_is_lost() -> None:
    there, counts = await Elsewhere().whole(4), streams()
    resumed = counts.of(ID)
    events = resumed.told(await there.following().follow(there.access, ID, 0, seen=resumed.seen))
    await anext(events)
    there.now_us += 2 * MINUTE_US
    _, error = await broken(events)
    assert error.code == "stream_lost"
    assert counts.over == {("responses", "cut", "lost"): 1}


async def test_a_response_whose_stream_a_client_goes_on_with_is_counted() -> None:
    world = history_world()
    run = await world.create(input="hi")
    told = [one async for batch in run.told() for one in batch]
    await world.keeper.store.append_events(
        world.access, run.id, [packed(told[:-1])], expires_us=2**60
    )
    desk = world.desks.responses
    events = [await desk.follow(world.access, run.id, None)]
    events += [await desk.resume(world.access, run.id, after) for after in (0, 10**17)]
    rest = [[one async for batch in some for one in batch] for some in events]
    assert rest == [told, told[1:], []]
    with pytest.raises(SmgError) as unknown:
        await desk.resume(world.access, "resp_none", 0)
    assert unknown.value.status == 404
    assert world.resumed.over == {("responses", "cut", "whole"): 2}
