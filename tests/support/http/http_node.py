"""A node whose HTTP surface is real and whose inside is a script."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from smg_node.access.identity import Authenticator, KeyAuthenticator, KeySource
from smg_node.cluster.membership.drain_status import Draining
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.cluster.reports.journey_search import Explanations
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    Usage,
)
from smg_node.core.ids import IdSource
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.registry import Dialects
from smg_node.http.app import OtherProcesses, Server
from smg_node.http.http_options import HttpOptions
from smg_node.http.http_parts import HttpParts, Identity
from smg_node.http.ports.drain import Duties, OpenWork
from smg_node.http.ports.node import (
    ClusterWorkerView,
    Health,
    ModelView,
    ParsersView,
    ParserView,
    PictureRulesView,
    WorkerChange,
    WorkerRequest,
    WorkerSight,
    WorkerView,
)
from smg_node.http.tls_options import TlsOptions
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.relay.relay_request import Api
from smg_node.pipeline.relay.relays import Relays
from smg_node.system_clock import SystemClock
from smg_node.telemetry.logs.access_log import AccessLog
from smg_node.telemetry.metrics.meters import Meters
from smg_node.telemetry.traces.tracer import TraceOptions, Tracer
from support.history.fake_runs import FakeGenerations, FakeRun, Script
from support.history.no_history import MakeHistory, no_history
from support.http.access_lines import LineList
from support.http.cluster_numbers import numbers_of
from support.http.fake_cluster import FakeCluster
from support.http.fake_tokens import FakeTokens
from support.http.http_tools import connecting, give_tools
from support.http.request_usage import SpentDesk, UsageBook
from support.providers.provider_desks import providers_of
from support.state.fake_shared_state import FakeSessions, SharedWorld

__all__ = ["FakeGenerations", "FakeRun", "Script"]
"""Besides what is here."""

SERVER: Final = "direct"
TLS: Final[TlsOptions | None] = None
"""Who reads requests, and how they come; a test that runs over several of each replaces them."""


def opening(choices: int = 1) -> list[Event]:
    return [
        Begin("1", "m", 1, 3),
        *(BlockStart(choice, 0, "text") for choice in range(choices)),
    ]


def ending(text: str, choices: int = 1) -> list[Event]:
    events: list[Event] = []
    for choice in range(choices):
        events += [BlockEnd(choice, 0, "text", text), Finish(choice, "stop")]
    return [*events, Usage(3, 2, 0), End()]


async def hello(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Say "Hello world" in two events."""
    choices = run.request.choices
    yield [*opening(choices), *(Delta(c, 0, "Hello", 1) for c in range(choices))]
    yield [*(Delta(c, 0, " world", 1) for c in range(choices)), *ending("Hello world", choices)]


