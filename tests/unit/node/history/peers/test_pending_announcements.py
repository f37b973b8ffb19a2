"""A conversation does not go on anywhere without the turn of it that waits on another node's disk."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from smg_node.core.errors import ErrorKind
from smg_node.history.errors import NotAnnouncedError, PendingWriteError, failure_of
from smg_node.history.peers import pending_writes as unwritten_module
from smg_node.history.peers.peer_interface import FORETOLD
from smg_node.history.peers.pending_announcements import (
    REFUSED,
    TAKEN,
    PendingAnnouncements,
    PendingThreads,
)
from smg_node.history.peers.pending_announcer import PendingAnnouncer
from smg_node.history.peers.pending_writes import NO, YES, PendingQuery, answered
from smg_node.history.store import resilient_store as keeping_module
from smg_storage.ids import thread_of
from smg_storage.records import Conversation, PageAsk, Turn
from support.history.peer_histories import Net
from support.history.spools import ACCESS, TENANT, response_id, turn
from support.history.two_node_history import Two, keeping_of, two
from support.http.raw_http import until

CONVERSATION = f"conv_{1:012x}{7:012x}{1:024x}"
OTHER = f"conv_{1:012x}{8:012x}{1:024x}"


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping_module, "UNWRITTEN_S", 0.02)


def in_conversation(number: int = 1, conversation: str = CONVERSATION) -> Turn:
    one = turn(7, number)
    return structs.replace(
        one, response=structs.replace(one.response, conversation_id=conversation)
    )


async def begun(world: Two) -> None:
    """Let there be two conversations, and a's way to the store be closed; what a says of itself is still on its way."""
    for each in (CONVERSATION, OTHER):
        await world.b.create_conversation(ACCESS, Conversation(each, 1, 1))
    world.gate.closed = True


async def kept_by_a(world: Two, number: int = 1) -> None:
    assert (await world.a.commit(ACCESS, in_conversation(number))).spooled
    world.net.spooling["a"] = False


