"""What waits on one node's disk is never denied by another one."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from smg_node.core.errors import ErrorKind
from smg_node.history.errors import PendingWriteError, failure_of
from smg_node.history.peers import pending_writes as unwritten_module
from smg_node.history.peers.peer_interface import UNWRITTEN
from smg_node.history.peers.pending_writes import (
    ASKED_MAX,
    GOING_S,
    LATE_S,
    NO,
    TURN_MAX_MS,
    YES,
    PendingQuery,
    answered,
)
from smg_node.history.store import resilient_store as keeping_module
from smg_storage.errors import StoreError
from smg_storage.records import Access, PageAsk
from support.history.spools import ACCESS, response_id, turn
from support.history.two_node_history import Two, two
from support.http.raw_http import until

RIVAL = Access(tenant="rival")
CHAIN = {"items_max": 10, "bytes_max": 1_000}


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping_module, "UNWRITTEN_S", 0.02)


async def test_nobody_is_asked_while_nothing_waits(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await world.a.commit(ACCESS, turn())
        assert await world.b.get_response(ACCESS, response_id(1, 1)) == turn().response
        assert await world.b.get_conversation(ACCESS, "conv_1") is None
        assert world.net.asked == []
        assert not world.net.spooling.get("a")


async def test_what_waits_elsewhere_is_not_denied(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        world.gate.closed = True
        assert (await world.a.commit(ACCESS, turn(1, 1))).spooled
        assert world.net.spooling["a"]
        for asked in (
            world.b.get_response_chain(ACCESS, response_id(1, 1), **CHAIN),
            world.b.find_items(ACCESS, [response_id(2, 1), response_id(1, 1)]),
            world.b.list_identifier_responses(ACCESS, "p", PageAsk()),
        ):
            with pytest.raises(StoreError, match="disk of a"):
                await asked
        assert await world.b.get_response(ACCESS, response_id(2, 1)) is None
        assert await world.b.get_response(RIVAL, response_id(1, 1)) is None
        world.gate.closed = False
        found = None
        while found is None:
            try:
                found = await world.b.get_response(ACCESS, response_id(1, 1))
                assert found is not None, "it was denied"
            except StoreError:
                await asyncio.sleep(0.01)
        await until(lambda: not world.net.spooling["a"])
        world.net.asked.clear()
        assert await world.b.get_response(ACCESS, response_id(1, 1)) == turn(1, 1).response
        assert world.net.asked == []


async def test_a_moment_is_waited_for_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping_module, "UNWRITTEN_S", 60.0)
    async with two(tmp_path) as world:
        world.gate.closed = True
        await world.a.commit(ACCESS, turn(1, 1))
        world.gate.closed = False
        patient = msgspec.structs.replace(ACCESS, timeout_s=60.0)
        assert await world.b.get_response(patient, response_id(1, 1)) == turn(1, 1).response


@pytest.mark.parametrize("state", ["dead", "left"])
async def test_what_is_not_there_may_be_with_who_is_gone(tmp_path: Path, state: str) -> None:
    async with two(tmp_path) as world:
        await world.b.commit(ACCESS, turn(2, 1))
        world.gate.closed = True
        await world.a.commit(ACCESS, turn(1, 1))
        world.net.states["a"] = state
        with pytest.raises(StoreError, match="disk of a"):
            await world.b.get_response(ACCESS, response_id(1, 1))
        with pytest.raises(StoreError, match="disk of a"):
            await world.b.get_response_chain(ACCESS, response_id(1, 1), **CHAIN)
        assert await world.b.get_response(ACCESS, response_id(2, 1)) == turn(2, 1).response
        assert await world.b.find_items(ACCESS, ["msg_own"]) == {}
        assert await world.b.get_conversation(ACCESS, "conv_1") is None


async def test_who_does_not_answer_may_have_it(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await world.b.commit(ACCESS, turn(2, 1))
        world.net.spooling["a"] = True
        world.net.faults += ["unreachable", "unreachable"]
        assert await world.b.get_response(ACCESS, response_id(2, 1)) is not None
        with pytest.raises(StoreError, match="disk of a"):
            await world.b.get_response(ACCESS, response_id(1, 1))


async def test_a_question_that_is_none_has_no_answer(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        world.gate.closed = True
        await world.a.commit(ACCESS, turn(1, 1))
        keeping = world.a._keeping
        assert await answered(keeping, b"\xc1") == b""
        wrong = msgspec.msgpack.encode(PendingQuery("acme", [], of_all=True))
        assert await answered(keeping, wrong) == YES
        assert await answered(keeping, msgspec.msgpack.encode(PendingQuery("acme", ["x"]))) == NO


# ── What nobody could say ────────────────────────────────────────────────────


async def cut_off(world: Two) -> None:
    """Let a keep a turn on its disk in a minority, while the store is away for b too, and back."""
    world.gate.closed = world.b_gate.closed = True
    assert (await world.a.commit(ACCESS, turn(1, 1))).spooled
    world.net.spooling["a"] = False  # what it says of itself reaches nobody
    with pytest.raises(StoreError, match="away"):
        await world.b.get_response(ACCESS, response_id(1, 1))
    world.b_gate.closed = False


@pytest.mark.parametrize("state", ["alive", "suspect", "dead"])
async def test_what_may_be_with_who_was_not_heard_since_the_store_was_away_is_not_denied(
    tmp_path: Path, state: str
) -> None:
    async with two(tmp_path) as world:
        await world.b.commit(ACCESS, turn(2, 1))
        await cut_off(world)
        world.passed.more_s += 60.0
        world.net.states["a"], world.net.unheard_s["a"] = state, 61.0
        world.net.faults += ["unreachable"] * 3
        for asked in (
            world.b.get_response(ACCESS, response_id(1, 1)),
            world.b.get_response_chain(ACCESS, response_id(1, 2), **CHAIN),
            world.b.delete_response(ACCESS, response_id(1, 1)),
        ):
            with pytest.raises(PendingWriteError, match="disk of a"):
                await asked
        assert await world.b.get_response(ACCESS, response_id(2, 1)) == turn(2, 1).response
        assert len(world.net.asked) == (0 if state == "dead" else 3)


def test_a_client_hears_who_may_still_have_to_store_it() -> None:
    told = failure_of(PendingWriteError("a"))
    assert (told.kind, told.code) == (ErrorKind.OVERLOADED, "store_unavailable")
    assert told.retry_after_s
    assert told.message == "the node 'a' may still have to store what this is about"


async def test_what_is_told_before_a_word_has_come_round_is_asked_for(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await cut_off(world)
        world.passed.more_s += LATE_S - 8.0  # a was heard a moment ago, and its word is on its way
        with pytest.raises(PendingWriteError):
            await world.b.get_response(ACCESS, response_id(1, 1))
        assert await world.b.get_response(ACCESS, response_id(3, 1)) is None
        world.gate.closed = False
        while world.a._keeping._spool.turns:
            world.passed.more_s += 1.0
            await asyncio.sleep(0.005)
        assert await world.b.get_response(ACCESS, response_id(1, 1)) == turn(1, 1).response


async def test_a_store_that_only_one_node_missed_makes_nobody_deny(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        world.gate.closed = True
        assert (await world.a.commit(ACCESS, turn(1, 1))).spooled
        world.net.spooling["a"] = False  # its word is on its way
        with pytest.raises(PendingWriteError):
            await world.b.get_response(ACCESS, response_id(1, 1))
        assert await world.b.get_response(ACCESS, response_id(3, 1)) is None
        assert world.net.asked == [("b", "a")] * 2
        world.net.states["a"] = "dead"
        with pytest.raises(PendingWriteError):
            await world.b.get_response(ACCESS, response_id(3, 1))
        world.net.unheard_s["a"] = GOING_S
        assert await world.b.get_response(ACCESS, response_id(3, 1)) is None


async def test_who_died_after_the_store_was_well_again_is_believed(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await cut_off(world)
        world.passed.more_s += 60.0
        world.net.states["a"], world.net.unheard_s["a"] = "dead", 45.0
        assert await world.b.get_response(ACCESS, response_id(3, 1)) is None
        world.net.states["a"], world.net.unheard_s["a"] = "left", 1e9
        assert await world.b.get_response(ACCESS, response_id(3, 1)) is None
        assert world.net.asked == []


async def test_who_is_dead_since_before_the_store_was_away_may_have_what_is_young(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as world:
        await cut_off(world)
        world.net.states["a"], world.net.unheard_s["a"] = "dead", 1e5
        world.passed.ms += TURN_MAX_MS + 100_000_000 - 1_000
        with pytest.raises(PendingWriteError):
            await world.b.get_response(ACCESS, response_id(1, 1))
        world.passed.ms += 100  # it began a day and more before a was heard last
        assert await world.b.get_response(ACCESS, response_id(1, 1)) is None
        # Nor did any node of this cluster make it.
        assert await world.b.get_response(ACCESS, "resp_of_somebody") is None


async def test_what_began_when_the_store_was_well_again_is_known_not_to_wait(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as world:
        await cut_off(world)
        world.net.states["a"], world.net.unheard_s["a"] = "dead", 1e3
        world.passed.more_s += LATE_S + 2.0
        with pytest.raises(PendingWriteError):
            await world.b.get_response(ACCESS, response_id(3, 1))
        began = int(LATE_S * 1_000) + 1_500  # a second and a half before now
        assert await world.b.get_response(ACCESS, response_id(3, began)) is None


async def test_a_node_that_has_just_begun_knows_nothing_of_before(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        world.net.states["a"], world.net.unheard_s["a"] = "dead", float("inf")
        assert await world.b.get_response(ACCESS, response_id(1, 1)) is None
        world.passed.ms += 100_000
        with pytest.raises(PendingWriteError):
            await world.b.get_response(ACCESS, response_id(1, 1))


async def test_no_more_nodes_are_asked_than_it_is_worth(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await cut_off(world)

        async def no(payload: bytes, caller: str) -> bytes:
            return NO

        for number in range(ASKED_MAX):
            world.net.states[f"c{number}"] = "alive"
            world.net.answers[f"c{number}", UNWRITTEN] = no
        # One is left that may have had the store away.
        with pytest.raises(PendingWriteError):
            await world.b.get_response(ACCESS, response_id(3, 1))
        assert len(world.net.asked) == ASKED_MAX
        world.net.asked.clear()
        world.passed.more_s += 60.0
        world.net.unheard_s["a"] = -1.0
        assert await world.b.get_response(ACCESS, response_id(3, 1)) is None
        assert len(world.net.asked) == ASKED_MAX


async def test_the_store_is_looked_at_while_somebody_is_not_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unwritten_module, "WATCH_S", 0.0)
    async with two(tmp_path) as world:
        world.b_gate.closed = True
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(world.b.watch())
            await asyncio.sleep(0.02)
            assert world.b._keeping.failed_s_ago >= 100.0
            world.net.unheard_s["a"] = 30.0
            await until(lambda: world.b._keeping.failed_s_ago < 100.0)
            watching.cancel()


async def test_where_nothing_is_kept_nobody_can_have_it(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        vars(world.b._keeping)["_kind"] = "none"
        world.net.states["a"], world.net.unheard_s["a"] = "dead", float("inf")
        assert await world.b.get_response(ACCESS, response_id(1, 1)) is None
        await world.b.watch()
