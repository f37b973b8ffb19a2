"""Nodes that share one store, and one that has its own: each before an engine that says its prompt again.

All are used by tenants with keys.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import httpx2
import openai
import redis
from openai import OpenAI
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from support.clients.agent_session import MODEL, picking
from support.clients.background_session import SLOW
from support.clients.client_judge import Judge, client_of, listened
from support.engines.pair_answers import urls_of
from support.processes.mesh_nodes import MeshNode, flags_of, mesh_node, until
from support.processes.mesh_trio import Trio, running_trio
from support.processes.simulated_engines import running_pair, running_simulated
from support.stores.postgres_server import running_postgres
from support.stores.redis_server import running_redis

TENANTS: Final = ("acme", "other")
ENGINE: Final = ("--script", "echo", "--model", MODEL, "--itl-ms", "0.2", "--ttft-ms", "1")
_TABLES: Final = (
    "responses",
    "conversations",
    "conversation_items",
    "conversation_item_links",
    "item_locations",
    "response_events",
    "idempotency_keys",
)


@dataclass(frozen=True, slots=True)
class SharedStore:
    """A store that several nodes use. `rows` counts everything that is kept in it."""

    flags: Sequence[str]
    rows: Callable[[], int]


@contextmanager
def postgres(folder: Path) -> Iterator[SharedStore]:
    """Run a PostgreSQL with an empty database, whose tables the first node makes."""
    with running_postgres(folder) as server, asyncio.Runner() as runner:
        database = server.database()
        url = runner.run(database.__aenter__())
        try:
            flags = ("--store", url, "--storage.auto-migrate", "on")
            yield SharedStore(flags, lambda: runner.run(_rows(url)))
        finally:
            runner.run(database.__aexit__(None, None, None))


async def _rows(url: str) -> int:
    engine = create_async_engine(url.replace("://", "+asyncpg://", 1), poolclass=NullPool)
    counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in _TABLES)
    async with engine.connect() as connection:
        counted = await connection.scalar(text(f"SELECT {counts}"))
    await engine.dispose()
    return int(counted or 0)


@contextmanager
def valkey(folder: Path) -> Iterator[SharedStore]:
    """Run a Valkey or Redis; the nodes have a prefix of their own in it."""
    with running_redis(folder) as server, redis.Redis.from_url(server.url) as client:
        prefix = server.new_prefix()

        def rows() -> int:
            return sum(1 for _ in client.scan_iter(f"{prefix}:*", count=1_000))

        yield SharedStore(("--store", server.url, "--storage.owner", prefix), rows)


STORES: Final[dict[str, Callable[[Path], AbstractContextManager[SharedStore]]]] = {
    "postgresql": postgres,
    "redis": valkey,
}


EMBEDDED: Final = SharedStore((), lambda: 0)
"""What a node has unless told otherwise: a file of its own, which others reach through it. Nobody counts its rows."""


@dataclass
class Place:
    """Nodes, the keys of their tenants, and the judge of all that is said by them."""

    living: Callable[[], Sequence[MeshNode]]
    keys: dict[str, str]
    judge: Judge
    heard: httpx2.Client
    unheard: httpx2.Client
    trio: Trio | None = None

    @property
    def nodes(self) -> Sequence[MeshNode]:
        """Those that live."""
        return self.living()

    def awaits_all(self) -> None:
        """Return once all nodes know the keys, and are ready."""
        for node in self.nodes:
            for key in self.keys.values():
                client = client_of(node.node.url, self.unheard, key=key)
                until(partial(_is_known, client), f"known to {node.name}")
            node.awaits_ready()

    def kill(self, name: str) -> None:
        """Kill a node of three, in the middle of whatever it does."""
        assert self.trio is not None, "one node cannot be spared"
        self.trio.kill(name, others_know=False)

    def clients(
        self, tenant: str = TENANTS[0], *, wire: httpx2.Client | None = None
    ) -> list[OpenAI]:
        """Return a client of each node, for this tenant; it is judged, unless it has a wire of its own."""
        through = self.heard if wire is None else wire
        return [client_of(node.node.url, through, key=self.keys[tenant]) for node in self.nodes]

    def anybody(
        self, seed: int, tenant: str = TENANTS[0], *, wire: httpx2.Client | None = None
    ) -> Iterator[OpenAI]:
        """Return an endless choice of nodes, by this seed."""
        return picking(self.clients(tenant, wire=wire), random.Random(seed).randrange)


@contextmanager
def three_nodes(folder: Path, workers: Sequence[str], store: SharedStore) -> Iterator[Place]:
    """Run three members of one mesh with one store; `workers` are flags for what is behind them."""
    with ExitStack() as stack:
        trio = stack.enter_context(running_trio(folder, *workers, *store.flags))
        place = stack.enter_context(_used(lambda: trio.living))
        place.trio = trio
        yield place


@contextmanager
def one_node(folder: Path, workers: Sequence[str]) -> Iterator[Place]:
    """Run one node with a store in its memory; `workers` are flags for what is behind it."""
    given = [*flags_of("alone", key=None), *workers, "--store", "memory:"]
    with mesh_node(folder, given) as node, _used(lambda: [node]) as place:
        yield place


@contextmanager
def running_echoes(folder: Path) -> Iterator[Sequence[str]]:
    """Run engines that say their prompt again; yield the flags of a node before them.

    What a node made of a history can be read in the answer.
    """
    slowly = (*ENGINE, "--model", SLOW, "--itl-ms", "15")
    with ExitStack() as stack:
        flags = ["--readiness.min-workers", "2"]
        for number, how in enumerate((ENGINE, slowly)):
            scratch = folder / f"engine-{number}"
            scratch.mkdir(parents=True)
            engine = stack.enter_context(running_simulated(scratch, *how))
            flags += ["--worker", f"grpc://{engine.address}"]
        yield flags


@contextmanager
def running_halves(folder: Path) -> Iterator[Sequence[str]]:
    """Run an engine for prompts and one for answers; yield the flags of a node before them."""
    with running_pair(folder, *ENGINE) as pair:
        workers = [word for engine in pair for url in urls_of(engine) for word in ("--worker", url)]
        yield ["--readiness.min-workers", "2", *workers]


@contextmanager
def _used(living: Callable[[], Sequence[MeshNode]]) -> Iterator[Place]:
    """Yield the nodes once all of them know the keys of all tenants, and are ready."""
    judge = Judge()
    with listened(judge) as wire, httpx2.Client() as plain:
        first = OpenAI(base_url=living()[0].node.url, api_key="none", http_client=plain)
        admin = first.with_options(api_key=_key(first, role="admin"))
        keys = {tenant: _key(admin, tenant=tenant) for tenant in TENANTS}
        place = Place(living, keys, judge, wire, plain)
        place.awaits_all()
        yield place


def _key(client: OpenAI, **wish: str) -> str:
    made = client.post("/v1/cluster/keys", body=wish, cast_to=dict[str, str])
    return str(made["key"])


def _is_known(client: OpenAI) -> bool:
    with suppress(openai.AuthenticationError, openai.InternalServerError):
        return bool(client.models.list().data)
    return False
