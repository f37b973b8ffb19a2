"""View of an interval: cluster totals, and a line for every node, model, worker, tenant, limit.

None stands for the unknown, such as a rate before the second look. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from smg_node.admin.top.interval import NODE, TOGETHER, Interval, quantile
from smg_node.admin.top.snapshot import LimitCount, NodeCounts, WorkerCard

_HALF: Final = 0.5
_MOST: Final = 0.95
_OPEN: Final = 2.0
"""What an open breaker says of itself."""
_TOKENS: Final = ("prompt_tokens", "completion_tokens")

INFLIGHT: Final = "smg_node_http_requests_inflight"
GENERATIONS: Final = "smg_node_generations_total"
TTFT: Final = "smg_node_time_to_first_token_seconds"
TPOT: Final = "smg_node_time_per_output_token_seconds"
PROMPT: Final = "smg_node_prompt_tokens_total"
CACHED: Final = "smg_node_prompt_tokens_cached_total"
ANSWER: Final = "smg_node_completion_tokens_total"
QUEUE: Final = "smg_node_queue_waiting"
WORKERS: Final = "smg_node_workers"
BREAKER: Final = "smg_node_worker_breaker_state"
PROCESSES: Final = "smg_node_processes_linked"
CPU: Final = "process_cpu_seconds_total"
MEMORY: Final = "process_resident_memory_bytes"
STALLS: Final = "smg_node_loop_stalls_total"


@dataclass(frozen=True, slots=True)
class Flow:
    """Traffic per second; times in seconds, `cached` a part of the prompts' tokens.

    `requests` are generations: what probes, scrapes and operators ask for is no work.
    """

    requests: float | None
    failed: float | None
    refused: float | None
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    tpot_p50_s: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    cached: float | None


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node. `state` is ready, or why it is not; `note` is what else an operator should know."""

    name: str
    state: str
    open: float | None
    queue: float | None
    flow: Flow
    cpu: float | None
    """Processors that it keeps busy."""
    memory_bytes: float | None
    processes: int | None
    stalls: float | None
    note: str


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One model on all nodes."""

    model: str
    queue: float | None
    flow: Flow


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """One worker: what all nodes together have open there, and what its engine reports."""

    worker: str
    model: str
    status: str
    role: str
    open: float | None
    running: float | None
    waiting: float | None
    kv_usage: float | None
    breakers: int
    """On how many nodes its breaker is open."""


@dataclass(frozen=True, slots=True)
class TenantLine:
    """One tenant on all nodes, in a second. `total_tokens` is since the nodes began."""

    tenant: str
    requests: float | None
    refused: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    cached: float | None
    total_tokens: float


@dataclass(frozen=True, slots=True)
class LimitLine:
    """One limit: `used` is the part of it that is spent in this window."""

    limit: str
    unit: str
    window_s: float
    amount: int
    spent: int
    left: int
    used: float
    state: str
    ends_ms: int


@dataclass(frozen=True, slots=True)
class View:
    """The whole view. `workers` and `limits` are None where they were not asked for."""

    node: str
    total: Flow
    open: float | None
    queue: float | None
    workers_ready: int
    workers_total: int
    nodes: Sequence[NodeLine]
    models: Sequence[ModelLine]
    workers: Sequence[WorkerLine] | None
    tenants: Sequence[TenantLine]
    limits: Sequence[LimitLine] | None


def view_of(interval: Interval) -> View:
    """Return the view of an interval."""
    now = interval.now
    status = {"status": "ready"}
    here = now.node
    inflight = _inflight(interval)
    return View(
        node=here,
        total=_flows(interval, TOGETHER)(TOGETHER),
        open=sum(inflight.values()) if inflight else None,
        queue=interval.sums(QUEUE).get(TOGETHER),
        workers_ready=int(interval.sums(WORKERS, NODE, **status).get(here, 0)),
        workers_total=int(interval.sums(WORKERS, NODE).get(here, 0)),
        nodes=list(_node_lines(interval)),
        models=list(_model_lines(interval)),
        workers=None if now.workers is None else list(_worker_lines(interval, now.workers)),
        tenants=list(_tenant_lines(interval)),
        limits=None if now.limits is None else [_limit_line(limit) for limit in now.limits],
    )


def _inflight(interval: Interval) -> dict[str, float]:
    """Return what each node is answering, without this very query at the queried node."""
    found = interval.sums(INFLIGHT, NODE)
    here = interval.now.node
    return found | ({here: max(0.0, found[here] - 1)} if here in found else {})


def _flows(interval: Interval, by: str) -> Callable[[str], Flow]:
    """Return a function from a group to its traffic."""
    requests = _rates(interval, GENERATIONS, by)
    failed = _rates(interval, GENERATIONS, by, outcome="failed")
    refused = _rates(interval, GENERATIONS, by, outcome="refused")
    prompt, cached = _rates(interval, PROMPT, by), _rates(interval, CACHED, by)
    answer = _rates(interval, ANSWER, by)
    first, each = interval.spreads(TTFT, by), interval.spreads(TPOT, by)

    def flow(group: str) -> Flow:
        return Flow(
            requests=requests(group),
            failed=failed(group),
            refused=refused(group),
            ttft_p50_s=quantile(interval.bounds(TTFT), first.get(group, ()), _HALF),
            ttft_p95_s=quantile(interval.bounds(TTFT), first.get(group, ()), _MOST),
            tpot_p50_s=quantile(interval.bounds(TPOT), each.get(group, ()), _HALF),
            prompt_tokens=prompt(group),
            completion_tokens=answer(group),
            cached=_part(cached(group), prompt(group)),
        )

    return flow


def _rates(interval: Interval, name: str, by: str, **wanted: str) -> Callable[[str], float | None]:
    """Return a function from a group to its rate of a counter: None where it has no series."""
    known, rates = interval.seen_twice, interval.rates(name, by, **wanted)

    def rate(group: str) -> float | None:
        return rates.get(group, 0.0) if (group in known if by == NODE else known) else None

    return rate


def _node_lines(interval: Interval) -> Iterator[NodeLine]:
    flow = _flows(interval, NODE)
    inflight, queue = _inflight(interval), interval.sums(QUEUE, NODE)
    processes = interval.sums(PROCESSES, NODE)
    memory = interval.sums(MEMORY, NODE)
    cpu, stalls = _rates(interval, CPU, NODE), _rates(interval, STALLS, NODE)
    for name, counts in sorted(interval.now.nodes.items()):
        yield NodeLine(
            name=name,
            state=_state(counts),
            open=inflight.get(name),
            queue=None if counts.silent else queue.get(name, 0.0),
            flow=flow(name),
            cpu=cpu(name),
            memory_bytes=memory.get(name),
            processes=None if counts.silent else int(processes.get(name, 0)),
            stalls=stalls(name),
            note=counts.silent or "; ".join((*counts.reasons, *counts.degraded)),
        )


def _state(counts: NodeCounts) -> str:
    if counts.state != "alive":
        return counts.state
    if counts.silent:
        return "silent"
    if counts.draining:
        return "draining"
    return "ready" if counts.ready else "not ready"


def _model_lines(interval: Interval) -> Iterator[ModelLine]:
    flow, queue = _flows(interval, "model"), interval.sums(QUEUE, "model")
    for model in sorted(interval.sums(GENERATIONS, "model").keys() | queue.keys()):
        yield ModelLine(model, queue.get(model, 0.0), flow(model))


def _worker_lines(interval: Interval, cards: Sequence[WorkerCard]) -> Iterator[WorkerLine]:
    inflight = interval.sums("smg_node_worker_inflight", "worker")
    # All nodes got the same from an engine, some of them earlier.
    running = interval.largest("smg_node_engine_running_requests", "worker")
    waiting = interval.largest("smg_node_engine_waiting_requests", "worker")
    kv_usage = interval.largest("smg_node_engine_kv_usage_ratio", "worker")
    breakers = Counter(
        worker
        for node in interval.now.nodes.values()
        for (worker, *_), values in node.rows.get(BREAKER, {}).items()
        if values[0] == _OPEN
    )
    for card in cards:
        yield WorkerLine(
            worker=card.url,
            model=card.model,
            status=card.status,
            role=card.role,
            open=inflight.get(card.url),
            running=running.get(card.url),
            waiting=waiting.get(card.url),
            kv_usage=kv_usage.get(card.url),
            breakers=breakers[card.url],
        )


def _tenant_lines(interval: Interval) -> Iterator[TenantLine]:
    def rates(what: str) -> Callable[[str], float | None]:
        return _rates(interval, _used(what), "tenant")

    totals = [interval.sums(_used(what), "tenant") for what in _TOKENS]
    requests, refused = rates("requests"), rates("refused")
    prompt, answer, cached = (
        rates("prompt_tokens"),
        rates("completion_tokens"),
        rates("cached_tokens"),
    )
    for tenant in sorted(interval.sums(_used("requests"), "tenant")):
        yield TenantLine(
            tenant=tenant,
            requests=requests(tenant),
            refused=refused(tenant),
            prompt_tokens=prompt(tenant),
            completion_tokens=answer(tenant),
            cached=_part(cached(tenant), prompt(tenant)),
            total_tokens=sum(total.get(tenant, 0.0) for total in totals),
        )


def _used(what: str) -> str:
    return f"smg_node_usage_{what}_total"


def _limit_line(limit: LimitCount) -> LimitLine:
    return LimitLine(
        limit=limit.key.partition("#")[0] or "global",
        unit=limit.unit,
        window_s=limit.window_s,
        amount=limit.amount,
        spent=limit.spent,
        left=limit.left,
        used=limit.spent / limit.amount if limit.amount else 1.0,
        state=limit.state,
        ends_ms=limit.ends_ms,
    )


def _part(some: float | None, whole: float | None) -> float | None:
    return None if some is None or not whole else some / whole