async def test_who_was_told_of_a_turn_does_not_go_on_without_it(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await begun(world)
        await kept_by_a(world)
        with pytest.raises(PendingWriteError, match="disk of a"):
            await world.b.list_items(ACCESS, CONVERSATION, PageAsk())
        assert await world.b.list_items(ACCESS, OTHER, PageAsk()) is not None
        assert (
            await world.b.get_conversation(structs.replace(ACCESS, tenant="rival"), OTHER) is None
        )
        # Also when nobody hears anything of it any more.
        world.net.states["a"] = "dead"
        with pytest.raises(PendingWriteError):
            await world.b.get_conversation(ACCESS, CONVERSATION)
        world.net.states["a"] = "alive"
        world.gate.closed = False
        while world.a._keeping._spool.turns:
            world.passed.more_s += 1.0
            await asyncio.sleep(0.005)
        assert await world.b.list_items(ACCESS, CONVERSATION, PageAsk()) is not None
        assert not len(world.b._foretold)
        asked = len(world.net.asked)
        assert await world.b.list_items(ACCESS, CONVERSATION, PageAsk()) is not None
        assert len(world.net.asked) == asked, "nothing is asked while nothing waits"


@pytest.mark.parametrize("how", ["dead", "unreachable", "full"])
async def test_a_turn_of_a_conversation_is_refused_while_a_node_cannot_be_told(
    tmp_path: Path, how: str
) -> None:
    async with two(tmp_path) as world:
        await begun(world)
        if how == "dead":
            world.net.states["b"] = "dead"
        elif how == "unreachable":
            world.net.faults.append("unreachable")
        else:
            world.b._foretold._most = 0  # type: ignore[misc]  # so that it is full
        with pytest.raises(NotAnnouncedError) as refused:
            await world.a.commit(ACCESS, in_conversation())
        assert not world.a._keeping._spool.turns
        told = failure_of(refused.value)
        assert (told.kind, told.code) == (ErrorKind.OVERLOADED, "store_unavailable")
        assert "neither does the node 'b'" in told.message
        # A chain is asked for by its last response, which is not denied: it may wait.
        assert (await world.a.commit(ACCESS, turn(1, 1))).spooled
        assert not world.a._keeping._coming


async def test_between_the_telling_and_the_disk_it_waits_already(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await begun(world)
        seen = []

        async def heard(payload: bytes, caller: str) -> bytes:
            asked = msgspec.msgpack.encode(PendingQuery(TENANT, [CONVERSATION]))
            seen.append(await answered(world.a._keeping, asked))
            of_all = msgspec.msgpack.encode(PendingQuery(TENANT, [], of_all=True))
            seen.append(await answered(world.a._keeping, of_all))
            other = msgspec.msgpack.encode(PendingQuery("rival", [CONVERSATION]))
            seen.append(await answered(world.a._keeping, other))
            return TAKEN

        world.net.answers["b", FORETOLD] = heard
        assert (await world.a.commit(ACCESS, in_conversation())).spooled
        assert seen == [YES, YES, NO]


async def test_who_has_not_looked_at_its_disk_yet_denies_nothing(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        again = keeping_of(world.store, tmp_path / "again", world.passed.now_s)
        asked = msgspec.msgpack.encode(PendingQuery(TENANT, [CONVERSATION]))
        assert await answered(again, asked) == YES
        async with asyncio.TaskGroup() as group:
            running = group.create_task(again.run())
            await again.ping(timeout_s=5)
            assert await answered(again, asked) == NO
            running.cancel()
        await again.close()


async def test_what_was_written_is_forgotten_also_if_nobody_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unwritten_module, "WATCH_S", 0.0)
    async with two(tmp_path) as world:
        await begun(world)
        await kept_by_a(world)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(world.b.watch())
            await asyncio.sleep(0.05)
            assert len(world.b._foretold) == 1, "it waits still"
            world.gate.closed = False
            world.passed.more_s += 60.0
            world.a._keeping._spool.hurry()
            await until(lambda: not len(world.b._foretold))
            watching.cancel()


# ── The telling ──────────────────────────────────────────────────────────────


async def test_many_turns_are_told_of_in_few_rounds_also_if_the_first_to_tell_goes() -> None:
    net, rounds, go = Net(), list[Sequence[tuple[str, str]]](), asyncio.Event()

    async def heard(payload: bytes, caller: str) -> bytes:
        rounds.append(msgspec.msgpack.decode(payload, type=PendingThreads).threads)
        await go.wait()
        return TAKEN

    telling = PendingAnnouncer(net.peers("a"))
    net.peers("b").answer(FORETOLD, heard)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(telling.tell("t", "conv_0"))
        await until(lambda: bool(rounds))
        tasks = [group.create_task(telling.tell("t", f"conv_{each % 5}")) for each in range(50)]
        await asyncio.sleep(0)
        first.cancel()
        await until(lambda: len(rounds) == 2)
        tasks[0].cancel()  # it tells for the rest
        await until(lambda: len(rounds) == 3)
        go.set()
    assert [len(each) for each in rounds] == [1, 5, 5]
    assert all(task.done() and not task.cancelled() for task in tasks[1:])


async def test_a_node_alone_tells_nobody() -> None:
    await PendingAnnouncer(Net().peers("a")).tell("t", CONVERSATION)


# ── What was told ────────────────────────────────────────────────────────────


def waits(*threads: tuple[str, str]) -> bytes:
    return msgspec.msgpack.encode(PendingThreads(threads))


def test_what_is_said_again_is_not_forgotten_by_an_older_answer() -> None:
    told = PendingAnnouncements(now_s=lambda: 0.0)
    assert told.hear(waits((TENANT, CONVERSATION)), "a") == TAKEN
    before = told.of(TENANT, [CONVERSATION])["a"]
    told.hear(waits((TENANT, CONVERSATION)), "a")
    told.written("a", before)
    assert list(told.of(TENANT, [CONVERSATION])) == ["a"]
    told.written("a", told.of(TENANT, [CONVERSATION])["a"])
    assert (told.of(TENANT, [CONVERSATION]), len(told)) == ({}, 0)


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    told = PendingAnnouncements(now_s=lambda: 0.0, most=3)
    ids = [response_id(number, 1) for number in range(4)]
    assert told.hear(waits(*((TENANT, each) for each in ids)), "a") == REFUSED
    assert told.hear(waits(*((TENANT, each) for each in ids[:3])), "a") == TAKEN
    assert told.hear(waits((TENANT, ids[3])), "a") == REFUSED
    told.keep_only({"b"})
    assert told.hear(waits((TENANT, ids[3])), "a") == TAKEN


@given(st.binary(max_size=40))
def test_garbage_is_refused(payload: bytes) -> None:
    assert PendingAnnouncements(now_s=lambda: 0.0).hear(payload, "a") in (REFUSED, TAKEN)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["hear", "of", "due", "keep"]),
            st.sampled_from("ab"),
            st.sampled_from(["t", "u"]),
            st.integers(0, 5),
        ),
        max_size=60,
    )
)
def test_it_knows_what_was_said_and_not_yet_written(
    acts: list[tuple[str, str, str, int]],
) -> None:
    now_s = 0.0
    told, model = PendingAnnouncements(now_s=lambda: now_s), set[tuple[str, str, str]]()
    for word, name, tenant, number in acts:
        now_s += 1.0
        any_id = response_id(number, 1)
        if word == "hear":
            told.hear(waits((tenant, any_id)), name)
            model.add((name, tenant, thread_of(any_id)))
        elif word == "of":
            for each, numbers in told.of(tenant, [any_id]).items():
                told.written(each, numbers)
                model.discard((each, tenant, thread_of(any_id)))
        elif word == "due":
            for each, (whose, ids, numbers) in told.due(float(number), 2).items():
                assert {thread for _, thread in numbers} == {thread_of(one) for one in ids}
                assert {whose} == {its for its, _ in numbers}
                told.written(each, numbers)
                model -= {(each, whose, thread) for _, thread in numbers}
        else:
            told.keep_only({name})
            model = {row for row in model if row[0] == name}
        assert len(told) == len(model)
        for each, whose, thread in model:
            ids = [one for one in map(response_id, range(6), [1] * 6) if thread_of(one) == thread]
            assert each in told.of(whose, ids)
