"""Breakers in a fleet: fed by what calls end with, looked after by the tender, hinted at by peers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.transport.grpc_status import (
    CLOSED_CODE,
    DEADLINE_CODE,
    PUSHBACK_TRAILER,
    Verdict,
    asked_pause_s,
    smg_error,
)
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.health.circuit_breaker import NEVER, BreakerOptions, State
from smg_node.fleet.workers.worker import Worker
from smg_node.http.ports.node import WorkerRequest
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import FAST, declare, fleet_of, running
from support.fleet.fleet_world import fleet_world

BROKEN = SmgError(ErrorKind.UPSTREAM_FAILED, "the engine failed")
SHORT = replace(FAST, breaker=BreakerOptions(samples_min=1, open_s=0.1, open_max_s=0.2))
"""Opens with the first failure, for a tenth of a second."""


def error_of(status: StatusCode, **trailers: str) -> SmgError:
    """Return what a call ends with whose engine says `status`."""
    cause = TransportError(
        status, "so it is", {key.replace("_", "-"): v for key, v in trailers.items()}
    )
    try:
        raise smg_error(cause) from cause
    except SmgError as error:
        return error


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.002)


def now_s() -> float:
    return asyncio.get_running_loop().time()


def state(worker: Worker) -> State:
    return worker.breaker.state(now_s())


# ── What calls end with ──────────────────────────────────────────────────────

FAILURES = {
    StatusCode.OK,
    StatusCode.CANCELLED,
    StatusCode.UNKNOWN,
    StatusCode.DEADLINE_EXCEEDED,
    StatusCode.PERMISSION_DENIED,
    StatusCode.FAILED_PRECONDITION,
    StatusCode.ABORTED,
    StatusCode.INTERNAL,
    StatusCode.UNAVAILABLE,
    StatusCode.DATA_LOSS,
    StatusCode.UNAUTHENTICATED,
}


@pytest.mark.parametrize("status", StatusCode)
def test_only_failures_open_it_and_only_being_full_pauses_it(
    status: StatusCode, tmp_path: Path
) -> None:
    fleet = fleet_of({}, tmp_path)
    (worker,) = declare(fleet, "a")
    said = worker.judge(error_of(status), 0.0)
    for _ in range(50):
        assert worker.judge(error_of(status), 0.0) is said
    opened = worker.breaker.state(0.0) is State.OPEN
    assert opened is (status in FAILURES)
    assert opened is (said is Verdict.FAILURE)
    paused = worker.breaker.busy(0.0)
    assert paused is (status is StatusCode.RESOURCE_EXHAUSTED)
    assert paused is (said is Verdict.PRESSURE)


@pytest.mark.parametrize(
    "error",
    [
        SmgError(ErrorKind.UPSTREAM_FAILED, "removed", code=CLOSED_CODE),
        SmgError(ErrorKind.UPSTREAM_TIMEOUT, "out of time", code=DEADLINE_CODE),
        SmgError(ErrorKind.UPSTREAM_FAILED, "cannot do that", status=501),
        SmgError(ErrorKind.CLIENT_GONE, "gone"),
        SmgError(ErrorKind.INVALID_REQUEST, "no"),
        SmgError(ErrorKind.TOO_LARGE, "too large"),
    ],
    ids=lambda error: error.code,
)
def test_what_is_not_the_workers_fault_never_opens_it(error: SmgError, tmp_path: Path) -> None:
    (worker,) = declare(fleet_of({}, tmp_path), "a")
    for _ in range(2000):
        assert worker.judge(error, 0.0) is Verdict.NEITHER
    assert worker.breaker.usable(0.0)


def test_nobody_at_the_other_end_five_times_is_enough(tmp_path: Path) -> None:
    (worker,) = declare(fleet_of({}, tmp_path), "a")
    for _ in range(4):
        worker.judge(error_of(StatusCode.UNAVAILABLE), 0.0)
    assert worker.breaker.usable(0.0)
    worker.judge(error_of(StatusCode.UNAVAILABLE), 0.0)
    assert not worker.breaker.usable(0.0)


@pytest.mark.parametrize(
    ("said", "pause_s"),
    [
        ("1500", 1.5),
        ("0", 0.0),
        ("-1", None),
        ("", None),
        ("soon", None),
        ("²", None),
        ("9" * 5000, None),
    ],
)
def test_an_engine_may_say_how_long_it_wants_to_be_left_alone(
    said: str, pause_s: float | None
) -> None:
    error = error_of(StatusCode.RESOURCE_EXHAUSTED, grpc_retry_pushback_ms=said)
    assert PUSHBACK_TRAILER == "grpc-retry-pushback-ms"
    assert asked_pause_s(error) == pause_s


def test_what_a_client_is_told_is_not_what_an_engine_asked_for() -> None:
    error = error_of(StatusCode.RESOURCE_EXHAUSTED)
    assert error.retry_after_s == 1.0
    assert asked_pause_s(error) is None
    assert asked_pause_s(SmgError(ErrorKind.OVERLOADED, "full", retry_after_s=7.0)) == 7.0


# ── In a fleet ───────────────────────────────────────────────────────────────


def ready(fleet: Fleet) -> bool:
    return all(worker.routable for worker in fleet.workers())


async def test_decisions_are_made_anew_when_a_breaker_turns(tmp_path: Path) -> None:
    async with running(fleet_of({"a": FakeEngine()}, tmp_path, options=SHORT), ["a"]) as fleet:
        await until(lambda: ready(fleet))
        (worker,) = fleet.workers()
        assert worker.model is not None
        before, serving = fleet.version, fleet.serving(worker.model)
        worker.judge(BROKEN, now_s())
        assert state(worker) is State.OPEN
        assert fleet.version > before
        assert fleet.serving(worker.model) is serving, "who serves what is as it was"
        assert worker.routable, "a breaker is a matter of each node and not of the fleet"


async def test_one_that_is_half_open_is_looked_at_and_then_gets_requests(tmp_path: Path) -> None:
    engine = FakeEngine()
    slow = replace(SHORT, probe_interval_s=1000.0)
    async with running(fleet_of({"a": engine}, tmp_path, options=slow), ["a"]) as fleet:
        await until(lambda: ready(fleet))
        (worker,) = fleet.workers()
        await asyncio.sleep(0.01)
        looks = engine.looks
        worker.judge(BROKEN, now_s())
        assert not worker.breaker.usable(now_s())
        await until(lambda: worker.breaker.usable(now_s()))
        assert engine.looks == looks + 1
        assert state(worker) is State.HALF_OPEN
        for _ in range(2):
            worker.breaker.spoke(now_s(), worker.breaker.take_probe(now_s()))
        assert state(worker) is State.CLOSED


async def test_one_that_looks_bad_stays_passed_over_and_begins_anew_when_it_is_back(
    tmp_path: Path,
) -> None:
    engine = FakeEngine()
    patient = replace(SHORT, down_after=3)
    async with running(fleet_of({"a": engine}, tmp_path, options=patient), ["a"]) as fleet:
        await until(lambda: ready(fleet))
        (worker,) = fleet.workers()
        worker.judge(BROKEN, now_s())
        engine.up = False
        await until(lambda: worker.breaker.opened >= 2 or not worker.routable)
        await until(lambda: not worker.routable)
        assert worker.breaker.opened >= 1
        engine.up = True
        await until(lambda: worker.routable)
        assert state(worker) is State.CLOSED
        assert worker.breaker.usable(now_s())


async def test_another_engine_at_the_address_has_a_breaker_of_its_own(tmp_path: Path) -> None:
    fleet = fleet_of({}, tmp_path)
    (before,) = declare(fleet, "a?model=one")
    before.judge(BROKEN, 0.0)
    (after,) = declare(fleet, "a?model=two")
    assert after.breaker is not before.breaker
    version = fleet.version
    for _ in range(20):
        before.judge(BROKEN, 0.0)
    assert before.breaker.opened == 1
    assert fleet.version == version, "what left is nobody's choice any more"


async def test_other_numbers_count_for_workers_that_are_there(tmp_path: Path) -> None:
    fleet = fleet_of({}, tmp_path)
    (worker,) = declare(fleet, "a")
    worker.judge(BROKEN, 0.0)
    assert worker.breaker.usable(0.0)
    fleet.retune(SHORT)
    worker.judge(BROKEN, 0.0)
    assert not worker.breaker.usable(0.0)
    fleet.retune(replace(SHORT, breaker=BreakerOptions(enabled=False)))
    assert worker.breaker.usable(0.0)


async def test_peers_hear_of_it_as_a_hint_and_no_more(tmp_path: Path) -> None:
    usual = replace(FAST, breaker=BreakerOptions(open_s=30.0))
    async with fleet_world(tmp_path, "n1", "n2", hosts=("a", "b"), options=usual) as world:
        world["n1"].list_static("a", "b")
        await world.until(lambda node: node.ready("a", "b"))
        first, peer = world["n1"].worker("a"), world["n2"].worker("a")
        for _ in range(10):
            first.judge(BROKEN, now_s())
        assert state(first) is State.OPEN
        sights = world["n2"].registry.outlook.sights(peer.id)
        assert [sight.up for sight in sights] == [True, True]
        await until(lambda: now_s() < peer.breaker._hinted_s)
        assert first.breaker._hinted_s == -NEVER, "its own word is no hint"
        assert state(peer) is State.CLOSED, "never by hearsay alone"
        other = world["n2"].worker("b")
        other.judge(BROKEN, now_s())
        assert state(other) is State.CLOSED
        peer.judge(BROKEN, now_s())
        assert state(peer) is State.OPEN
        looked = [node.engines["a"].looks for node in world.all()]
        await asyncio.sleep(0.1)
        assert world["n2"].ready("a", "b"), "the mark of who answers is still the same"
        assert all(
            node.engines["a"].looks > before
            for node, before in zip(world.all(), looked, strict=True)
        )


async def test_an_operator_sees_why_a_worker_is_passed_over(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", hosts=("a",)) as world:
        view = world["n1"].desk.add(WorkerRequest("grpc://a:1"))
        await world.until(lambda node: node.ready("a"))
        assert world["n1"].desk.worker(view.id).breaker["why"] == ""
        world["n1"].worker("a").breaker.pressure(now_s(), 30.0)
        said = world["n1"].desk.worker(view.id).breaker
        assert (said["state"], said["why"]) == ("closed", "asked to be left alone")
        assert said["pressure"] == 1
        assert 29_000 < said["again_ms"] <= 30_000
