"""Requests to a model whose files nobody has read: they have it read, and wait as long as their clients do."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.pipeline.placement.placer import Placer, PlacerOptions
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.system_clock import SystemClock
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import bytewise, fleet_of, running
from support.http.raw_http import until

EVER = float("inf")


@dataclass
class Scene:
    placer: Placer
    free: threading.Event = field(default_factory=threading.Event)
    broken: bool = False
    count: int = 0

    def load(self, bundle: TokenizerBundle) -> LoadedTokenizer:
        self.count += 1
        assert self.free.wait(10)
        if self.broken:
            raise invalid("broken files")
        return bytewise(bundle)


@asynccontextmanager
async def unread(folder: Path) -> AsyncIterator[Scene]:
    fleet = fleet_of(
        {"a": FakeEngine()}, folder, load=lambda bundle: scene.load(bundle), at_once=False
    )
    # Whoever reads is about to be done: the time that workers get to come back is not what counts.
    options = PlacerOptions("round_robin", wait_for_worker_s=0)
    policies = Policies(OwnBindings())
    scene = Scene(Placer(fleet, policies, options, clock=SystemClock(), rng=random.Random(1)))
    async with running(fleet, ["a"]):
        try:
            await until(lambda: all(worker.routable for worker in fleet.workers()))
            yield scene
        finally:
            scene.free.set()


async def test_requests_wait_together_until_it_is_read(tmp_path: Path) -> None:
    async with unread(tmp_path) as scene, asyncio.TaskGroup() as group:
        known = await scene.placer.known("tiny", deadline_s=EVER)
        assert scene.count == 0, "to know of it needs nothing of it"
        asked = [group.create_task(scene.placer.model("tiny", deadline_s=EVER)) for _ in range(3)]
        await until(lambda: scene.count)
        scene.free.set()
        assert {id(await one) for one in asked} == {id(known)}
        model = await scene.placer.model("tiny", deadline_s=EVER)
        assert (scene.count, model.tokenizer.encoder) == (1, "bytewise")


async def test_a_client_waits_no_longer_than_it_says(tmp_path: Path) -> None:
    async with unread(tmp_path) as scene:
        for left_s in (0.02, -1.0):
            deadline_s = SystemClock().monotonic_s() + left_s
            with pytest.raises(SmgError, match="still being read") as found:
                await scene.placer.model("tiny", deadline_s=deadline_s)
            error = found.value
            assert (error.kind, error.code) == (ErrorKind.OVERLOADED, "no_worker_available")
        scene.free.set()
        await scene.placer.model("tiny", deadline_s=EVER)
        assert scene.count == 1


async def test_files_that_cannot_be_read_are_as_good_as_no_worker(tmp_path: Path) -> None:
    async with unread(tmp_path) as scene:
        scene.broken = True
        scene.free.set()
        with pytest.raises(SmgError, match="cannot be read: broken files") as found:
            await scene.placer.model("tiny", deadline_s=EVER)
        error = found.value
        assert (error.kind, error.code) == (ErrorKind.OVERLOADED, "no_worker_available")
        scene.broken = False
        assert (await scene.placer.model("tiny", deadline_s=EVER)).unread is None
