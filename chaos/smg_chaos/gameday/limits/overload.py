"""Overload: ten times the limit on nodes that are hurt meanwhile; arrivals at the engines stay
within it.

Chapters: all nodes alike; 95 % at one node; the owner of the limit killed (-9) and, some time
later, started again; another node stopped for 3 s; two nodes cut off from three; healed; the limit
lowered and raised while it is spent. Then the same limit as `balanced`, under a cut again, when it
is a fifth more that may be admitted.
"""

import asyncio
import signal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from smg_chaos.gameday.lab.link_rules import cut
from smg_chaos.gameday.limits.clients.header_checks import read_headers
from smg_chaos.gameday.limits.definition import Definer, Rule
from smg_chaos.gameday.limits.gauges import PACKETS, gauges, packets
from smg_chaos.gameday.limits.judge import Allowance, Amount
from smg_chaos.gameday.limits.report import (
    excess,
    failures,
    headed,
    repeated,
    unused,
    within,
    worst_unused,
)
from smg_chaos.gameday.limits.scene import Scene, evenly, mostly
from smg_chaos.gameday.limits.story import Chapter
from smg_chaos.statistics import Figure

LIMIT: Final = 40
LOWERED: Final = 20
TIMES: Final = 10
WINDOW_US: Final = 1_000_000
_WARM_S: Final = 2.5
"""Who asks for how much is known after a window or two; what is admitted meanwhile is judged as well."""
_STOP_S: Final = 3.0
_SOON_S: Final = 3
"""So many seconds after the owner's death somebody else must have taken over."""
_RULE: Final = Rule(requests=f"{LIMIT}/second")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds of the chapters. `balanced` 0: that chapter is left out."""

    calm: float
    killed: float
    after_stop: float
    cut: float
    healed: float
    changed: float
    balanced: float


FULL: Final = Lengths(15.0, 8.0, 5.0, 10.0, 6.0, 6.0, 10.0)
QUICK: Final = Lengths(4.0, 5.0, 1.5, 4.0, 2.0, 2.5, 0.0)


class Overload:
    """Plays the chapters, and records what each window allowed."""

    def __init__(self, scene: Scene, definer: Definer, lengths: Lengths) -> None:
        self._scene = scene
        self._definer = definer
        self._lengths = lengths
        self._names = list(scene.cluster.names)
        self._amounts: list[Amount] = []
        self._chapters: dict[str, Chapter] = {}
        self._surprised: set[tuple[int, int]] = set()
        """Nodes, and windows in which they began a new life or were allowed more: there, more may be left than before."""
        self._killed_us = 0

    async def play(self) -> list[Figure]:
        """Play all chapters; return their figures."""
        scene, lengths = self._scene, self._lengths
        await self._definer.begin(_RULE)
        since_us = scene.now_us()
        self._amounts = [Amount(LIMIT, since_us)]
        await scene.rate(evenly(self._names, LIMIT * TIMES))
        await scene.chapter("10x, the first windows", _WARM_S)
        before = await gauges(scene.cluster, self._names, PACKETS)
        await self._told("even", lengths.calm)
        after = await gauges(scene.cluster, self._names, PACKETS)
        busy = self._names[1]
        await scene.rate(mostly(self._names, busy, LIMIT * TIMES))
        await self._told("skewed", lengths.calm)
        await scene.rate(evenly(self._names, LIMIT * TIMES))
        await self._kill_the_owner()
        await self._stop_another()
        await self._cut("cut", lengths.cut)
        await self._told("healed", lengths.healed)
        await self._change()
        await scene.quiet()
        figures = await self._figures(since_us)
        figures.append(packets("10x even", before, after, lengths.calm))
        if lengths.balanced:
            figures += await self._balanced()
        return figures

    def _surprise(self, nodes: Iterable[int], since_us: int) -> None:
        """Note that nodes may have more left than they reported before, in the windows since a
        moment.
        """
        windows = range(since_us // WINDOW_US, self._scene.now_us() // WINDOW_US + 1)
        self._surprised |= {(node, window) for node in nodes for window in windows}

    async def _told(self, name: str, seconds: float) -> None:
        self._chapters[name] = await self._scene.chapter(name, seconds)

    # ── Harm ────────────────────────────────────────────────────────────────

    async def _kill_the_owner(self) -> None:
        """kill -9 the owner; start it again after the chapter, and wait until all is well, under load."""
        scene, cluster = self._scene, self._scene.cluster
        owner = cluster[await self._definer.owner()]
        node = self._names.index(owner.name)
        others = [name for name in self._names if name != owner.name]
        self._killed_us = scene.now_us()
        owner.signal(signal.SIGKILL)
        await scene.rate(evenly(others, LIMIT * TIMES))
        await self._told("owner killed", self._lengths.killed)
        seeds = [other.mesh_address for other in cluster.others(owner)]
        assert owner.program is not None
        await owner.end_of(owner.program)
        began_us = scene.now_us()
        await cluster.start_apart([owner], seeds)
        await scene.usable(owner)
        scene.hurt.add(node, self._killed_us - WINDOW_US, scene.now_us())
        self._surprise([node], self._killed_us)
        await scene.rate(evenly(self._names, LIMIT * TIMES))
        await scene.stage.whole_again()
        self._chapters["restarted"] = scene.closed("restarted", began_us)

    async def _stop_another(self) -> None:
        scene = self._scene
        owner = await self._definer.owner()
        victim = scene.cluster[scene.stage.rng.choice([n for n in self._names if n != owner])]
        node, began_us = self._names.index(victim.name), scene.now_us()
        victim.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(_STOP_S)
        finally:
            victim.signal(signal.SIGCONT)
        scene.hurt.add(node, began_us, scene.now_us() + WINDOW_US)
        await asyncio.sleep(self._lengths.after_stop)
        self._chapters["stopped"] = scene.closed("stopped 3 s", began_us)

    async def _cut(self, name: str, seconds: float) -> None:
        """Cut the owner off, with as many others as are still a minority; all reach the engines and clients."""
        scene = self._scene
        owner = await self._definer.owner()
        rest = [name for name in self._names if name != owner]
        scene.stage.rng.shuffle(rest)
        few = (len(self._names) - 1) // 2
        minority, majority = [owner, *rest[: few - 1]], rest[few - 1 :]
        scene.cluster.lab.set_rules(cut(minority, majority))
        try:
            await self._told(name, seconds)
        finally:
            scene.cluster.lab.set_rules({})

    async def _change(self) -> None:
        """Lower the limit while it is spent, wait until all nodes apply it, and raise it again."""
        scene = self._scene
        before = self._amounts.pop()
        began_us = scene.now_us()
        known_us = await self._definer.put(Rule(requests=f"{LOWERED}/second"))
        # Exact from the first window that begins after all nodes have said that they go by it.
        exact_us = (known_us // WINDOW_US + 1) * WINDOW_US
        await asyncio.sleep((exact_us - scene.now_us()) / 1e6)
        await self._told("lowered", self._lengths.changed)
        raised_us = scene.now_us()
        self._amounts += [
            Amount(before.amount, before.from_us, exact_us),
            Amount(LOWERED, began_us, None),
            Amount(LIMIT, raised_us, None),
        ]
        scene.stage.say(f"lowered: all nodes went by it after {(known_us - began_us) / 1e6:.1f} s")
        await self._definer.put(_RULE)
        self._surprise(range(len(self._names)), raised_us)
        await self._told("raised", self._lengths.changed)

    # ── What it came to ─────────────────────────────────────────────────────

    async def _figures(self, since_us: int) -> list[Figure]:
        scene, chapters = self._scene, self._chapters
        record = await scene.record(since_us)
        allowance = Allowance(WINDOW_US, self._amounts)
        figures = [
            within(f"10x {name}", record.of(chapter), allowance)
            for name, chapter in chapters.items()
        ]
        figures.append(excess("10x, all chapters", record, allowance))
        most = {"even": 1.0, "skewed": 5.0}
        figures += [
            unused(f"10x {name}", chapters[name], record, allowance, percent)
            for name, percent in most.items()
        ]
        first = self._killed_us // WINDOW_US + 1
        last = chapters["owner killed"].windows(WINDOW_US)[1]
        after = first + _SOON_S
        gone = "10x owner killed"
        figures += [
            worst_unused(f"{gone}, at once", record, allowance, (first, after - 1), 60.0),
            worst_unused(f"{gone}, after 3 s", record, allowance, (after, last), 15.0),
            failures("10x", record, scene.hurt, scene.stage.say),
            repeated("10x", record),
        ]
        headers = read_headers(record.answers, WINDOW_US, self._surprised)
        return [*figures, headed("10x", headers, scene.stage.say)]

    async def _balanced(self) -> list[Figure]:
        """Play a cut under the mode `balanced`; return its figures."""
        scene = self._scene
        await self._definer.begin(replace(_RULE, mode="balanced"))
        since_us = scene.now_us()
        await scene.rate(evenly(self._names, LIMIT * TIMES))
        await scene.chapter("balanced", 2.0)
        await self._cut("balanced cut", self._lengths.balanced)
        await scene.chapter("balanced healed", self._lengths.healed)
        await scene.quiet()
        record = await scene.record(since_us)
        # Two of five that are cut off may each borrow a fifth of what does not stand.
        fair = Allowance(WINDOW_US, [Amount(round(LIMIT * 1.2), since_us)])
        name = "10x balanced cut"
        chapter = self._chapters["balanced cut"]
        return [
            excess(f"{name}, with a fifth more", record, fair),
            within(f"{name}, of 1.2 limits", record.of(chapter), fair),
            failures(name, record, scene.hurt, scene.stage.say),
        ]
