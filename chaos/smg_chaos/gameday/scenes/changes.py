"""Changes scenario: constant load while workers and settings change and every node restarts.

Clients send 200 requests a second. Meanwhile operators add and remove workers and set settings on
changing nodes, without a pause, and readers compare any node's view of both with what was done.
After half of the time every node is restarted, one after the other, out of the balancer meanwhile.
Memory is sampled in the first and in the last part of both halves: unbounded growth shows there.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Any, Final

from smg_chaos.bench.figures.process_accounting import memory_of
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import (
    MODEL,
    Operator,
    Pool,
    agreed,
    chat_once,
    nodes_of,
    start_engines,
    until,
)
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.change_ledger import Ledger
from smg_chaos.gameday.clients.load import Balancer, Load
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure

REQUESTS_PER_S: Final = 200
_STEADY: Final = 2
"""Engines that are never removed; the others come and go."""
_ENGINES: Final = 5
_TOKENS: Final = 8
_QUESTIONS: Final = tuple(f"Question number {number}?" for number in range(16))
_BETWEEN_CHANGES_S: Final = 0.1
_BETWEEN_LOOKS_S: Final = 0.05
_SAMPLE_S: Final = 2.0
_LIMIT_S: Final = 30.0
_KNOWN_S: Final = 2.0
"""What was acknowledged this long ago is known on all nodes."""
_GROWTH_MAX_MB: Final = 5.0
_LONG_S: Final = 300.0
_FILL: Final = (
    ("workers.retry_s", 1, 2),
    ("stream.keepalive_s", 14, 15),
    ("engine.stall_s", 290, 300),
)
"""Settings that only fill the audit log, one for each node, and what they are set to in turn."""
_FILL_CHANGES: Final = 1_200
"""By each node: twice what it keeps in its log. A log that still fills looks like memory that grows."""
_MB: Final = 1 << 20
_SETTINGS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("routing.policy", ("power_of_two", "random", "round_robin", "consistent_hashing")),
    ("routing.wait_for_worker_s", (2, 3, 4)),
    ("workers.probe_interval_s", (2, 3, 5)),
    ("telemetry.log_level", ("info", "warning")),
    (f"models/{MODEL}/policy", ("round_robin", "random", "power_of_two")),
)


@dataclass
class Doings:
    """Counts of the operators' changes, and of the readers' findings."""

    ledger: Ledger = field(default_factory=lambda: Ledger(_KNOWN_S))
    changes: int = 0
    lost_races: int = 0
    looks: int = 0
    lies: list[str] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        """Return how much was done, and how often a node reported something else."""
        return [
            Figure(
                "changes made", self.changes, "", None, f"{self.lost_races} lost a race, told so"
            ),
            Figure(
                f"nodes that said what had not been true for {_KNOWN_S:.0f} s",
                len(self.lies),
                "",
                0,
                f"of {self.looks}",
            ),
        ]


async def changes(stage: Stage) -> Sequence[Figure]:
    """Send 200 requests a second while everything changes; restart every node in the middle."""
    cluster = stage.cluster
    nodes = nodes_of(cluster)
    await cluster.form()
    pool = await start_engines(cluster, _ENGINES)
    doings, balancer = Doings(), Balancer(nodes)
    now_s = _clock(stage)
    people = _People(balancer, pool, doings, Random(stage.rng.getrandbits(64)), now_s)
    await people.begin()
    await _all_ready(stage, nodes)
    expected = await _expected(nodes)
    if stage.seconds >= _LONG_S:
        await _fill(nodes)
        stage.say(
            f"{_FILL_CHANGES} settings changed on every node: the audit log is as long as it gets"
        )
    load = Load(balancer, REQUESTS_PER_S, _QUESTIONS, expected, tokens=_TOKENS, now_s=now_s)
    async with asyncio.TaskGroup() as group:
        endless: Sequence[Coroutine[Any, Any, None]] = [load.run(), people.change(), people.look()]
        running = [group.create_task(work) for work in endless]
        before = await _memory(nodes, stage.seconds / 2)
        stage.say(f"{load.tally.answers} answers, {doings.changes} changes; now a rolling restart")
        restarted_s = await _rolling_restart(stage, nodes, balancer)
        after = await _memory(nodes, stage.seconds / 2)
        for task in running:
            task.cancel()
    agreed_s = await agreed(cluster, nodes, _LIMIT_S)
    for line in [*load.tally.shown[:5], *doings.lies[:5]]:
        stage.say(f"wrong: {line}")
    size_mb, entries = await Operator(nodes[0]).shared_mb()
    return [
        *load.figures(),
        *doings.figures(),
        Figure("all state agrees after the last change", agreed_s, "s", _KNOWN_S),
        Figure("restarted: ready after, at most", restarted_s, "s"),
        growth("before the restarts", before),
        growth("after the restarts", after),
        Figure("shared state of a node at the end", size_mb, "MB", None, f"{entries} entries"),
    ]


async def _fill(nodes: Sequence[SmgAgent]) -> None:
    """Fill what is bounded to its bounds before anything is measured."""

    async def change(node: SmgAgent, key: str, *values: int) -> None:
        for number in range(_FILL_CHANGES):
            await Operator(node).set(key, values[number % len(values)])

    async with asyncio.TaskGroup() as group:
        for node, plan in zip(nodes, _FILL, strict=False):
            group.create_task(change(node, *plan))


class _People:
    """Operators who change workers and settings, and readers who compare."""

    def __init__(
        self,
        balancer: Balancer,
        pool: Pool,
        doings: Doings,
        rng: Random,
        now_s: Callable[[], float],
    ) -> None:
        self._balancer = balancer
        self._urls = pool.urls
        self._doings = doings
        self._rng = rng
        self._now_s = now_s
        self._ids: dict[str, str] = {}

    async def begin(self) -> None:
        """Register every engine; set nothing."""
        ledger = self._doings.ledger
        for url in self._urls:
            self._ids[url] = await Operator(self._balancer.next()).add(url)
            ledger.know(self._ids[url], value=True, now_s=self._now_s())
        for key, _ in _SETTINGS:
            ledger.know(key, value=None, now_s=self._now_s())

    async def change(self) -> None:
        """Change something, again and again."""
        while True:
            node = self._rng.choice(self._balancer.nodes())
            self._balancer.count(node, 1)
            try:
                await self._change_one(Operator(node))
            finally:
                self._balancer.count(node, -1)
            self._doings.changes += 1
            await asyncio.sleep(_BETWEEN_CHANGES_S * 2 * self._rng.random())

    async def look(self) -> None:
        """Ask any node for the workers or for a setting, again and again."""
        while True:
            node = self._rng.choice(self._balancer.nodes())
            self._balancer.count(node, 1)
            try:
                await self._look_at(node)
            finally:
                self._balancer.count(node, -1)
            await asyncio.sleep(_BETWEEN_LOOKS_S)

    async def _change_one(self, operator: Operator) -> None:
        ledger, rng = self._doings.ledger, self._rng
        if rng.random() < 0.5:
            key, values = rng.choice(_SETTINGS)
            value = rng.choice(values)
            ledger.begin(key, value)
            if await operator.set(key, value) == 409:
                ledger.undone(key)
                self._doings.lost_races += 1
            else:
                ledger.done(key, self._now_s())
            return
        url = rng.choice(self._urls[_STEADY:])
        worker = self._ids[url]
        there = rng.random() < 0.5
        ledger.begin(worker, there)
        if there:
            await operator.add(url)
        elif not await operator.remove(worker):
            # It is not there for this node: an addition elsewhere may be on its way here.
            ledger.undone(worker)
            self._doings.lost_races += 1
            return
        ledger.done(worker, self._now_s())

    async def _look_at(self, node: SmgAgent) -> None:
        ledger, operator, asked_s = self._doings.ledger, Operator(node), self._now_s()
        said: Mapping[str, Any]
        if self._rng.random() < 0.5:
            workers = await operator.workers()
            said = {worker: worker in workers for worker in self._ids.values()}
        else:
            key = self._rng.choice(_SETTINGS)[0]
            said = {key: await operator.setting(key)}
        for name, value in said.items():
            self._doings.looks += 1
            if not ledger.allows(name, value, asked_s):
                self._doings.lies.append(f"{node.name} says that {name} is {value}")


def _clock(stage: Stage) -> Callable[[], float]:
    return lambda: stage.cluster.monotonic_us() / 1e6


async def _expected(nodes: Sequence[SmgAgent]) -> list[str]:
    """Send every question once, to the nodes in turn: the engines' answers depend on it alone."""
    expected: list[str] = []
    for question in _QUESTIONS:
        said: set[str] = set()
        for node in nodes:
            talk = node.client()
            status, text = await chat_once(talk, tokens=_TOKENS, question=question)
            talk.close()
            if status != 200:
                raise ClusterError(f"{node.name} does not answer: {status} {text}")
            said.add(text)
        if len(said) != 1:
            raise ClusterError(f"the engines do not agree on an answer: {sorted(said)}")
        expected += said
    return expected


