"""How busy engines are is asked for where they do not say it, and their silence is noticed."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.fleet import fleet as fleet_module
from smg_node.fleet.fleet import ListenOptions
from smg_node.fleet.workers import engine_subscriptions as listening
from smg_node.fleet.workers.engine_subscriptions import (
    NullKvEventSink,
    SubscriptionContext,
    note_quiet,
)
from smg_node.fleet.workers.worker import Sampled, Worker
from support.engines.fake_engine import FakeEngine, card
from support.fleet.fleet_builder import declare, fleet_of, running
from support.fleet.kv_event_subscription import (
    Ear,
    batches,
    engine_with,
    failure,
    listening_to,
    load,
    until,
)


async def test_loads_are_asked_for_where_nothing_is_pushed(tmp_path: Path) -> None:
    engine = engine_with(loads=True)
    engine.loads_told = [load(3), load(4, rank=1)]
    async with listening_to(engine, tmp_path, NullKvEventSink()) as (_, worker):
        await until(lambda: len(worker.sampled) == 2)
        assert [worker.sampled[rank].load.running for rank in (0, 1)] == [3, 4]
        assert not worker.sampled[0].pushed
        assert worker.load.sampled_s >= worker.sampled[0].at_s > 0


async def test_loads_are_not_asked_for_while_they_are_pushed(tmp_path: Path) -> None:
    engine = engine_with(batches(1, 2, stays=True), loads=True)
    async with listening_to(engine, tmp_path, NullKvEventSink()) as (_, worker):
        await until(lambda: 0 in worker.sampled and worker.sampled[0].pushed)
        asked = engine.polls
        await asyncio.sleep(0.1)
        assert engine.polls <= asked + 1
        assert worker.sampled[0].load.running == 2


async def test_loads_are_asked_for_again_when_the_pushes_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "HEARTBEAT_MAX_S", 0.05)
    engine = engine_with(batches(1, stays=True), loads=True)
    engine.loads_told = [load(9)]
    async with listening_to(engine, tmp_path, NullKvEventSink()) as (_, worker):
        await until(lambda: 0 in worker.sampled and worker.sampled[0].load.running == 9)


async def test_an_engine_that_has_no_loads_is_not_asked_again(tmp_path: Path) -> None:
    engine = engine_with(batches(stays=True), loads=True)
    engine.loads_told = failure("upstream_unimplemented", status=501)
    async with listening_to(engine, tmp_path, NullKvEventSink()):
        await until(lambda: engine.polls == 1)
        await asyncio.sleep(0.1)
        assert engine.polls == 1


async def test_some_engines_are_not_to_be_asked_as_often_as_others(tmp_path: Path) -> None:
    engine = engine_with(batches(stays=True), loads=True)
    engine.abilities = replace(engine.abilities, loads_apart_s=30.0)
    async with listening_to(engine, tmp_path, NullKvEventSink()):
        await until(lambda: engine.polls == 1)
        await asyncio.sleep(0.1)
        assert engine.polls == 1


async def test_an_engine_of_a_contract_without_either_is_left_alone(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with listening_to(engine, tmp_path, NullKvEventSink()):
        await asyncio.sleep(0.05)
    assert (engine.polls, engine.subscribed) == (0, [])


def test_idle_engines_and_those_of_large_fleets_are_asked_less_often() -> None:
    ground = SubscriptionContext(ListenOptions(load_interval_s=2.0), random.Random(1))
    assert 1.8 <= ground.interval_s(busy=True) <= 2.2
    assert 9.0 <= ground.interval_s(busy=False) <= 11.0
    ground.workers = 1000
    assert 18.0 <= ground.interval_s(busy=True) <= 22.0


async def test_invented_ranks_do_not_fill_memory(tmp_path: Path) -> None:
    engine = engine_with(loads=True)
    engine.loads_told = [load(rank=rank) for rank in range(listening.RANKS_MAX + 50)]
    async with listening_to(engine, tmp_path, NullKvEventSink()) as (_, worker):
        await until(lambda: bool(worker.sampled))
        assert len(worker.sampled) == listening.RANKS_MAX


# ── Silence ──────────────────────────────────────────────────────────────────


async def test_an_engine_that_calls_itself_stuck_is_looked_at_and_gets_no_work(
    tmp_path: Path,
) -> None:
    engine = engine_with(loads=True)
    async with listening_to(engine, tmp_path, NullKvEventSink()) as (_, worker):
        looks = engine.looks
        engine.loads_told = [load(1, silence_ms=60_000, reports_steps=True)]
        await until(lambda: worker.load.stuck)
        await until(lambda: engine.looks > looks)
        engine.loads_told = [load(1, silence_ms=3, reports_steps=True)]
        await until(lambda: not worker.load.stuck)


def silent_worker(folder: Path) -> Worker:
    (worker,) = declare(fleet_of({"a": FakeEngine()}, folder), "a")
    worker.following, worker.heard_s = True, 100.0
    worker.sampled[0] = Sampled(load(1), 100.0, pushed=True)
    worker.hold(10)
    return worker


def test_a_stream_that_falls_silent_while_calls_are_open_is_as_bad(tmp_path: Path) -> None:
    worker = silent_worker(tmp_path)
    note_quiet(worker, 105.0)
    assert not worker.load.stuck
    note_quiet(worker, 107.0)
    assert worker.load.stuck
    assert worker.suspected
    worker.heard_s = 107.5
    note_quiet(worker, 108.0)
    assert not worker.load.stuck


def test_silence_means_nothing_without_open_calls_or_a_stream_that_ever_spoke(
    tmp_path: Path,
) -> None:
    idle = silent_worker(tmp_path)
    idle.release(10)
    mute = silent_worker(tmp_path)
    mute.sampled[0] = replace(mute.sampled[0], pushed=False)
    away = silent_worker(tmp_path)
    away.following = False
    for worker in (idle, mute, away):
        note_quiet(worker, 500.0)
        assert not worker.load.stuck
        assert not worker.suspected


async def test_another_engine_at_the_same_address_begins_with_nothing_said(tmp_path: Path) -> None:
    engine = engine_with(batches(1, stays=True))
    async with listening_to(engine, tmp_path, NullKvEventSink()) as (_, worker):
        await until(lambda: bool(worker.sampled))
        engine.kv_script = batches(stays=True)
        engine.model_card = card("other")
        await until(lambda: worker.model_name() == "other")
        await until(lambda: worker.routable)
        assert worker.sampled == {}


async def test_time_passes_for_workers_as_long_as_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "TICK_S", 0.005)
    ear, fleet = Ear(), fleet_of({"a": FakeEngine()}, tmp_path)
    fleet.follow_with(ear)
    async with running(fleet):
        await asyncio.sleep(0.05)
        assert ear.ticks == 0
        (worker,) = declare(fleet, "a")
        worker.following, worker.heard_s = True, -100.0
        worker.sampled[0] = Sampled(load(1), 0.0, pushed=True)
        worker.hold(10)
        await until(lambda: worker.load.stuck)
        await until(lambda: ear.ticks > 3)
        fleet.apply({worker.id: None})
        await asyncio.sleep(0.02)
        ticks = ear.ticks
        await asyncio.sleep(0.05)
        assert ear.ticks == ticks
        worker.release(10)
