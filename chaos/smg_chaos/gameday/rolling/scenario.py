"""Rolling scenario: so many streams open all the time, and every node restarted in turn, so many
rounds.

Every other restart is an operator's (`smg-admin cluster drain NODE --wait` through another node,
then SIGTERM), the others are a bare SIGTERM, as systemd and Kubernetes send it; in the next round
it is the other way round. Every other pair of nodes serves with a data process of its own. Clients
come through a balancer that asks each node every second whether it is ready, takes it out after two
misses and in after one answer, and never retries a request.

Beside the streams a model with a strict limit gets more requests than it allows, which are counted
at its engine.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import Operator, agreed, nodes_of, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.limits.scene import CLIENTS, ENGINES
from smg_chaos.gameday.rolling.restart import Means, Restart, Restarting
from smg_chaos.gameday.rolling.streams import TOKENS_PER_S, Streams
from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.gameday.whole.clients.limited_model import Capped
from smg_chaos.gameday.whole.day_run import mistakes_in
from smg_chaos.statistics import Figure

PLACES: Final = (ENGINES, CLIENTS)
"""Places beside those of the nodes."""
STREAMS: Final = 200
LONGEST_S: Final = 10.0
"""The longest stream, where nothing else is said."""
FLAGS: Final = (
    *("--http.expose-routing-headers", "true", "--readiness.min-workers", "1"),
    # A balancer has noticed after two looks of a second, each of which may take one.
    *("--drain.settle-s", "4", "--store", "memory:"),
)
_ENGINE: Final = ("--script", "following", "--itl-ms", str(1000 // TOKENS_PER_S), "--slots", "512")
_CONTRACTS: Final = ("vllm", "sglang")
_READY_S: Final = 60.0
_AGREE_MAX_S: Final = 2.0
_SHOWN: Final = 10


@dataclass
class Cast:
    """Participants of the scenario."""

    stage: Stage
    nodes: list[SmgAgent]
    engines: list[EngineProcess]
    balancer: Balancer[SmgAgent]
    streams: Streams
    capped: Capped
    restarts: list[Restart] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    missing: int = 0
    """How often a worker was not there for a node after a restart."""
    fewest: int = 0
    """The fewest streams that were open when a node was told to go."""


async def rolling(stage: Stage) -> Sequence[Figure]:
    """Restart every node in turn under streams, so many rounds; return the figures of clients and
    operators.
    """
    cast = _cast(stage)
    await _begin(cast)
    async with asyncio.TaskGroup() as group:
        balancing = group.create_task(cast.balancer.run())
        try:
            await _all_in(cast)
            await cast.streams.learn()
            stage.say("the answers are known; now the restarts")
            await _restart_all(cast)
        finally:
            balancing.cancel()
    agreed_s = await agreed(stage.cluster, cast.nodes, _READY_S)
    return figures(cast, agreed_s)


def _cast(stage: Stage) -> Cast:
    cluster = stage.cluster
    nodes = nodes_of(cluster)
    for number, node in enumerate(nodes):
        node.flags = (*node.flags, "--processes", str(number // 2 % 2))
    engines = [
        EngineProcess(cluster, number, ("--contract", contract, *_ENGINE), place=ENGINES)
        for number, contract in enumerate(_CONTRACTS[: stage.engines])
    ]
    balancer = Balancer(cluster.lab, CLIENTS, nodes)
    now_s = lambda: cluster.monotonic_us() / 1e6  # noqa: E731 (one clock, for two who want it)
    streams = Streams(balancer, stage.streams or STREAMS, stage.seconds or LONGEST_S, now_s=now_s)
    capped = Capped(cluster, ENGINES, balancer, now_us=lambda: cluster.now_ms() * 1000)
    return Cast(stage, nodes, engines, balancer, streams, capped)


async def _begin(cast: Cast) -> None:
    """Start everything; return when every node can use every engine, and knows the limit."""
    every = [*cast.engines, cast.capped.engine]
    for engine in every:
        engine.start()
    await cast.stage.cluster.form()
    for engine in every:
        await engine.listening()
        cast.workers.append(await Operator(cast.nodes[0]).add(engine.url))
    await _usable(cast)
    await cast.capped.define(cast.nodes)


async def _usable(cast: Cast) -> None:
    """Return when every worker is ready at every node."""

    async def so() -> bool:
        views = await asyncio.gather(*(Operator(node).workers() for node in cast.nodes))
        return all(view.get(worker) == "ready" for view in views for worker in cast.workers)

    if await until(cast.stage.cluster, so, _READY_S) is None:
        raise ClusterError("not every node can use every engine")


async def _all_in(cast: Cast) -> None:
    async def so() -> bool:
        return len(cast.balancer.up()) == len(cast.nodes)

    if await until(cast.stage.cluster, so, _READY_S) is None:
        raise ClusterError(f"the balancer has only {cast.balancer.up()}")


async def _restart_all(cast: Cast) -> None:
    """Restart all while streams are open and the limited model is in use; return when the last
    stream has ended.
    """
    stage = cast.stage
    restarting = Restarting(stage.cluster, cast.nodes, cast.balancer)
    async with asyncio.TaskGroup() as group:
        clients = [group.create_task(one.run()) for one in (cast.streams, cast.capped)]
        try:
            await _all_open(cast)
            cast.fewest = cast.streams.open_now
            for number in range(stage.rounds):
                for at, node in enumerate(cast.nodes):
                    means: Means = "signal" if (number + at) % 2 else "drain"
                    await _restart(cast, restarting, node, means)
            cast.streams.stop()
            cast.capped.stop()
        except BaseException:
            for client in clients:
                client.cancel()
            raise


async def _all_open(cast: Cast) -> None:
    wanted = cast.stage.streams or STREAMS

    async def so() -> bool:
        return cast.streams.open_now >= wanted

    if await until(cast.stage.cluster, so, _READY_S) is None:
        raise ClusterError(f"only {cast.streams.open_now} streams are open")


async def _restart(cast: Cast, restarting: Restarting, node: SmgAgent, means: Means) -> None:
    streams, stage = cast.streams, cast.stage
    cast.fewest = min(cast.fewest, streams.open_now)
    done = await restarting.restart(node, means, streams.open.get(node.name, 0))
    cast.restarts.append(done)
    for one in cast.nodes:
        held = await Operator(one).workers()
        cast.missing += sum(worker not in held for worker in cast.workers)
    wrong = sum(bool(one.problem) for one in streams.ended)
    stage.say(
        f"{done.node} by {done.means} with {done.streams} of {streams.open_now} streams: empty after {done.waited_s:.1f} s,"
        f" stopped after {done.stopped_s:.1f} s, ready after {done.ready_s:.1f} s; {len(streams.ended)} streams, {wrong} wrong"
    )


def figures(cast: Cast, agreed_s: float | None) -> list[Figure]:
    """Return the figures of the scenario."""
    ended, restarts = cast.streams.ended, cast.restarts
    wrong = [one.problem for one in ended if one.problem]
    for line in wrong[:_SHOWN]:
        cast.stage.say(f"wrong: {line}")
    mistakes = [line for node in cast.nodes for line in mistakes_in(node.log)]
    for line in mistakes[:_SHOWN]:
        cast.stage.say(f"logged: {line}")
    moved = sum(one.streams for one in restarts)
    drained = [one.waited_s for one in restarts if one.means == "drain"]
    stopped = [one.stopped_s for one in restarts if one.means == "signal"]
    empty = [one.stopped_s for one in restarts if one.means == "drain"]
    return [
        Figure("streams that were not whole and exact", len(wrong), "", 0, f"of {len(ended)}"),
        Figure("streams open when a node was told to go, the fewest", cast.fewest, ""),
        Figure("restarts", len(restarts), "", None, f"{moved} streams were open at their nodes"),
        Figure("longest stream", max((one.lasted_s for one in ended), default=None), "s"),
        Figure("drained: empty after, at most", max(drained, default=None), "s"),
        Figure("drained, then SIGTERM: gone after, at most", max(empty, default=None), "s"),
        Figure("only SIGTERM: gone after, at most", max(stopped, default=None), "s"),
        Figure("started: ready after, at most", max(one.ready_s for one in restarts), "s"),
        Figure("workers missing at a node after a restart", cast.missing, "", 0),
        *cast.capped.figures(),
        Figure("mistakes in the nodes' logs", len(mistakes), "", 0),
        Figure("all state agrees in the end", agreed_s, "s", _AGREE_MAX_S),
    ]
