import asyncio
import time

import pytest
from prometheus_client import CollectorRegistry

from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics import loop_lag
from smg_node.telemetry.metrics.loop_lag import LagJudge, LoopLag
from smg_node.telemetry.metrics.meters import Meters


def counted(meters: Meters, name: str) -> float:
    return meters.registry.get_sample_value(f"smg_node_loop_{name}") or 0.0


def test_small_lags_are_measured_larger_ones_logged_and_stalls_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    meters = Meters(CollectorRegistry(), version="1")
    judge = LagJudge(meters)
    judge.observe(0.019, 1.0)
    assert not caplog.records
    judge.observe(0.05, 2.0)
    judge.observe(0.3, 3.0)
    assert [record.getMessage() for record in caplog.records] == [
        "the event loop was late by 50 ms",
        "the event loop was late by 300 ms",
    ]
    assert counted(meters, "stalls_total") == 1
    assert counted(meters, "lag_seconds_count") == 3


def test_a_bad_second_is_one_line_with_the_worst_of_it(caplog: pytest.LogCaptureFixture) -> None:
    judge = LagJudge(Meters(CollectorRegistry(), version="1"))
    for lag_s, now_s in ((0.03, 10.0), (0.2, 10.2), (0.04, 10.4), (0.03, 11.1)):
        judge.observe(lag_s, now_s)
    assert [record.getMessage() for record in caplog.records] == [
        "the event loop was late by 30 ms",
        "the event loop was late by 200 ms",
    ]


@pytest.mark.parametrize("busy", [True, False])
async def test_a_blocked_loop_is_noticed(busy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_lag, "_IDLE_INTERVAL_S", 0.1)  # a test has no five seconds to block
    meters = Meters(CollectorRegistry(), version="1")
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(LoopLag(meters, SystemClock(), busy=lambda: busy).run())
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251 - blocking the loop is what is tested
        async with asyncio.timeout(20):
            while not counted(meters, "stalls_total"):  # noqa: ASYNC110 - nobody could tell
                await asyncio.sleep(0.01)
        watch.cancel()
    assert counted(meters, "lag_seconds_count") >= 1


@pytest.mark.parametrize(("busy", "looks"), [(True, range(5, 100)), (False, range(2))])
async def test_an_idle_loop_is_seldom_woken(busy: bool, looks: range) -> None:
    meters = Meters(CollectorRegistry(), version="1")
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(LoopLag(meters, SystemClock(), busy=lambda: busy).run())
        await asyncio.sleep(0.9)
        watch.cancel()
    assert counted(meters, "lag_seconds_count") in looks
