"""A lab of network namespaces for tests, and real nodes in it.

In CI a lab that cannot be made is a failure. On somebody's laptop without Linux or without leave to make
namespaces, the tests that need one are skipped: nothing else can be done there, and CI runs them.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest

from smg_chaos.gameday.agents.cluster import Cluster, watched
from smg_chaos.gameday.agents.smg_agent import HTTP_PORT, SmgAgent
from smg_chaos.gameday.lab.lab import Lab, LabError, opened
from smg_chaos.gameday.stage import Play, Stage
from smg_chaos.statistics import Figure
from smg_node.system_clock import SystemClock
from support.http.chat_client import CHAT, becomes, chat
from support.http.raw_http import RawClient

ENGINES: Final = "engines"
ENGINES_LOG: Final = "engines.log"
MODEL: Final = "sim"
_ENGINE_PORT: Final = 61000
_READY_S: Final = 60.0
_LOOK_S: Final = 0.05


@contextmanager
def running_lab(places: Sequence[str], *, seed: int = 1) -> Iterator[Lab]:
    """Open a lab with these places."""
    with ExitStack() as stack:
        try:
            lab = stack.enter_context(opened(places, seed=seed))
        except LabError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no lab of namespaces here: {error}")
        yield lab


def cluster_of(lab: Lab, folder: Path, names: Sequence[str], *flags: str) -> Cluster:
    """Return nodes with one mesh key that nobody has started, at the places of these names."""
    clock = SystemClock()
    key = folder / "mesh.key"
    key.write_text(os.urandom(32).hex())
    key.chmod(0o600)
    agents = [SmgAgent(lab, name, folder / name, clock, key=key, flags=flags) for name in names]
    return Cluster(lab, agents, clock)


@asynccontextmanager
async def nodes(
    folder: Path,
    *names: str,
    engines: int = 0,
    more_places: Sequence[str] = (),
    step_ms: int = 5,
    flags: Sequence[str] = (),
    listed: bool = True,
) -> AsyncIterator[Cluster]:
    """Make places for these nodes, not started, and run that many engines.

    All nodes are told of the engines by their flags, unless they are not `listed`. `flags` are theirs too.
    """
    places = [*names, *more_places, *([ENGINES] if engines else [])]
    with running_lab(places) as lab:
        workers = await _engines(lab, folder, engines, step_ms) if engines else []
        known = [word for worker in workers for word in ("--worker", worker)] if listed else []
        async with watched(cluster_of(lab, folder, names, *known, *flags)) as cluster:
            yield cluster


def engine_urls(lab: Lab, count: int) -> list[str]:
    """Return the URLs of the engines that `nodes` runs."""
    return [f"grpc://{lab.address(ENGINES)}:{_ENGINE_PORT + number}" for number in range(count)]


async def _engines(lab: Lab, folder: Path, count: int, step_ms: int) -> list[str]:
    """Run engines at a place of their own, which tell who calls them; return their URLs once they listen."""
    where = ("--host", lab.address(ENGINES), "--port", str(_ENGINE_PORT), "--workers", str(count))
    what = ("--contract", "vllm", "--model", MODEL, "--script", "endless", "--itl-ms", str(step_ms))
    log = folder / ENGINES_LOG
    program = Path(sys.executable).with_name("smg-chaos")
    with log.open("wb") as output:
        command: list[str | Path] = [program, "engine", "--tell-calls", *where, *what]
        engine = lab.spawn(ENGINES, command, output, folder=folder)

    def listening() -> bool:
        assert engine.ended() is None, log.read_text()
        return log.read_text().count("listening on") == count

    await becomes(listening, _READY_S, "engines")
    return engine_urls(lab, count)


async def ready(*agents: SmgAgent) -> None:
    """Return when each of these says that it is ready to serve."""
    for agent in agents:
        status, why = 0, b""
        for _ in range(round(_READY_S / _LOOK_S)):
            status, why = await agent.ask("GET", "/readiness")
            if status == 200:
                break
            await asyncio.sleep(_LOOK_S)
        assert status == 200, f"{agent.name} does not become ready: {why!r}"


async def answers_chat(agent: SmgAgent, *, tokens: int = 3) -> bool:
    """Ask a node for a short chat; return whether it answered as it should."""
    body = json.dumps({**chat(MODEL), "max_tokens": tokens}).encode()
    status, answer = await agent.ask("POST", CHAT, body)
    return status == 200 and bool(json.loads(answer)["choices"][0]["message"]["content"])


@asynccontextmanager
async def asked_all_the_time(*agents: SmgAgent) -> AsyncIterator[dict[str, list[bool]]]:
    """Ask these nodes for chats all the time while inside; yield, per node, how each one went."""
    went: dict[str, list[bool]] = {agent.name: [] for agent in agents}

    async def ask(agent: SmgAgent) -> None:
        while True:
            went[agent.name].append(await answers_chat(agent))
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(ask(agent)) for agent in agents]
        yield went
        for task in asking:
            task.cancel()


@asynccontextmanager
async def client_of(lab: Lab, agent: SmgAgent) -> AsyncIterator[RawClient]:
    """Connect to a node's public API from the loopback of its place."""
    made = lab.socket(agent.name)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", HTTP_PORT))
    reader, writer = await asyncio.open_connection(sock=made)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


async def played(
    play: Play,
    folder: Path,
    *,
    count: int,
    seconds: float = 0.0,
    rounds: int = 0,
    streams: int = 0,
    flags: Sequence[str] = (),
    topology: str = "alone",
    more_places: Sequence[str] = (),
) -> dict[str, Figure]:
    """Play a scenario of the gameday with real nodes; return its figures by metric."""
    names = [f"n{number}" for number in range(count)]
    async with nodes(folder, *names, flags=flags, more_places=more_places) as cluster:
        figures = await play(Stage(cluster, seconds, rounds, Random(1), print, streams, topology))
    return {figure.metric: figure for figure in figures}
