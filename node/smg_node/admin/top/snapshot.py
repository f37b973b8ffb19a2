"""Snapshot of the whole cluster at one moment, parsed from a node's answers. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = Mapping[Labels, Sequence[float]]

_MISUNDERSTOOD: Final = "the node says nothing that is understood here; is it of another version?"


class SnapshotError(ValueError):
    """The answers have not the form of a node's; the message is for an operator."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Form of a metric: the names of its labels, and of a histogram its bounds."""

    labels: Sequence[str] = ()
    buckets: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """One node. `admin` is where it answers operators, if that is not where it answers clients: `host:port`, or `unix` for
    a socket of its machine. `silent` is why it reports nothing; then there are no `rows`.

    `at_s` is its own clock. `cut` says that some rows are missing, as they were too many.
    """

    name: str
    state: str
    http: str = ""
    admin: str = ""
    version: str = ""
    silent: str = ""
    at_s: float = 0.0
    ready: bool = False
    draining: bool = False
    reasons: Sequence[str] = ()
    degraded: Sequence[str] = ()
    rows: Mapping[str, Series] = field(default_factory=dict)
    cut: int = 0


@dataclass(frozen=True, slots=True)
class WorkerCard:
    """One worker, as the queried node has it. `url` is its name in metrics."""

    url: str
    model: str
    status: str
    role: str


@dataclass(frozen=True, slots=True)
class LimitCount:
    """What is spent of one limit everywhere, in the window that ends at `ends_ms` of the wall clock; 0 for none."""

    key: str
    unit: str
    window_s: float
    amount: int
    spent: int
    left: int
    state: str
    ends_ms: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at one moment. `workers` and `limits` are None where they were not asked for."""

    node: str
    metrics: Mapping[str, Metric]
    nodes: Mapping[str, NodeCounts]
    workers: Sequence[WorkerCard] | None = None
    limits: Sequence[LimitCount] | None = None


def read_snapshot(numbers: Any, workers: Any | None = None, limits: Any | None = None) -> Snapshot:
    """Return the snapshot in the three answers; SnapshotError where they have another form."""
    try:
        metrics = {
            str(name): Metric(tuple(map(str, said["labels"])), tuple(map(float, said["buckets"])))
            for name, said in numbers["metrics"].items()
        }
        return Snapshot(
            node=str(numbers["node"]),
            metrics=metrics,
            nodes={str(said["name"]): _node(said, metrics) for said in numbers["nodes"]},
            workers=None if workers is None else [_worker(said) for said in workers["workers"]],
            limits=None if limits is None else [_limit(said) for said in limits.get("uses", ())],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotError(_MISUNDERSTOOD) from error


def _node(said: Mapping[str, Any], metrics: Mapping[str, Metric]) -> NodeCounts:
    who = NodeCounts(
        name=str(said["name"]),
        state=str(said["state"]),
        http=str(said["http"]),
        # A node of an older version does not tell.
        admin=str(said.get("admin", "")),
        version=str(said["version"]),
        silent=str(said["silent"]),
    )
    if who.silent:
        return who
    return NodeCounts(
        who.name,
        who.state,
        who.http,
        who.admin,
        who.version,
        at_s=float(said["at_s"]),
        ready=bool(said["ready"]),
        draining=bool(said["draining"]),
        reasons=tuple(map(str, said["reasons"])),
        degraded=tuple(map(str, said["degraded"])),
        rows={str(name): _series(rows, metrics[name]) for name, rows in said["rows"].items()},
        cut=int(said["cut"]),
    )


def _series(rows: Sequence[Mapping[str, Any]], metric: Metric) -> Series:
    """Return the rows by their labels; ValueError for one that has not as many labels and values as it must."""
    found = {tuple(map(str, row["labels"])): tuple(map(float, row["values"])) for row in rows}
    width = len(metric.buckets) + 2 if metric.buckets else 1
    if any(len(labels) != len(metric.labels) for labels in found):
        raise ValueError("labels")
    if any(len(values) != width for values in found.values()):
        raise ValueError("values")
    return found


def _worker(said: Mapping[str, Any]) -> WorkerCard:
    return WorkerCard(
        # Its parameters are not part of what it is called.
        url=str(said["url"]).partition("?")[0],
        model=str(said["model"]),
        status=str(said["status"]),
        role=str(said["role"]),
    )


def _limit(said: Mapping[str, Any]) -> LimitCount:
    return LimitCount(
        key=str(said["key"]),
        unit=str(said["unit"]),
        window_s=int(said["window_ms"]) / 1000,
        amount=int(said["amount"]),
        spent=int(said["spent"]),
        # A node of an older version tells only what nodes have in hand.
        left=int(said.get("remaining", said["left"])),
        state=str(said["state"]),
        ends_ms=int(said["ends_ms"]) if said["window_ms"] else 0,
    )
