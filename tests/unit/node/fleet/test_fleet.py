"""Workers come, go and come back; one's trouble is nobody else's."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.engine import MediaCard
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.load.worker_load import PREFILL_RATE
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.fleet.models.served_model import ServedModel
from smg_node.fleet.workers import worker_lifecycle as tender
from smg_node.fleet.workers.worker import Status, Worker
from support.engines.fake_engine import FakeEngine, card
from support.fleet.fleet_builder import FAST, declare, fleet_of, running, set_aside


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.005)


def only(fleet: Fleet) -> Worker:
    (worker,) = fleet.workers()
    return worker


def model(fleet: Fleet, name: str) -> ServedModel:
    found = fleet.models.find(name)
    assert found is not None
    return found


async def test_a_worker_becomes_ready_with_its_model(tmp_path: Path) -> None:
    async with running(fleet_of({"a": FakeEngine()}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        assert only(fleet).model is model(fleet, "tiny")
        assert fleet.candidates(model(fleet, "tiny")) == [only(fleet)]


async def test_a_worker_that_starts_late_joins_when_it_answers(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.up = False
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).reason == "nothing answers")
        assert fleet.unknown_yet()
        engine.up = True
        await until(lambda: only(fleet).routable)
        assert not fleet.unknown_yet()


async def test_a_worker_that_dies_gets_no_work_and_comes_back(tmp_path: Path) -> None:
    engine, other = FakeEngine(), FakeEngine()
    async with running(fleet_of({"a": engine, "b": other}, tmp_path), ["a", "b"]) as fleet:
        await until(lambda: all(item.routable for item in fleet.workers()))
        engine.up = False
        await until(lambda: len(fleet.candidates(model(fleet, "tiny"))) == 1)
        engine.up = True
        await until(lambda: len(fleet.candidates(model(fleet, "tiny"))) == 2)


async def test_an_engine_restarted_with_another_model_is_that_model(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        engine.up = False
        await until(lambda: not only(fleet).routable)
        engine.model_card = card("other")
        engine.up = True
        await until(lambda: only(fleet).routable)
        assert only(fleet).model is model(fleet, "other")
        assert fleet.candidates(model(fleet, "tiny")) == []


async def test_another_vocabulary_under_one_name_is_kept_apart(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(), "b": FakeEngine()}
    engines["b"].bundle = TokenizerBundle({"tokenizer.json": b"[]"}, "1" * 64, "a test")
    async with running(fleet_of(engines, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        (second,) = declare(fleet, "b")
        await until(lambda: "differs" in second.reason)
        assert not second.routable
        assert fleet.candidates(model(fleet, "tiny")) == [fleet.get("grpc://a:1")]


async def test_a_url_may_name_the_model_and_a_path_gets_a_short_alias(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(model="/models/qwen3-8b"), "b": FakeEngine()}
    async with running(fleet_of(engines, tmp_path), ["a", "b?model=mine"]) as fleet:
        await until(lambda: all(item.routable for item in fleet.workers()))
        assert model(fleet, "qwen3-8b") is model(fleet, "/models/qwen3-8b")
        assert fleet.candidates(model(fleet, "mine")) == [fleet.get("grpc://b:1")]


async def test_a_configured_tokenizer_is_used_instead_of_the_engine(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    engine = FakeEngine()
    engine.tokenizer_error = SmgError(ErrorKind.UPSTREAM_FAILED, "no such call")
    settings = {"tiny": ModelSettings(aliases=("small",), tokenizer_path=str(tmp_path))}
    async with running(fleet_of({"a": engine}, tmp_path / "c", settings=settings), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        assert model(fleet, "small") is model(fleet, "tiny")


async def test_a_tokenizer_sent_before_stands_in_for_one_that_fails(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
    engine.tokenizer_error = SmgError(ErrorKind.UPSTREAM_FAILED, "broken")
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)


async def test_without_any_tokenizer_the_worker_says_what_to_do(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.tokenizer_error = SmgError(ErrorKind.UPSTREAM_FAILED, "broken")
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: "models.tiny.tokenizer" in only(fleet).reason)


async def test_the_same_address_twice_is_one_worker(tmp_path: Path) -> None:
    async with running(fleet_of({"a": FakeEngine()}, tmp_path), ["a"]) as fleet:
        first = only(fleet)
        declare(fleet, "grpc://A:1")
        assert only(fleet) is first


async def test_draining_stops_new_work_and_undraining_resumes_it(tmp_path: Path) -> None:
    async with running(fleet_of({"a": FakeEngine()}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        set_aside(fleet, "grpc://a:1", on=True)
        assert fleet.candidates(model(fleet, "tiny")) == []
        set_aside(fleet, only(fleet).id, on=False)
        assert fleet.candidates(model(fleet, "tiny")) == [only(fleet)]


async def test_removing_waits_for_open_requests_unless_forced(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        worker = only(fleet)
        worker.hold()
        fleet.apply({worker.id: None})
        assert fleet.workers() == []
        async with asyncio.TaskGroup() as group:
            removing = group.create_task(fleet.gone(worker.id, force=False))
            await asyncio.sleep(0.1)
            assert not removing.done()
            assert not engine.closed
            worker.release()
        assert engine.closed


async def test_a_forced_removal_cuts_what_is_open(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        worker = only(fleet)
        worker.hold()
        fleet.apply({worker.id: None})
        await asyncio.sleep(0.05)
        assert not engine.closed
        await fleet.gone(worker.id, force=True)
        assert engine.closed
        worker.release()


async def test_unknown_workers_are_refused(tmp_path: Path) -> None:
    fleet = fleet_of({}, tmp_path)
    with pytest.raises(SmgError, match="no worker is called") as caught:
        fleet.get("w-nothing")
    assert caught.value.code == "worker_not_found"


async def test_an_engine_that_breaks_the_rules_does_not_stop_the_others(tmp_path: Path) -> None:
    class Broken(FakeEngine):
        async def serving(self, timeout_s: float) -> bool:
            raise RuntimeError("a bug")

    async with running(fleet_of({"a": Broken(), "b": FakeEngine()}, tmp_path), ["a", "b"]) as fleet:
        await until(lambda: fleet.get("grpc://b:1").routable)
        await until(lambda: "RuntimeError" in fleet.get("grpc://a:1").reason)


async def test_all_engines_are_closed_when_the_fleet_stops(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
    assert engine.closed


async def test_workers_that_start_together_share_one_model(tmp_path: Path) -> None:
    names = [f"e{number}" for number in range(6)]
    engines = {name: FakeEngine() for name in names}
    async with running(fleet_of(engines, tmp_path), names) as fleet:
        await until(lambda: all(worker.routable for worker in fleet.workers()))
        assert len(fleet.candidates(model(fleet, "tiny"))) == len(names)


async def test_of_two_vocabularies_that_start_together_one_wins(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(), "b": FakeEngine()}
    engines["b"].bundle = TokenizerBundle({"tokenizer.json": b"[]"}, "1" * 64, "a test")
    async with running(fleet_of(engines, tmp_path), ["a", "b"]) as fleet:
        await until(lambda: any("differs" in worker.reason for worker in fleet.workers()))
        (ready,) = [worker for worker in fleet.workers() if worker.routable]
        assert fleet.candidates(model(fleet, "tiny")) == [ready]


async def test_an_engine_restarted_between_two_looks_is_noticed(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        engine.model_card = card("other")
        await until(lambda: only(fleet).model is fleet.models.find("other"))
        await until(lambda: only(fleet).routable)
        assert fleet.candidates(model(fleet, "tiny")) == []


async def test_an_engine_that_says_something_else_of_pictures_is_known_by_it(
    tmp_path: Path,
) -> None:
    engine = FakeEngine()
    ways = frozenset({"tensors"})
    engine.model_card = replace(engine.model_card, media=MediaCard(ways))
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        changed = MediaCard(ways, device_normalizes=True)
        engine.model_card = replace(engine.model_card, media=changed)
        await until(lambda: only(fleet).routable and only(fleet).card == engine.model_card)


async def test_an_engine_that_was_away_for_a_moment_may_have_another_vocabulary(
    tmp_path: Path,
) -> None:
    engine = FakeEngine()
    patient = replace(FAST, down_after=1000)
    async with running(fleet_of({"a": engine}, tmp_path, options=patient), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        before = only(fleet).model
        engine.up = False
        await asyncio.sleep(4 * patient.probe_interval_s)
        engine.bundle = TokenizerBundle({"tokenizer.json": b"[]"}, "1" * 64, "a test")
        engine.up = True
        await until(lambda: only(fleet).model is not before and only(fleet).routable)
        assert fleet.candidates(model(fleet, "tiny")) == [only(fleet)]


async def test_another_contract_may_come_back_at_the_same_address(tmp_path: Path) -> None:
    engines = {"a": FakeEngine()}
    async with running(fleet_of(engines, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        engines["a"].up = False
        await until(lambda: not only(fleet).routable)
        engines["a"] = FakeEngine(model="other")
        await until(lambda: only(fleet).routable)
        assert only(fleet).engine is engines["a"]


async def test_a_call_that_found_nobody_makes_the_fleet_look_at_once(tmp_path: Path) -> None:
    engine = FakeEngine()
    patient = replace(FAST, probe_interval_s=600)
    async with running(fleet_of({"a": engine}, tmp_path, options=patient), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        engine.up = False
        only(fleet).suspect()
        await until(lambda: not only(fleet).routable)


async def test_a_worker_that_somebody_waits_for_is_tried_before_its_pause_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tender, "CONFLICT_RETRY_S", 3_600)
    engine = FakeEngine()
    engine.model_card = card("")
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).status is Status.FAILED)
        engine.model_card = card("tiny")
        fleet.doubt_unknown()
        await until(lambda: only(fleet).routable)


async def test_a_model_is_served_as_long_as_a_worker_is_registered_for_it(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        engine.up = False
        await until(lambda: not only(fleet).routable)
        assert fleet.served("tiny") is not None
        fleet.apply({only(fleet).id: None})
        assert fleet.served("tiny") is None


async def test_a_worker_that_is_taken_away_and_comes_back_keeps_the_count_of_what_is_open(
    tmp_path: Path,
) -> None:
    async with running(fleet_of({"a": FakeEngine()}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        old = only(fleet)
        old.hold(30)
        fleet.apply({old.id: None})
        (again,) = declare(fleet, "a")
        assert again is not old
        assert (again.load.own_inflight, again.load.tokens, again.inflight) == (1, 30, 0)
        old.release(30)
        assert again.load.inflight == 0


async def test_other_numbers_count_at_once(tmp_path: Path) -> None:
    engine = FakeEngine()
    patient = replace(FAST, probe_interval_s=600, down_after=1000)
    async with running(fleet_of({"a": engine}, tmp_path, options=patient), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        engine.up = False
        await asyncio.sleep(0.05)
        assert only(fleet).routable
        fleet.retune(FAST)
        await until(lambda: not only(fleet).routable)


async def test_engines_are_told_how_long_they_may_be_silent_now_and_later(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(), "b": FakeEngine()}
    async with running(fleet_of(engines, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        assert engines["a"].limits_s is None
        fleet.retune_engines(first_event_s=3, stall_s=4)
        assert engines["a"].limits_s == (3, 4)
        declare(fleet, "b")
        await until(lambda: fleet.get("grpc://b:1").routable)
        assert engines["b"].limits_s == (3, 4)


async def test_an_operators_aliases_may_change_and_learnt_ones_stay(tmp_path: Path) -> None:
    settings = {"/models/qwen": ModelSettings(aliases=("old", "kept"))}
    engines = {"a": FakeEngine(model="/models/qwen"), "b": FakeEngine()}
    async with running(fleet_of(engines, tmp_path, settings=settings), ["a", "b"]) as fleet:
        await until(lambda: all(worker.routable for worker in fleet.workers()))
        qwen = model(fleet, "/models/qwen")
        assert qwen.aliases == {"old", "kept", "qwen"}
        told = {"/models/qwen": ("kept", "new"), "tiny": ("small",), "later": ("x",)}
        fleet.models.retune(told, reasoning_parsers={}, tool_parsers={})
        assert qwen.aliases == {"kept", "new", "qwen"}
        assert fleet.served("old") is None
        assert fleet.served("new") is qwen
        assert fleet.served("qwen") is qwen
        assert model(fleet, "small") is model(fleet, "tiny")
        fleet.models.retune({}, reasoning_parsers={}, tool_parsers={})
        assert fleet.served("small") is None
        assert qwen.aliases == {"qwen"}


async def test_a_weight_is_a_label_that_makes_sense(tmp_path: Path) -> None:
    fleet = fleet_of({}, tmp_path)
    for said, weight in (("2", 2.0), ("0.5", 0.5), ("x", 1), ("nan", 1), ("0", 1), ("1e9", 1)):
        (worker,) = declare(fleet, f"a?label.weight={said}")
        assert worker.load.weight == weight


async def test_calls_are_counted_on_the_ranks_that_the_engine_says_it_has(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.model_card = replace(card("tiny"), ranks=4)
    async with running(fleet_of({"a": engine}, tmp_path), ["a"]) as fleet:
        await until(lambda: only(fleet).routable)
        worker, seen = only(fleet), set()
        for _ in range(4):
            rank = worker.load.choose_rank({}, 500, "")
            assert rank is not None
            assert worker.hold(500, rank) == 0
            seen.add(rank)
        assert seen == {0, 1, 2, 3}
        worker.release(500, rank=2)
        assert worker.load.choose_rank({}, 500, "") == 2
        assert (worker.inflight, worker.load.tokens) == (3, 1500)
        engine.model_card = card("other")
        await until(lambda: worker.load.choose_rank({}, 500, "") is None)
        for rank in (0, 1, 3):
            worker.release(500, rank=rank)
        assert (worker.inflight, worker.load.tokens) == (0, 0)


async def test_workers_of_one_model_are_taken_for_as_fast_as_each_other_until_they_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_node.fleet.fleet.TICK_S", 0.01)
    other = FakeEngine()
    other.model_card = card("other")
    engines = {"a": FakeEngine(), "b": FakeEngine(), "c": other}
    async with running(fleet_of(engines, tmp_path), list(engines)) as fleet:
        await until(lambda: all(item.routable for item in fleet.workers()))
        tiny = [worker.load for worker in fleet.serving(model(fleet, "tiny"))]
        (far,) = [worker.load for worker in fleet.serving(model(fleet, "other"))]
        now_s = asyncio.get_running_loop().time()
        for _ in range(10):
            tiny[0].rate(30_000, 1.0, now_s=now_s)
        await until(lambda: tiny[1].prefill_rate > 25_000)
        assert far.prefill_rate == PREFILL_RATE
