"""A worker's files on pictures: noted when it comes up, and anew when it comes back with other ones."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from smg_node.fleet.workers.worker import Worker
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import FAST, fleet_of, running
from support.media.pictured_bench import seeing


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - from outside
            await asyncio.sleep(0.005)


def rules(worker: Worker) -> str:
    assert worker.card is not None
    return "" if worker.card.media is None else worker.card.media.rules


async def test_workers_are_told_apart_by_their_files_and_a_restart_counts(tmp_path: Path) -> None:
    engines = {"a": seeing(), "b": seeing(), "c": seeing(depth=3), "d": FakeEngine()}
    engines["d"].bundle = engines["a"].bundle
    fleet = fleet_of(engines, tmp_path, options=FAST)
    async with running(fleet, sorted(engines)) as it:
        await until(lambda: all(worker.routable for worker in it.workers()))
        named = {worker.url.host: worker for worker in it.workers()}
        one, same, other, text = (named[name] for name in "abcd")
        assert rules(one) == rules(same) != rules(other)
        assert rules(text) == "", "it takes no pictures, whatever its files say"
        model = one.model
        assert model is not None
        assert model is other.model
        before = rules(one)
        engines["a"].up = False
        await until(lambda: not one.routable)
        engines["a"].bundle = engines["c"].bundle
        engines["a"].up = True
        await until(lambda: one.routable)
        assert rules(one) == rules(other) != before
        assert one.model is model, "its vocabulary is the same"
