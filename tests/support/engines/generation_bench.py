"""A generator over in-memory engines, and what it reported."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from smg_node.admission.admission import Admission
from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Event, Fail
from smg_node.core.generation.outcome import Outcome
from smg_node.core.generation.request import (
    GenerateRequest,
    Prompt,
    Sampling,
    TextPrompt,
)
from smg_node.core.ids import IdSource
from smg_node.core.request_context import RequestContext
from smg_node.fleet.fleet import Fleet, FleetOptions
from smg_node.pipeline.generation.generator import GenerationParts, GenerationRun, Generator
from smg_node.pipeline.media.media_intake import MediaIntake
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import Placer, PlacerOptions
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.prompts.renderer import Renderer
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.retry_budget import RetryBudgets, RetryOptions
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import FAST, fleet_of, no_renderer, running

HI: tuple[Prompt, ...] = (TextPrompt("hi", add_special_tokens=False),)

QUICK = RetryOptions(first_s=0.002, most_s=0.01)
ROUND_ROBIN = PlacerOptions("round_robin", wait_for_worker_s=0.2)


@dataclass
class Bench:
    """A generator over one or two engines, and what it reported."""

    generator: Generator
    fleet: Fleet
    outcomes: list[Outcome]
    journal: Journal
    placer: Placer

    def start(
        self,
        sampling: Sampling | None = None,
        *,
        prompts: tuple[Prompt, ...] = HI,
        model: str = "tiny",
        timeout_s: float = 5,
        echo: bool = False,
        clamped: bool = True,
        truncate: int | None = None,
        target: str | None = None,
        headers: Mapping[str, str] | None = None,
        tenant: str = "",
    ) -> GenerationRun:
        request = GenerateRequest(
            model=model,
            prompts=prompts,
            sampling=sampling or Sampling(),
            stream=True,
            echo=echo,
            max_tokens_clamped=clamped,
            truncate_prompt_tokens=truncate,
        )
        now_s = SystemClock().monotonic_s()
        context = RequestContext(
            "req_1",
            now_s,
            now_s + timeout_s,
            target_worker=target,
            upstream_headers=headers or {},
            tenant=tenant,
        )
        return self.generator.start("chat", request, context)

    async def events(self, sampling: Sampling | None = None, **more: object) -> list[Event]:
        run = self.start(sampling, **more)  # type: ignore[arg-type]  # handed through
        choices = run.request.choices
        grammar, seen = Grammar(choices), list[Event]()
        async with aclosing(run.events()) as batches:
            async for batch in batches:
                assert batch
                grammar.feed(batch)
                seen += batch
        assert grammar.over
        return seen

    async def answer(self, sampling: Sampling | None = None, **more: object) -> Answer:
        seen = await self.events(sampling, **more)
        choices = (sampling or Sampling()).n * len(more.get("prompts", HI))  # type: ignore[arg-type]  # a tuple
        collector = Collector(choices)
        collector.feed(seen)
        return collector.answer()

    async def error(self, sampling: Sampling | None = None, **more: object) -> SmgError:
        last = (await self.events(sampling, **more))[-1]
        assert isinstance(last, Fail)
        return last.error

    def idle(self) -> bool:
        return all(worker.inflight == 0 for worker in self.fleet.workers())


@asynccontextmanager
async def bench(folder: Path, **engines: FakeEngine) -> AsyncIterator[Bench]:
    """Run a generator over these engines, the usual way."""
    async with bench_of(folder, engines) as it:
        yield it


@asynccontextmanager
async def bench_of(
    folder: Path,
    engines: Mapping[str, FakeEngine],
    *,
    retries: RetryOptions = QUICK,
    options: FleetOptions = FAST,
    placing: PlacerOptions = ROUND_ROBIN,
    admission: Admission | None = None,
    renderer: Callable[..., Renderer] = no_renderer,
    media: Callable[[Fleet], MediaIntake] | None = None,
) -> AsyncIterator[Bench]:
    """Run a generator over these engines."""
    built = fleet_of(engines, folder, options=options, renderer=renderer)
    async with running(built, sorted(engines)) as fleet:
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in fleet.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        clock, rng, outcomes = SystemClock(), random.Random(1), list[Outcome]()
        journal = Journal("n1")
        placer = Placer(
            fleet,
            Policies(OwnBindings()),
            placing,
            clock=clock,
            rng=rng,
        )
        with ThreadPoolExecutor(1) as threads:
            intake = None if media is None else media(fleet)
            preparer = Preparer(
                clock=clock, threads=threads, media=None if intake is None else lambda: intake
            )
            parts = GenerationParts(
                placer=placer,
                preparer=preparer,
                ids=IdSource(clock, rng),
                clock=clock,
                rng=rng,
                retries=RetryBudgets(retries),
                journal=journal,
                on_outcome=outcomes.append,
                admission=admission,
            )
            yield Bench(Generator(parts), fleet, outcomes, journal, placer)