async def _memory(nodes: Sequence[SmgAgent], seconds: float) -> list[list[float]]:
    """Wait; return samples of every node's memory in MB meanwhile."""
    samples: list[list[float]] = [[] for _ in nodes]
    for _ in range(max(10, round(seconds / _SAMPLE_S))):
        await asyncio.sleep(min(_SAMPLE_S, seconds / 10))
        for node, kept in zip(nodes, samples, strict=True):
            assert node.program is not None
            kept.append(memory_of(node.program.pid).rss / _MB)
    return samples


async def _rolling_restart(
    stage: Stage, nodes: Sequence[SmgAgent], balancer: Balancer
) -> float | None:
    """Restart one after the other; return the longest time from the start to being ready."""
    slowest_s = 0.0
    for node in nodes:
        await balancer.take_out(node)
        assert node.program is not None
        node.signal(signal.SIGTERM)
        if await node.end_of(node.program, _LIMIT_S) != 0:
            raise ClusterError(f"{node.name} does not end well:\n{node.last_words()}")
        others = [other.mesh_address for other in nodes if other is not node]
        since_us = stage.cluster.monotonic_us()
        await stage.cluster.start_apart([node], others)
        await _ready(stage, node)
        balancer.take_back(node)
        taken_s = (stage.cluster.monotonic_us() - since_us) / 1e6
        slowest_s = max(slowest_s, taken_s)
        stage.say(f"{node.name} is back and ready after {taken_s:.2f} s")
    return slowest_s


