"""HTTP workers in memory, a fleet over them, and what relays and embeds by it."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smg_node.admission.admission import Admission
from smg_node.config.worker_url import WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.outcome import Outcome
from smg_node.core.ids import IdSource
from smg_node.core.request_context import RequestContext
from smg_node.engines.engine import Engine
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.transport import HttpAnswer, HttpCall
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import Placer, PlacerOptions
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.relay_run import RelayParts, RelayRun
from smg_node.pipeline.relay.relays import Relays
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.retry_budget import RetryBudgets, RetryOptions
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import FAST, fleet_of, running

JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream; charset=utf-8"),)
Piece = bytes | Exception | float | asyncio.Event | Callable[[], bytes]
"""Bytes, what breaks the answer, seconds of silence, something to wait for, or what is known only then."""


@dataclass
class Told:
    """What a worker answers."""

    pieces: Sequence[Piece] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = JSON


def told(value: object, status: int = 200) -> Told:
    """Return an answer in one piece of JSON."""
    return Told((json.dumps(value).encode(),), status)


def streamed(*pieces: Piece) -> Told:
    return Told(pieces, headers=SSE)


def lost(message: str = "connection lost") -> TransportError:
    return TransportError(StatusCode.UNAVAILABLE, message)


def unreached() -> TransportError:
    return lost("failed to connect: nobody")


class FakeAnswer:
    def __init__(self, told: Told, transport: "FakeTransport") -> None:
        self.status = told.status
        self.headers: Sequence[tuple[str, str]] = [*told.headers]
        self._pieces = list(told.pieces)
        self._transport = transport
        self._closed = asyncio.Event()
        transport.open += 1

    async def read(self) -> bytes:
        while self._pieces:
            piece = self._pieces.pop(0)
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, bytes):
                return piece
            if isinstance(piece, asyncio.Event):
                if not await self._comes(piece):
                    raise lost()
                continue
            if callable(piece):
                return piece()
            try:
                async with asyncio.timeout(piece):
                    await self._closed.wait()
            except TimeoutError:
                continue
            raise lost()
        return b""

    async def _comes(self, event: asyncio.Event) -> bool:
        """Wait for it; False if the answer is closed before."""
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(one.wait()) for one in (event, self._closed)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in waits:
                one.cancel()
        return event.is_set()

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._transport.open -= 1
            self._transport.cut += bool(self._pieces)


@dataclass
class FakeTransport:
    """One worker. `says` is what it answers to POSTs, by path or to all; `pages` what to GETs."""

    target: str = "w:1"
    says: Callable[[HttpCall], Told | TransportError] = field(default=lambda call: told({}))
    pages: dict[str, Told] = field(default_factory=dict)
    calls: list[HttpCall] = field(default_factory=list)
    open: int = 0
    cut: int = 0
    up: bool = True
    closed: bool = False

    async def send(self, call: HttpCall) -> HttpAnswer:
        if not self.up:
            raise unreached()
        if call.method == "GET":
            return FakeAnswer(self.pages.get(call.path, Told(status=404)), self)
        self.calls.append(call)
        answer = self.says(call)
        if isinstance(answer, TransportError):
            raise answer
        return FakeAnswer(answer, self)

    async def close(self) -> None:
        self.closed = True


def listing(*names: str, **more: object) -> Told:
    return told({"object": "list", "data": [{"id": name, **more} for name in names]})


def worker(says: Callable[[HttpCall], Told | TransportError], name: str = "m") -> FakeTransport:
    """Return a worker that is well and lists one model."""
    return FakeTransport(says=says, pages={"/health": Told(), "/v1/models": listing(name)})


@dataclass
class RelayBench:
    relays: Relays
    embedder: Embedder
    fleet: Fleet
    outcomes: list[Outcome]
    journal: Journal
    placer: Placer

    def start(
        self, api: str = "chat", *, timeout_s: float = 5, target: str | None = None, **body: Any
    ) -> RelayRun:
        fields = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
        asked = relayable(APIS[api], json.dumps(fields).encode(), fields)
        return self.relays.start(asked, {}, self.context(timeout_s, target), "")

    def context(self, timeout_s: float = 5, target: str | None = None) -> RequestContext:
        now_s = SystemClock().monotonic_s()
        return RequestContext(
            "req_1",
            now_s,
            now_s + timeout_s,
            target_worker=target,
            upstream_headers={"x-request-id": "the client's own", "traceparent": "00-1"},
        )

    async def answer(self, api: str = "chat", **more: Any) -> tuple[Head, bytes]:
        """Return head and body of a whole answer."""
        return await whole(self.start(api, **more))

    def idle(self) -> bool:
        return all(worker.inflight == 0 for worker in self.fleet.workers())


async def whole(run: RelayRun) -> tuple[Head, bytes]:
    head: Head | None = None
    body = b""
    async with aclosing(run.answer()) as pieces:
        async for piece in pieces:
            if isinstance(piece, Head):
                assert head is None
                head = piece
            else:
                assert head is not None
                body += piece
    assert head is not None
    return head, body


@asynccontextmanager
async def relay_bench(
    folder: Path,
    *,
    engines: Mapping[str, FakeEngine] | None = None,
    options: EngineOptions | None = None,
    settings: Mapping[str, ModelSettings] | None = None,
    api_key: str | None = None,
    query: str = "",
    queries: Mapping[str, str] | None = None,
    retries: RetryOptions | None = None,
    admission: Admission | None = None,
    **workers: FakeTransport,
) -> AsyncIterator[RelayBench]:
    """Run a fleet of HTTP workers (and `engines`) with what relays to them."""
    limits = options if options is not None else EngineOptions()
    reached = dict(engines or {})

    async def open_engine(url: WorkerUrl, key: str | None) -> Engine:
        if url.host in reached:
            return reached[url.host]
        transport = workers[url.host]
        if not transport.up:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "nothing answers")
        return HttpEngine(transport, limits, model=url.model, api_key=api_key)

    fleet = fleet_of({}, folder, options=FAST, open_really=open_engine, settings=settings)
    said = queries or {}
    urls = [f"http://{name}:1{said.get(name, query)}" for name in sorted(workers)]
    async with running(fleet, [*urls, *sorted(reached)]):
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in fleet.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        clock, rng, outcomes = SystemClock(), random.Random(1), list[Outcome]()
        journal = Journal("n1")
        placing = PlacerOptions("round_robin", wait_for_worker_s=0.2)
        placer = Placer(fleet, Policies(OwnBindings()), placing, clock=clock, rng=rng)
        parts = RelayParts(
            placer=placer,
            fleet=fleet,
            ids=IdSource(clock, rng),
            clock=clock,
            rng=rng,
            retries=RetryBudgets(retries or RetryOptions(first_s=0.002, most_s=0.01)),
            journal=journal,
            on_outcome=outcomes.append,
            admission=admission,
        )
        with ThreadPoolExecutor(1) as threads:
            preparer = Preparer(clock=clock, threads=threads)
            yield RelayBench(
                Relays(parts), Embedder(parts, preparer), fleet, outcomes, journal, placer
            )
