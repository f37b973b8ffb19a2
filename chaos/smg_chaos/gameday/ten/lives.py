"""Lives of nodes: parts in which a node joins, dies, returns, is stopped and leaves."""

import asyncio
import signal
from typing import Any, Final

from smg_chaos.gameday.agents.agent import MESH_PORT
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import MODEL, Operator, chat_once, nodes_of, until
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.stream_check import Hearing, problems
from smg_chaos.gameday.clients.stream_client import at_place, listen
from smg_chaos.gameday.limits.scene import ENGINES
from smg_chaos.gameday.scenes.healing import whole_after_start
from smg_chaos.gameday.scenes.worker_registry import everywhere
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure

_LIMIT_S: Final = 30.0
_STREAM: Final[dict[str, Any]] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "What comes after one?"}],
    "max_tokens": 150,
    "temperature": 0,
    "stream": True,
    "stream_options": {"include_usage": True},
}
"""An answer of three seconds."""
_INTO_S: Final = 0.5


async def joined(stage: Stage, url: str) -> tuple[list[Figure], list[Figure]]:
    """Restart the last node with two seeds, of which the first is not there; then register a
    worker.

    Returns the figures of the seeds, and of the worker.
    """
    cluster = stage.cluster
    nodes = nodes_of(cluster)
    first, last = nodes[0], nodes[-1]
    await _stopped(last)
    nobody = f"{cluster.lab.address(ENGINES)}:{MESH_PORT}"
    by_second_s = await whole_after_start(stage, last, [nobody, first.mesh_address])
    await _stopped(last)
    ordinary_s = await whole_after_start(stage, last, [first.mesh_address])
    since_us = cluster.monotonic_us()
    worker = await Operator(first).add(url)
    known_s = await everywhere(cluster, nodes, worker, since_us, present=True)
    return (
        [Figure("joined through the second seed, the first is not there", by_second_s, "s", 1.0)],
        [
            Figure("an ordinary join: all see all", ordinary_s, "s", 2.0),
            Figure("a worker registered at one node is on all", known_s, "s", 0.5),
        ],
    )


async def back(stage: Stage) -> list[Figure]:
    """Kill the first node and start it again under its name, by the second as its seed."""
    first, second, *_ = nodes_of(stage.cluster)
    since_ms = stage.cluster.now_ms()
    await _ended(first, signal.SIGKILL)
    others = [node for node in nodes_of(stage.cluster) if node is not first]
    if not await stage.cluster.until_announced(others, "down", first.name, since_ms, _LIMIT_S):
        raise ClusterError(f"nobody misses {first.name}")
    whole_s = await whole_after_start(stage, first, [second.mesh_address])
    return [
        Figure("back under its name by another seed: all see all", whole_s, "s", 2.0),
        await _wrong_answers(stage, "chats that fail afterwards, at all nodes"),
    ]


async def stood_still(stage: Stage) -> list[Figure]:
    """Stop the first node's process for 25 s (SIGSTOP), and continue it."""
    cluster = stage.cluster
    first, *others = nodes_of(cluster)
    since_ms = cluster.now_ms()
    first.signal(signal.SIGSTOP)
    try:
        dead = await cluster.until_announced(others, "down", first.name, since_ms, _LIMIT_S)
        await asyncio.sleep(max(stage.seconds - (dead[-1] if dead else _LIMIT_S), 0.0))
    finally:
        first.signal(signal.SIGCONT)
    again_s = await cluster.until_whole(_LIMIT_S)
    return [
        Figure("stopped: dead for all others", dead[-1] if dead else None, "s", 4.5),
        Figure("going on: alive for all again", again_s, "s", 1.0),
        stage.touched("others called dead meanwhile", [one.name for one in others], since_ms, 0),
        await _wrong_answers(stage, "chats that fail afterwards, at all nodes"),
    ]


async def left(stage: Stage) -> list[Figure]:
    """End the last node, idle, and then with a streamed answer under way."""
    cluster = stage.cluster
    *others, last = nodes_of(cluster)
    held = await Operator(others[0]).workers()
    right = await _heard(stage, others[0])
    begun_ms = since_ms = cluster.now_ms()
    await _ended(last, signal.SIGTERM)
    told = await cluster.until_announced(others, "left", last.name, since_ms, _LIMIT_S)
    if await whole_after_start(stage, last, [others[0].mesh_address]) is None:
        raise ClusterError(f"{last.name} does not come back")
    if await until(cluster, Operator(last).serving, _LIMIT_S) is None:
        raise ClusterError(f"{last.name} does not bring up its workers:\n{last.last_words()}")
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(_heard(stage, last))
        await asyncio.sleep(_INTO_S)
        last.signal(signal.SIGTERM)
    assert last.program is not None
    code = await last.end_of(last.program)
    found = problems(hearing.result(), right)
    kept = [(await Operator(node).workers()).keys() == held.keys() for node in others]
    figures = [
        Figure("SIGTERM: left, for all others", told[-1] if told else None, "s", 0.5),
        Figure("the answer under way is not whole", len(found), "", 0, "; ".join(found)[:200]),
        Figure("its exit status", code, "", 0),
        stage.touched("called dead", [last.name], begun_ms, 0),
        Figure("doubts about it", len(stage.since("suspect", [last.name], begun_ms)), "", 0),
        Figure("nodes that lost a worker over it", kept.count(False), "", 0),
    ]
    if await whole_after_start(stage, last, [others[0].mesh_address]) is None:
        raise ClusterError(f"{last.name} does not come back")
    return figures


async def _heard(stage: Stage, node: SmgAgent) -> Hearing:
    heard = Hearing(stage.now_s())
    connect = at_place(stage.cluster.lab, node.name)
    await listen(connect, _STREAM, now_s=stage.now_s, limit_s=_LIMIT_S, hearing=heard)
    return heard


async def _wrong_answers(stage: Stage, metric: str) -> Figure:
    """Send every node three chats; return how many did not succeed."""
    wrong = []
    for node in nodes_of(stage.cluster):
        if await until(stage.cluster, Operator(node).serving, _LIMIT_S) is None:
            raise ClusterError(f"{node.name} does not bring up its workers:\n{node.last_words()}")
        talk = node.client()
        try:
            for _ in range(3):
                status, said = await chat_once(talk)
                if status != 200:
                    wrong.append(f"{node.name}: {status} {said}")
        finally:
            talk.close()
    return Figure(metric, len(wrong), "", 0, "; ".join(wrong)[:200])


async def _stopped(node: SmgAgent) -> None:
    code = await _ended(node, signal.SIGTERM)
    if code != 0:
        raise ClusterError(f"{node.name} ends with {code}:\n{node.last_words()}")


async def _ended(node: SmgAgent, number: signal.Signals) -> int | None:
    assert node.program is not None
    node.signal(number)
    return await node.end_of(node.program)
