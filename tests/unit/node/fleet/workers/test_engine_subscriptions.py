"""What engines say of their prefix caches is heard while they are ready, by the nodes in charge of them."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.engines.disaggregation import Pairing
from smg_node.engines.engine import Contract, MediaCard
from smg_node.engines.kv_events import CURSOR_CODE, LOST_CODE
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.fleet import ListenOptions
from smg_node.fleet.health.peer_verdicts import Sight
from smg_node.fleet.workers import engine_subscriptions as listening
from smg_node.fleet.workers.engine_subscriptions import SubscriptionContext
from support.engines.fake_engine import card
from support.fleet.fleet_builder import fleet_of, running, set_aside
from support.fleet.kv_event_subscription import (
    QUICK,
    Ear,
    batches,
    engine_with,
    failure,
    listening_to,
    until,
)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(listening, "PAUSE_MAX_S", 0.004)


async def test_batches_reach_the_ear_in_order_and_the_worker_is_followed(tmp_path: Path) -> None:
    ear = Ear()
    async with listening_to(engine_with(batches(1, 2, 3, stays=True)), tmp_path, ear) as (
        fleet,
        worker,
    ):
        await until(lambda: len(ear.heard) == 3)
        assert ear.heard == [1, 2, 3]
        assert fleet.following(worker.id)
        assert not fleet.following("w-nobody")
        assert fleet.listening.batches == 3
    assert ear.said == ["closed"]
    assert not worker.following


async def test_a_subscription_that_ends_goes_on_from_where_it_was(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(7)), Ear()
    async with listening_to(engine, tmp_path, ear):
        await until(lambda: len(engine.subscribed) >= 3)
    assert engine.subscribed[:3] == [0, 8, 8]
    assert engine.listeners == 0


async def test_a_hole_makes_it_subscribe_anew_from_the_beginning(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(1, 2, 3, stays=True)), Ear()
    ear.wrong = {2}
    async with listening_to(engine, tmp_path, ear) as (fleet, _):
        await until(lambda: len(engine.subscribed) >= 2)
        assert engine.subscribed[:2] == [0, 0]
        assert fleet.listening.ended["gap"] >= 1
    assert 3 not in ear.heard


@pytest.mark.parametrize(("code", "word"), [(CURSOR_CODE, "cursor"), (LOST_CODE, "lost")])
async def test_an_engine_that_cannot_go_on_is_subscribed_to_from_the_beginning(
    tmp_path: Path, code: str, word: str
) -> None:
    engine, ear = engine_with(batches(after=failure(code))), Ear()
    ear.cursor = 5
    async with listening_to(engine, tmp_path, ear) as (fleet, _):
        await until(lambda: len(engine.subscribed) >= 2)
        assert fleet.listening.ended[word] >= 1
    assert engine.subscribed[:2] == [5, 0]
    assert ear.said[:2] == [code, "closed"]


async def test_an_engine_without_events_is_asked_once_until_it_was_away(tmp_path: Path) -> None:
    engine = engine_with(loads=True)
    async with listening_to(engine, tmp_path, Ear()) as (_, worker):
        await until(lambda: engine.polls >= 10)
        assert engine.subscribed == [0]
        engine.loads_told = failure(UNREACHABLE_CODE)
        await until(lambda: len(engine.subscribed) == 2)
        engine.loads_told = []
        engine.up = False
        await until(lambda: not worker.routable)
        engine.up = True
        await until(lambda: len(engine.subscribed) >= 3)


async def test_an_engine_that_cannot_be_reached_is_looked_at(tmp_path: Path) -> None:
    engine = engine_with(batches(1, after=failure(UNREACHABLE_CODE)))
    async with listening_to(engine, tmp_path, Ear()) as (fleet, _):
        looks = engine.looks
        await until(lambda: engine.looks > looks + 1)
        assert fleet.listening.ended["unreachable"] >= 1


async def test_a_mistake_of_ours_stops_neither_the_listener_nor_the_fleet(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(1)), Ear()
    ear.broken = True
    async with listening_to(engine, tmp_path, ear) as (fleet, worker):
        await until(lambda: fleet.listening.ended["failed"] >= 2)
        ear.broken = False
        await until(lambda: bool(ear.heard))
        assert worker.routable


async def test_nothing_is_heard_of_a_worker_that_is_not_ready(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(1, stays=True)), Ear()
    async with listening_to(engine, tmp_path, ear) as (fleet, worker):
        await until(lambda: worker.following)
        assert fleet.listening.workers == 1
        engine.up = False
        await until(lambda: engine.listeners == 0)
        assert ear.said == ["closed"]
        assert (fleet.listening.workers, worker.following, worker.sampled) == (0, False, {})
        engine.up = True
        await until(lambda: worker.following)
    assert engine.subscribed == [0, 2]


async def test_a_worker_that_is_registered_no_more_is_forgotten(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(1, stays=True)), Ear()
    async with listening_to(engine, tmp_path, ear) as (fleet, worker):
        await until(lambda: worker.following)
        fleet.apply({worker.id: None})
        await until(lambda: engine.listeners == 0)
        assert sorted(ear.said) == ["closed", "gone"]


async def test_a_worker_that_drains_is_still_heard(tmp_path: Path) -> None:
    engine = engine_with(batches(1, stays=True))
    async with listening_to(engine, tmp_path, Ear()) as (fleet, worker):
        await until(lambda: worker.following)
        set_aside(fleet, worker.id, on=True)
        await asyncio.sleep(0.05)
        assert worker.following


async def test_events_can_be_turned_off_and_on_while_it_runs(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(1, stays=True)), Ear()
    async with listening_to(engine, tmp_path, ear) as (fleet, worker):
        await until(lambda: worker.following)
        fleet.retune_listening(replace(QUICK, events=False))
        await until(lambda: len(ear.said) == 2)
        assert engine.listeners == 0
        assert ear.said == ["closed", "relieved"]
        assert fleet.listening.ended == {"relieved": 1}
        fleet.retune_listening(QUICK)
        await until(lambda: worker.following)


async def test_it_may_be_told_to_stop_again_while_it_is_stopping(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(1, stays=True)), Ear()
    async with listening_to(engine, tmp_path, ear) as (fleet, worker):
        await until(lambda: worker.following)
        for _ in range(20):
            # At every turn of the loop between the word and the end of the subscription.
            fleet.retune_listening(replace(QUICK, events=False))
            await asyncio.sleep(0)
        await until(lambda: fleet.listening.ended == {"relieved": 1})
        assert engine.listeners == 0


class InCharge:
    """An outlook in which somebody else, who says that all is well, is in charge or this node is."""

    me = "me"

    def __init__(self, *names: str) -> None:
        self.names = names

    def probers(self, worker_id: str) -> Sequence[str]:
        return self.names

    def sights(self, worker_id: str) -> Sequence[Sight]:
        return [Sight(name, up=True) for name in self.names if name != self.me]

    def tell(self, worker_id: str, *, up: bool, reason: str, lasts_s: float) -> None:
        pass

    def fall_silent(self, worker_id: str) -> None:
        pass


async def test_only_the_nodes_in_charge_of_a_worker_follow_it_unless_all_are_to(
    tmp_path: Path,
) -> None:
    engine, outlook = engine_with(batches(1, stays=True), loads=True), InCharge("other")
    fleet = fleet_of({"a": engine}, tmp_path)
    fleet.rely_on(outlook, began=lambda: None)
    fleet.retune_listening(QUICK)
    async with running(fleet, ["a"]):
        (worker,) = fleet.workers()
        await until(lambda: worker.routable and engine.polls > 0)
        assert engine.subscribed == []
        outlook.names = ("me", "other")
        fleet.hear([worker.id])
        await until(lambda: worker.following)
        outlook.names = ("other", "third")
        fleet.hear([worker.id])
        await until(lambda: engine.listeners == 0)
        fleet.retune_listening(replace(QUICK, subscribers="all"))
        await until(lambda: engine.listeners == 1)


def test_pauses_grow_to_a_bound_and_are_never_the_same_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    ground = SubscriptionContext(ListenOptions(), random.Random(3))
    pauses = [[ground.pause_s(failures) for _ in range(50)] for failures in range(40)]
    assert all(0.05 <= pause <= 0.1 for pause in pauses[0])
    assert all(15.0 <= pause <= 30.0 for pause in pauses[-1])
    assert all(len(set(row)) > 40 for row in pauses)
    highest = [max(row) for row in pauses]
    assert highest[3] > 2 * highest[1] > 2 * highest[0]


async def test_a_mistake_in_what_hears_the_events_does_not_end_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Ear):
        def tick(self, now_s: float) -> None:
            raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr("smg_node.fleet.fleet.TICK_S", 0.001)
    async with listening_to(engine_with(batches(1, stays=True)), tmp_path, Broken()) as (
        fleet,
        worker,
    ):
        await until(lambda: fleet.listening.stumbles >= 3)
        assert worker.routable


def test_a_mistake_that_is_made_every_second_is_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Ear):
        def tick(self, now_s: float) -> None:
            raise ZeroDivisionError("a mistake of ours")

    ground = SubscriptionContext(QUICK, random.Random(1), ear=Broken())
    for second in range(121):
        ground.tick(1000.0 + second)
    assert ground.stumbles == 121
    assert len(caplog.records) == 3
    assert all("a mistake of ours" in str(record.exc_text) for record in caplog.records)
    assert "121 times" in caplog.text


async def test_one_that_encodes_pictures_is_asked_neither_events_nor_loads(tmp_path: Path) -> None:
    engine, ear = engine_with(batches(1, stays=True)), Ear()
    engine.model_card = card(
        contract=Contract.TOKENSPEED,
        role="encode",
        pairing=Pairing("room", bootstrap_port=1),
        media=MediaCard(ways=frozenset({"tensors"})),
    )
    engine.abilities = replace(engine.abilities, loads=True)
    async with listening_to(engine, tmp_path, ear) as (_, worker):
        assert worker.role == "encode"
        await asyncio.sleep(0.05)
        assert (engine.subscribed, engine.polls, ear.heard) == ([], 0, [])
