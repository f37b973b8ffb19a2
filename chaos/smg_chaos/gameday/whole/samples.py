"""Samples of every node, each second: resident memory, open files, and members it sees alive."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.stores.process_tree import children_of

_EVERY_S: Final = 1.0
_WARM_S: Final = 30.0
"""So long a life grows into its work."""
_LAST: Final = 5
_PAGE_MB: Final = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at one process of a node. `alive` None: it did not say."""

    at_s: float
    pid: int
    rss_mb: float
    files: int
    alive: int | None


@dataclass(slots=True)
class Samples:
    """Samples of each node, in order of time."""

    nodes: dict[str, list[Sample]] = field(default_factory=dict)

    def growth(self, of: Callable[[Sample], float]) -> float:
        """Return the most that any life of a node has grown by since it was warm, 0 if none did."""
        worst = 0.0
        for samples in self.nodes.values():
            for life in _lives(samples):
                warm = [one for one in life if one.at_s - life[0].at_s >= _WARM_S]
                if len(warm) >= 2 * _LAST:
                    first = sorted(map(of, warm[:_LAST]))[_LAST // 2]
                    last = sorted(map(of, warm[-_LAST:]))[_LAST // 2]
                    worst = max(worst, last - first)
        return worst


def _lives(samples: Sequence[Sample]) -> list[list[Sample]]:
    lives: dict[int, list[Sample]] = {}
    for one in samples:
        lives.setdefault(one.pid, []).append(one)
    return list(lives.values())


def taken(pid: int) -> tuple[float, int]:
    """Return resident memory (MB) and open files of a process and its children; (0, 0) if it has ended."""
    memory, files = 0.0, 0
    try:
        for one in (pid, *children_of(pid)):
            folder = Path(f"/proc/{one}")
            memory += int((folder / "statm").read_text().split()[1]) * _PAGE_MB
            files += len(os.listdir(folder / "fd"))
    except OSError:
        return 0.0, 0
    return memory, files


async def watch(nodes: Sequence[SmgAgent], samples: Samples, now_s: Callable[[], float]) -> None:
    """Look at every node each second until cancelled."""

    async def one(node: SmgAgent) -> None:
        kept = samples.nodes.setdefault(node.name, [])
        while True:
            if node.program is not None and node.ended() is None:
                pid = node.program.pid
                memory, files = taken(pid)
                view = await node.view()
                alive = None
                if view is not None:
                    alive = sum(seen.state == "alive" for seen in view.values())
                if files:
                    kept.append(Sample(now_s(), pid, memory, files, alive))
            await asyncio.sleep(_EVERY_S)

    async with asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(one(node))