async def for_ever(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Begin, and never end."""
    yield [*opening(), Delta(0, 0, "x", 1)]
    await asyncio.Event().wait()


async def silence(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Never even begin."""
    await asyncio.Event().wait()
    yield ()


PARSERS = ParsersView(
    ParserView("think", ("implicit",), "name", "'big-model'"),
    ParserView("hermes", (), "worker", "qwen"),
)


class FakeCatalog:
    def __init__(self) -> None:
        self.views = [
            ModelView("m", 7, "acme", ("alias",), 2, 1, 4096),
            ModelView("org/big-model", 8, "acme", (), 1, 1, None, parsers=PARSERS),
        ]

    def models(self) -> Sequence[ModelView]:
        return self.views

    def model(self, name: str) -> ModelView:
        for view in self.views:
            if name == view.id or name in view.aliases:
                return view
        raise SmgError(ErrorKind.NOT_FOUND, f"no model {name!r}", code="model_not_found")

    async def pictures(self, name: str) -> Sequence[PictureRulesView]:
        return ()


class FakeRelays:
    """No model is relayed."""

    def takes(self, model: object) -> bool:
        return False

    def only(self, model: str) -> bool:
        return False

    def has(self, model: str, api: Api) -> bool:
        return False

    def speaks(self, model: object, api: Api) -> bool:
        return False

    def has_targets(self, model: str) -> bool:
        return False


class FakeEmbedder:
    """No engine embeds."""

    def takes(self, model: str) -> bool:
        return False


class FakeWorkers:
    def __init__(self) -> None:
        self.fleet = {
            "w-1": WorkerView(
                "w-1", "grpc://e:1", "m", "vllm", "regular", "ready", "", 3, {"a": "b"}, {"v": 1}
            )
        }
        self.calls: list[tuple[Any, ...]] = []

    def workers(self) -> Sequence[WorkerView]:
        return list(self.fleet.values())

    def worker(self, worker_id: str) -> WorkerView:
        if worker_id not in self.fleet:
            raise SmgError(ErrorKind.NOT_FOUND, "no such worker", code="worker_not_found")
        return self.fleet[worker_id]

    def cluster_workers(self) -> Sequence[ClusterWorkerView]:
        sights = {"b": WorkerSight(True, "", 120), "c": WorkerSight(False, "no answer", 340)}
        return [
            ClusterWorkerView(
                id=view.id,
                url=view.url,
                model=view.model,
                role=view.role,
                contract=view.contract,
                priority=view.priority,
                cost=view.cost,
                labels=view.labels,
                has_key=view.has_key,
                draining=view.status == "draining",
                sources=("api",),
                registered_by="b",
                version="77",
                status=view.status,
                reason=view.reason,
                probers=("b", "c"),
                sights=sights,
                requests_mine=view.inflight,
                tokens_mine=9,
                requests_others=4,
                tokens_others=40,
                load_age_ms=200,
            )
            for view in self.fleet.values()
        ]

    def add(self, wish: WorkerRequest) -> WorkerView:
        if "nonsense" in wish.url:
            raise invalid("that is no worker", "url")
        self.calls.append(("add", wish))
        view = WorkerView(
            "w/2",
            wish.url,
            wish.model or "",
            wish.contract or "",
            wish.role or "regular",
            "pending",
            "",
            0,
            wish.labels,
            {},
            priority=50 if wish.priority is None else wish.priority,
            cost=1.0 if wish.cost is None else wish.cost,
            has_key=wish.api_key is not None,
            sources=("api",),
            owner="node-a",
        )
        self.fleet[view.id] = view
        return view

    def change(self, worker_id: str, change: WorkerChange) -> WorkerView:
        self.calls.append(("change", worker_id, change))
        view = self.worker(worker_id)
        said = {
            "model": change.model,
            "role": change.role,
            "contract": change.contract,
            "labels": change.labels,
            "priority": change.priority,
            "cost": change.cost,
            "has_key": None if change.api_key is None else bool(change.api_key),
            "status": {None: None, True: "draining", False: "ready"}[change.draining],
        }
        fields: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        self.fleet[worker_id] = replace(view, **fields)
        return self.fleet[worker_id]

    def drain(self, worker_id: str) -> WorkerView:
        self.fleet[worker_id] = replace(self.worker(worker_id), status="draining")
        return self.fleet[worker_id]

    def undrain(self, worker_id: str) -> WorkerView:
        self.fleet[worker_id] = replace(self.worker(worker_id), status="ready")
        return self.fleet[worker_id]

    async def remove(self, worker_id: str, *, force: bool) -> None:
        self.worker(worker_id)
        self.calls.append(("remove", worker_id, force))
        del self.fleet[worker_id]

    async def probe(self, worker_id: str) -> WorkerView:
        self.calls.append(("probe", worker_id))
        return self.worker(worker_id)

    async def loads(self) -> Sequence[Mapping[str, Any]]:
        return [{"worker": "w-1", "running": 1}, {"worker": "w-2", "error": "down"}]


class FakeHealth:
    def __init__(self) -> None:
        self.state = Health(True, True, False, 1, 2, ())

    def health(self) -> Health:
        return self.state


@dataclass
class Node:
    """A running HTTP surface and everything behind it."""

    server: Server
    parts: HttpParts
    generations: FakeGenerations
    workers: FakeWorkers
    health: FakeHealth
    meters: Meters
    access: LineList
    cluster: FakeCluster
    world: SharedWorld
    journal: Journal

    @property
    def usage(self) -> UsageBook:
        assert isinstance(self.parts.usage, SpentDesk)
        return self.parts.usage.book

    @property
    def port(self) -> int:
        return self.server.address.port

    def sample(self, name: str, **labels: str) -> float:
        return self.meters.registry.get_sample_value(name, labels) or 0.0


def quick(**changes: Any) -> HttpOptions:
    """Return options for a test: free ports, short farewells."""
    given: dict[str, Any] = {
        "listen": "127.0.0.1:0",
        "metrics_listen": "127.0.0.1:0",
        "server": SERVER,
        "tls": TLS,
        "metrics_tls": TLS is not None,
        "settle_s": 0.0,
        "grace_s": 30.0,
        **changes,
    }
    return HttpOptions(**given)


@contextlib.asynccontextmanager
async def node(
    script: Script = hello,
    tracer: Tracer | None = None,
    history: MakeHistory = no_history,
    elsewhere: OtherProcesses | None = None,
    authenticate: Callable[[KeySource], Authenticator] = KeyAuthenticator,
    **changes: Any,
) -> AsyncIterator[Node]:
    clock, rng = SystemClock(), random.Random(7)
    meters = Meters(CollectorRegistry(), version="1.2.3")
    generations = FakeGenerations(script)
    workers, health, lines, cluster = FakeWorkers(), FakeHealth(), LineList(), FakeCluster()
    world, journal = SharedWorld("node-a", "b"), Journal("node-a")
    shared = world.desks("node-a")
    parts = HttpParts(
        identity=Identity("node-a", "1.2.3", "abc"),
        generations=generations,
        translating=generations,
        relays=cast("Relays", FakeRelays()),
        embedder=cast("Embedder", FakeEmbedder()),
        history=lambda: history(generations),
        catalog=FakeCatalog(),
        tokens=FakeTokens(),
        workers=workers,
        sessions=FakeSessions(),
        health=health,
        cluster=cluster,
        authenticator=authenticate(shared.keys),
        keys=shared.keys,
        limits=shared.limits,
        usage=SpentDesk("node-a", cluster.members, world.meshes["node-a"]),
        cluster_settings=shared.settings,
        audit=shared.audit,
        state=shared.state,
        explain=Explanations("node-a", journal, cluster.members, world.meshes["node-a"]),
        refusals=journal.refusals,
        dialects=Dialects(ReaderOptions()),
        meters=meters,
        tracer=tracer or Tracer(TraceOptions(), rng),
        access=AccessLog(lines),
        ids=IdSource(clock, rng),
        clock=clock,
        options=quick(**changes),
        settings=lambda: {"name": "node-a"},
    )
    parts.numbers = numbers_of("node-a", meters, cluster, world.meshes["node-a"], health)
    parts.providers = lambda: providers_of("node-a", world)
    servers = give_tools(parts, cluster, world)
    farewell = Shutdown()
    parts.draining = draining_of(cluster, world, farewell)
    server = farewell.server = Server(parts, elsewhere)
    async with connecting(servers):
        await server.start()
        try:
            yield Node(
                server, parts, generations, workers, health, meters, lines, cluster, world, journal
            )
        finally:
            await server.stop()


def draining_of(cluster: FakeCluster, world: SharedWorld, farewell: Shutdown) -> Draining:
    """Return what tells how far node-a is with its farewell, and asks the others in the world."""

    async def work() -> OpenWork:
        assert farewell.server is not None
        return farewell.server.work()

    return Draining(
        "node-a",
        cluster.members,
        world.meshes["node-a"],
        farewell,
        work=work,
        duties=lambda: Duties(limits=2, workers=1),
    )


def chat(stream: bool = False, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **more}
