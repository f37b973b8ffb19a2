"""Worker registry scenario: workers registered on one node, used on all, which outlive that
node.
"""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.engine_pool import (
    Operator,
    agreed,
    chat_once,
    nodes_of,
    start_engines,
    until,
)
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure, times

_LIMIT_S: Final = 30.0
_ENGINES: Final = 3
_BETWEEN_ASKS_S: Final = 0.02
_BETWEEN_LOOKS_S: Final = 0.1


@dataclass
class Witness:
    """Observations of clients and operators at the surviving nodes, before, during and after a
    death.
    """

    answers: int = 0
    failed: list[str] = field(default_factory=list)
    looks: int = 0
    missing: int = 0

    def figures(self) -> list[Figure]:
        """Return the counts of what should not have happened."""
        return [
            Figure(
                "requests that failed at the others while the registrar died",
                len(self.failed),
                "",
                0,
                f"of {self.answers}",
            ),
            Figure(
                "looks at which a worker was missing or not ready",
                self.missing,
                "",
                0,
                f"of {self.looks}",
            ),
        ]


async def workers(stage: Stage) -> Sequence[Figure]:
    """Add and remove workers on changing nodes, then kill the node that registered the last ones,
    for so many seconds.
    """
    cluster = stage.cluster
    nodes = nodes_of(cluster)
    await cluster.form()
    pool = await start_engines(cluster, _ENGINES)
    seen: list[float | None] = []
    usable: list[float | None] = []
    gone: list[float | None] = []
    for number in range(stage.rounds):
        adder, remover = nodes[number % len(nodes)], nodes[(number + 1) % len(nodes)]
        since_us = cluster.monotonic_us()
        added = await Operator(adder).add(pool.urls[0])
        seen.append(await everywhere(cluster, nodes, added, since_us, present=True))
        usable.append(await ready_everywhere(cluster, nodes, [added], since_us))
        since_us = cluster.monotonic_us()
        if not await Operator(remover).remove(added):
            raise ClusterError(f"{remover.name} does not know the worker that it shows")
        gone.append(await everywhere(cluster, nodes, added, since_us, present=False))
        stage.say(f"round {number + 1} of {stage.rounds}: {seen[-1]} s, {gone[-1]} s")
        await stage.pause(0.2)
    return [
        *times("worker added: on all nodes", seen, p99_max=0.5),
        *times("worker added: ready on all nodes", usable, p99_max=2.0),
        *times("worker removed: on no node", gone, p99_max=0.5),
        *await outlived(stage, nodes, pool.urls),
    ]


async def everywhere(
    cluster: Cluster, nodes: Sequence[SmgAgent], worker: str, since_us: int, *, present: bool
) -> float | None:
    """Return how long after `since_us` every node had the worker, or had it no more."""

    async def so() -> bool:
        views = await asyncio.gather(*(Operator(node).workers() for node in nodes))
        return all((worker in view) is present for view in views)

    return _since(cluster, since_us, await until(cluster, so, _LIMIT_S))


async def ready_everywhere(
    cluster: Cluster, nodes: Sequence[SmgAgent], ids: Sequence[str], since_us: int
) -> float | None:
    """Return how long after `since_us` these workers were ready on every node."""

    async def so() -> bool:
        views = await asyncio.gather(*(Operator(node).workers() for node in nodes))
        return all(view.get(worker) == "ready" for view in views for worker in ids)

    return _since(cluster, since_us, await until(cluster, so, _LIMIT_S))


def _since(cluster: Cluster, since_us: int, taken_s: float | None) -> float | None:
    return None if taken_s is None else (cluster.monotonic_us() - since_us) / 1e6


async def outlived(
    stage: Stage, nodes: Sequence[SmgAgent], urls: Sequence[str]
) -> Sequence[Figure]:
    """Kill the node that registered all workers, while the others get requests without a pause for
    `stage.seconds` more.
    """
    cluster = stage.cluster
    registrar, *others = nodes
    ids = [await Operator(registrar).add(url) for url in urls]
    if await ready_everywhere(cluster, nodes, ids, cluster.monotonic_us()) is None:
        raise ClusterError(f"the workers do not become ready:\n{registrar.last_words()}")
    witness = Witness()
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(_asked(node, witness)) for node in others]
        asking += [group.create_task(_looked_at(node, ids, witness)) for node in others]
        await asyncio.sleep(1.0)
        since_ms = cluster.now_ms()
        registrar.signal(signal.SIGKILL)
        told = await cluster.until_announced(others, "down", registrar.name, since_ms, _LIMIT_S)
        stage.say(f"{registrar.name} is dead for all after {told[-1] if told else 'ever'} s")
        await asyncio.sleep(stage.seconds)
        for task in asking:
            task.cancel()
    assert registrar.program is not None
    await registrar.end_of(registrar.program)
    for line in witness.failed[:5]:
        stage.say(f"failed: {line}")
    since_us = cluster.monotonic_us()
    await cluster.start_apart([registrar], [other.mesh_address for other in others])
    answering_us = cluster.monotonic_us()
    agreed_s = await agreed(cluster, nodes, _LIMIT_S)
    stage.say(f"{registrar.name} answers {(answering_us - since_us) / 1e6:.2f} s after its start")
    return [
        *witness.figures(),
        Figure("registrar back: all state agrees after its API answers", agreed_s, "s", 2.0),
    ]


async def _asked(node: SmgAgent, witness: Witness) -> None:
    talk = node.client()
    try:
        while True:
            try:
                status, said = await chat_once(talk)
            except ConnectionError as error:
                status, said = 0, str(error)
            witness.answers += 1
            if status != 200:
                witness.failed.append(f"{node.name}: {status} {said}")
            await asyncio.sleep(_BETWEEN_ASKS_S)
    finally:
        talk.close()


async def _looked_at(node: SmgAgent, ids: Sequence[str], witness: Witness) -> None:
    while True:
        held = await Operator(node).workers()
        witness.looks += 1
        witness.missing += any(held.get(worker) != "ready" for worker in ids)
        await asyncio.sleep(_BETWEEN_LOOKS_S)
