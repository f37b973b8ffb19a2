"""What choosing a worker and telling it of a call takes, in instructions of the interpreter; see `smg-chaos instructions`."""

import asyncio
import random
from pathlib import Path
from typing import Final

import pytest

from smg_chaos.bench.figures.counted_gateway import Tracer
from smg_node.core.generation.request import TokenIds, token_ids
from smg_node.core.journey import Journey
from smg_node.pipeline.placement.placer import PlacementRequest, Placer, PlacerOptions
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import fleet_of, running

COUNTED: Final = 40
WARM: Final = 20
ANSWER: Final = 8


class Caller:
    """Places calls that end at once, one after the other."""

    def __init__(self, placer: Placer, prompt: int) -> None:
        self._placer = placer
        self._rng = random.Random(2)
        self._prompt = prompt
        self._clock = SystemClock()

    def _ids(self, count: int) -> TokenIds:
        return token_ids([self._rng.randrange(50_000) for _ in range(count)])

    async def call(self, times: int, tracer: Tracer | None = None) -> float:
        """Return how many instructions of ours one call took; 0 where nobody counts."""
        placer = self._placer
        model = await placer.model("tiny", deadline_s=float("inf"))
        prompts = [(self._ids(self._prompt), self._ids(ANSWER)) for _ in range(times)]
        wishes = [
            PlacementRequest(float("inf"), ids, journey=Journey("r", "n", "chat", "tiny", 0))
            for ids, _ in prompts
        ]
        if tracer is not None:
            tracer.begin()
        for wish, (_, said) in zip(wishes, prompts, strict=True):
            hold = placer.soon(model, wish) or await placer.hold(model, wish)
            now_s = self._clock.monotonic_s()
            hold.spoke(now_s, 0)
            placer.confirmed(hold, now_s)
            hold.ended(now_s)
            placer.answered(hold, said, now_s)
            hold.release(now_s)
        if tracer is None:
            return 0.0
        ours = [one.instructions for one in tracer.end() if "/smg_node/" in one.file]
        return sum(ours) / times


@pytest.mark.parametrize(
    ("workers", "prompt", "most"),
    [(1, 60, 1_200), (4, 60, 1_800), (4, 300, 2_650), (8, 300, 2_750)],
)
async def test_a_call_is_placed_within_its_instructions(
    workers: int, prompt: int, most: int, tmp_path: Path
) -> None:
    """About a tenth more than it takes; a prompt of 60 has no whole block before its answer, one of 300 has four."""
    hosts = "abcdefgh"[:workers]
    engines = {host: FakeEngine() for host in hosts}
    async with running(fleet_of(engines, tmp_path), list(hosts)) as fleet:
        while not all(worker.routable for worker in fleet.workers()):  # noqa: ASYNC110 - from outside
            await asyncio.sleep(0.005)
        placer = Placer(
            fleet,
            Policies(OwnBindings()),
            PlacerOptions("cache_aware"),
            clock=SystemClock(),
            rng=random.Random(1),
            beginnings=Prefixes(PrefixIndex(), cluster="one"),
        )
        caller = Caller(placer, prompt)
        await caller.call(WARM)
        took = await caller.call(COUNTED, Tracer())
        assert 500 < took <= most