async def _all_ready(stage: Stage, nodes: Sequence[SmgAgent]) -> None:
    for node in nodes:
        await _ready(stage, node)

        async def usable(node: SmgAgent = node) -> bool:
            states = (await Operator(node).workers()).values()
            return len(states) == _ENGINES and set(states) == {"ready"}

        if await until(stage.cluster, usable, _LIMIT_S) is None:
            raise ClusterError(f"{node.name} does not bring up its workers:\n{node.last_words()}")


async def _ready(stage: Stage, node: SmgAgent) -> None:
    if await until(stage.cluster, Operator(node).ready, _LIMIT_S) is None:
        raise ClusterError(f"{node.name} does not become ready:\n{node.last_words()}")


def growth(when: str, samples: Sequence[Sequence[float]]) -> Figure:
    """Return how much the memory of the node that grew most did, from the second fifth of its samples to the last."""
    fifths = [
        [
            fmean(kept[number * len(kept) // 5 : (number + 1) * len(kept) // 5])
            for number in range(5)
        ]
        for kept in samples
    ]
    worst = max(fifths, key=lambda means: means[4] - means[1])
    says = f"{', '.join(f'{mean:.1f}' for mean in worst)} MB"
    return Figure(f"memory grown per node, {when}", worst[4] - worst[1], "MB", _GROWTH_MAX_MB, says)
