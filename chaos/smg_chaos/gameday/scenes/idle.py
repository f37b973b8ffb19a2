"""Idle scenario: the cost of a node in a cluster without events or requests."""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from smg_chaos.bench.figures.process_accounting import memory_of, tree_scheduled_s
from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure

_SETTLE_S: Final = 20.0
"""Connections of the joining are closed by then."""
_MB: Final = 1 << 20


async def idle(stage: Stage) -> Sequence[Figure]:
    """Measure bytes and packets that a node sends, its CPU and memory, while all is well and there
    are no requests.
    """
    cluster = stage.cluster
    await cluster.form()
    await cluster.quiet(_SETTLE_S)
    count = len(cluster.agents)
    since_us, before, cpu_before_s = (
        cluster.monotonic_us(),
        cluster.lab.traffic(),
        _cpu_s(cluster.agents),
    )
    await cluster.quiet(stage.seconds)
    after, cpu_after_s = cluster.lab.traffic(), _cpu_s(cluster.agents)
    seconds = (cluster.monotonic_us() - since_us) / 1e6
    sent = sum(after[name].bytes - before[name].bytes for name in cluster.names)
    packets = sum(after[name].packets - before[name].packets for name in cluster.names)
    memories = [memory_of(_pid(agent)) for agent in cluster.agents]
    cpu = (cpu_after_s - cpu_before_s) / seconds / count
    return [
        Figure("sent per node, with IP and UDP headers", sent / seconds / count, "B/s", 450.0),
        Figure("packets sent per node", packets / seconds / count, "packets/s"),
        Figure("CPU per node, of one core", cpu * 100, "%", 0.2),
        Figure("memory per node, resident", fmean(m.rss for m in memories) / _MB, "MB", 60.0),
        Figure(
            "memory per node, shared pages shared out", fmean(m.pss for m in memories) / _MB, "MB"
        ),
    ]


def _cpu_s(agents: Sequence[Agent]) -> float:
    return sum(tree_scheduled_s(_pid(agent)) for agent in agents)


def _pid(agent: Agent) -> int:
    assert agent.program is not None
    return agent.program.pid
