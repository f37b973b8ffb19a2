"""Own engines in memory behind routes, and vendors' stand-ins beside them."""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from smg_node.admission.admission import Admission
from smg_node.cluster.providers.definitions import Definitions, read_own
from smg_node.cluster.providers.targets import named_in, targets_of
from smg_node.config.worker_url import PROVIDER, WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.events import Event
from smg_node.core.generation.outcome import Outcome
from smg_node.core.generation.request import GenerateRequest, Prompt, Sampling, TextPrompt
from smg_node.core.ids import IdSource
from smg_node.core.request_context import RequestContext
from smg_node.engines.engine import Engine
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.own_engines import OwnEngines
from smg_node.fleet.fleet import Fleet
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.generation.generation_context import GenerationParts
from smg_node.pipeline.generation.generator import Generator
from smg_node.pipeline.generation.run_interface import Run
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import Placer, PlacerOptions
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.relay.chat_generation import AnyGenerations
from smg_node.pipeline.relay.own.own_call import OwnEnginesCall
from smg_node.pipeline.relay.relay_context import RelayParts
from smg_node.pipeline.relay.relays import Relays
from smg_node.providers.provider_book import ProviderBook
from smg_node.providers.route_spec import ENGINES
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.retry_budget import RetryBudgets, RetryOptions
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.engines.relay_bench import FakeTransport
from support.fleet.fleet_builder import FAST, fleet_of, running

HI: tuple[Prompt, ...] = (TextPrompt("hi", add_special_tokens=False),)


@dataclass
class OwnBench:
    """What answers requests to routes, and what it reported."""

    anything: AnyGenerations
    relays: Relays
    embedder: Embedder
    fleet: Fleet
    placer: Placer
    journal: Journal
    outcomes: list[Outcome] = field(default_factory=list)

    def context(self, timeout_s: float = 5) -> RequestContext:
        now_s = SystemClock().monotonic_s()
        return RequestContext("req_1", now_s, now_s + timeout_s)

    def start(
        self,
        model: str,
        prompts: tuple[Prompt, ...] = HI,
        *,
        stream: bool = True,
        timeout_s: float = 5,
        **sampling: Any,
    ) -> Run:
        wish = GenerateRequest(
            model=model,
            prompts=prompts,
            sampling=Sampling(**{"max_tokens": 32, **sampling}),
            stream=stream,
            max_tokens_clamped=True,
        )
        return self.anything.start("chat", wish, self.context(timeout_s))

    async def events(self, model: str, **more: Any) -> list[Event]:
        heard: list[Event] = []
        await self.start(model, **more).tell(heard.extend)
        return heard

    async def answer(self, model: str, **more: Any) -> Answer:
        return await self.start(model, stream=False, **more).answer()

    def idle(self) -> bool:
        return all(worker.inflight == 0 for worker in self.fleet.workers())


def definitions(
    routes: Mapping[str, Any], providers: Mapping[str, Any] | None = None
) -> Definitions:
    """Return what a file says that has these routes: their targets, or all of them."""
    said = {
        name: route if isinstance(route, dict) else {"targets": list(route)}
        for name, route in routes.items()
    }
    return read_own(msgspec.json.encode({"providers": providers or {}, "routes": said}).decode())


@asynccontextmanager
async def own_bench(
    folder: Path,
    routes: Mapping[str, Any],
    engines: Mapping[str, FakeEngine] | None = None,
    *,
    servers: Mapping[str, FakeTransport] | None = None,
    providers: Mapping[str, Any] | None = None,
    admission: Admission | None = None,
    wait_s: float = 0.2,
) -> AsyncIterator[OwnBench]:
    """Run a fleet of gRPC `engines` and HTTP `servers`, and the targets of `routes`, with what answers by them."""
    reached, serving = dict(engines or {}), dict(servers or {})
    defined = definitions(routes, providers)
    async with AsyncExitStack() as stack:
        book = ProviderBook(EngineOptions(), SystemClock(), never)
        stack.push_async_callback(book.close)
        book.update({one.spec.name: (one.spec, one.secrets) for one in defined.providers.values()})

        async def open_engine(url: WorkerUrl, key: str | None) -> Engine:
            if url.scheme == PROVIDER:
                provider, model = named_in(url)
                public = url.model or model
                if provider == ENGINES:
                    return OwnEngines(model, public=public, provider=provider)
                return book.open(provider, model, public=public)
            if url.host in serving:
                return HttpEngine(serving[url.host], EngineOptions(), model=url.model)
            engine = reached[url.host]
            if not engine.up:
                raise SmgError(ErrorKind.UPSTREAM_FAILED, "nothing answers")
            return engine

        fleet = fleet_of({}, folder, options=FAST, open_really=open_engine)
        urls = [f"http://{name}:1" for name in sorted(serving)]
        await stack.enter_async_context(running(fleet, [*urls, *sorted(reached)]))
        fleet.apply(dict(targets_of(defined)))
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in fleet.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        threads = stack.enter_context(ThreadPoolExecutor(1))
        placing = PlacerOptions("round_robin", wait_for_worker_s=wait_s)
        yield _bench(fleet, placing, threads, admission)


def _bench(
    fleet: Fleet, placing: PlacerOptions, threads: ThreadPoolExecutor, admission: Admission | None
) -> OwnBench:
    clock, rng = SystemClock(), random.Random(1)
    journal, outcomes = Journal("n1"), list[Outcome]()
    placer = Placer(fleet, Policies(OwnBindings()), placing, clock=clock, rng=rng)
    retries = RetryBudgets(RetryOptions(first_s=0.002, most_s=0.01))
    ids, preparer = IdSource(clock, rng), Preparer(clock=clock, threads=threads)
    own = GenerationParts(
        placer=placer,
        preparer=preparer,
        ids=ids,
        clock=clock,
        rng=rng,
        retries=retries,
        journal=journal,
        on_outcome=outcomes.append,
        admission=admission,
    )
    calls = RelayParts(
        placer=placer,
        fleet=fleet,
        ids=ids,
        clock=clock,
        rng=rng,
        retries=retries,
        journal=journal,
        on_outcome=outcomes.append,
        admission=admission,
        own_calls=partial(OwnEnginesCall, own),
    )
    relays, embedder = Relays(calls), Embedder(calls, preparer)
    anything = AnyGenerations(Generator(own), relays, preparer)
    return OwnBench(anything, relays, embedder, fleet, placer, journal, outcomes)


def never(_work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
    """Fail: nothing of a bench makes tokens."""
    raise AssertionError(name)
