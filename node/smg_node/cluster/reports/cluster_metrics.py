"""Cluster metrics: counters of every living node, collected by any of them; silent nodes are named.

Counts are returned as they are, since the start of a node, and never as rates: a client that asks
twice has those by the difference, over whatever time it likes, and no node remembers its clients. A
node of several processes returns the sum of all of them. Only the metrics that are asked for are
read, which costs about a third of a scrape.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec
from prometheus_client.metrics_core import Metric as Family

from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.cluster_metrics import ClusterNumbers, NodeNumbers, NumberRow
from smg_node.http.ports.node import Health, MemberRow
from smg_node.telemetry.metrics.cluster_metrics import KNOWN
from smg_node.telemetry.metrics.meters import Meters
from smg_node.telemetry.metrics.metric import Metric

NUMBERS: Final = "node.numbers"
ASK_S: Final = 2.0
ASKING_MAX: Final = 8
"""Answers at a time on one node: each may be a megabyte from each of its peers."""
ANSWER_BYTES_MAX: Final = 900_000
"""Of a peer's answer; its transport takes a million."""
REASONS_MAX: Final = 8
_ASKED_AT_ONCE_MAX: Final = 32
_LIVING: Final = ("alive", "suspect")
_MISUNDERSTOOD: Final = "it says nothing that is understood here"

Read: TypeAlias = Callable[[Collection[str]], Awaitable[Iterable[Family]]]
"""Reads the metrics of these names, of all processes of this node."""


class Numbers:
    """Collects all nodes' metrics. `members` are all members; without a mesh this node is alone.

    `health` is this node's health, `now_s` its monotonic clock.
    """

    def __init__(
        self,
        name: str,
        version: str,
        read: Read,
        members: Callable[[], Sequence[MemberRow]],
        mesh: MemberQueries | None,
        *,
        health: Callable[[], Health],
        now_s: Callable[[], float],
    ) -> None:
        self._name = name
        self._version = version
        self._read = read
        self._members = members
        self._mesh = mesh
        self._health = health
        self._now_s = now_s
        self._asking = 0
        if mesh is not None:
            mesh.answer(NUMBERS, self._asked)

    async def numbers(self, names: Collection[str]) -> ClusterNumbers:
        """See `MetricsService`."""
        if self._asking >= ASKING_MAX:
            raise SmgError(
                ErrorKind.OVERLOADED,
                "too many ask for what all nodes count at the same time",
                retry_after_s=1.0,
            )
        self._asking += 1
        try:
            others = sorted(
                row.name for row in self._members() if row.state in _LIVING and not row.me
            )
            here, *answers = await asyncio.gather(self._here(names), *self._ask_all(others, names))
        finally:
            self._asking -= 1
        said = {self._name: here, **dict(zip(others, answers, strict=True))}
        return ClusterNumbers(
            nodes={name: one for name, one in said.items() if isinstance(one, NodeNumbers)},
            silent={name: one for name, one in said.items() if isinstance(one, str)},
        )

    async def _here(self, names: Collection[str]) -> NodeNumbers:
        families = await self._read(names)
        health = self._health()
        return NodeNumbers(
            version=self._version,
            at_s=self._now_s(),
            ready=health.ready,
            draining=health.draining,
            reasons=health.reasons[:REASONS_MAX],
            degraded=health.degraded[:REASONS_MAX],
            rows=rows_of(families, names),
        )

    # ── Elsewhere ────────────────────────────────────────────────────────────

    def _ask_all(
        self, others: Sequence[str], names: Collection[str]
    ) -> list[Awaitable[NodeNumbers | str]]:
        turns = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)
        payload = msgspec.msgpack.encode(sorted(names))

        async def ask(name: str) -> NodeNumbers | str:
            async with turns:
                return await self._ask(name, payload)

        return [ask(name) for name in others]

    async def _ask(self, name: str, payload: bytes) -> NodeNumbers | str:
        if self._mesh is None:
            return "this node runs alone"
        try:
            answer = await query_member(self._mesh, name, NUMBERS, payload, deadline_s=ASK_S)
            return msgspec.msgpack.decode(answer, type=NodeNumbers)
        except SmgError as error:
            return error.message.removeprefix(f"{name}: ")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _MISUNDERSTOOD

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer; metrics that this version does not have are left out."""
        try:
            names = msgspec.msgpack.decode(payload, type=frozenset[str])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            names = frozenset()
        said = await self._here(names & KNOWN.keys())
        answer = msgspec.msgpack.encode(said)
        while len(answer) > ANSWER_BYTES_MAX:
            said = _halved(said)
            answer = msgspec.msgpack.encode(said)
        return answer


def own_numbers(meters: Meters) -> Read:
    """Return a reader of this process's metrics only."""

    async def read(names: Collection[str]) -> Iterable[Family]:
        return meters.families(names)

    return read


def rows_of(families: Iterable[Family], names: Collection[str]) -> dict[str, list[NumberRow]]:
    """Return the series of the metrics of these names, as they travel."""
    by_family = {name.removesuffix("_total"): KNOWN[name] for name in names}
    rows: dict[str, list[NumberRow]] = {}
    for family in families:
        metric = by_family.get(family.name.removesuffix("_total"))
        if metric is None:
            continue
        found = _spreads(metric, family) if metric.kind == "histogram" else _tallies(metric, family)
        rows[metric.name] = rows.get(metric.name, []) + found
    return rows


def _tallies(metric: Metric, family: Family) -> list[NumberRow]:
    return [
        NumberRow([one.labels.get(label, "") for label in metric.labels], [one.value])
        for one in family.samples
    ]


def _spreads(metric: Metric, family: Family) -> list[NumberRow]:
    """Reassemble the samples of a histogram, which come in the order of their bounds."""
    found: dict[tuple[str, ...], tuple[list[float], list[float]]] = {}
    for one in family.samples:
        labels = tuple(one.labels.get(label, "") for label in metric.labels)
        counts, total = found.setdefault(labels, ([], []))
        if one.name.endswith("_bucket"):
            counts.append(one.value)
        elif one.name.endswith("_sum"):
            total.append(one.value)
    return [NumberRow(labels, [*counts, *total]) for labels, (counts, total) in found.items()]


def _halved(said: NodeNumbers) -> NodeNumbers:
    """Return it without half of the rows of the largest metric."""
    largest = max(said.rows, key=lambda name: len(said.rows[name]))
    kept = len(said.rows[largest]) // 2
    cut = said.cut + len(said.rows[largest]) - kept
    rows = {**said.rows, largest: said.rows[largest][:kept]}
    return msgspec.structs.replace(said, rows=rows, cut=cut)
