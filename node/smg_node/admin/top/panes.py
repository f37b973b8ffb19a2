"""Panes of the screen: all four, the tables of each, and the rank of their columns. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from smg_node.admin.top.number_text import format_bytes, format_number, format_part, format_time
from smg_node.admin.top.table import Column
from smg_node.admin.top.terminal_lines import Style
from smg_node.admin.top.view import (
    Flow,
    LimitLine,
    ModelLine,
    NodeLine,
    TenantLine,
    View,
    WorkerLine,
)

_MILLION: Final = 1_000_000
_NEARLY: Final = 0.8
"""From here on a limit, or an engine's memory, is worth a look."""
_WINDOWS: Final = {1.0: "second", 60.0: "minute", 3_600.0: "hour", 86_400.0: "day"}
_STATES: Final[dict[str, Style]] = {
    "ready": "good",
    "draining": "warning",
    "suspect": "warning",
    "not ready": "bad",
    "silent": "bad",
    "dead": "bad",
}


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a pane. `sort` is the title of the column it is sorted by at first, `empty` what stands for no row.

    `rows` are None where they were not asked for.
    """

    columns: Sequence[Column[Any]]
    rows: Callable[[View], Sequence[Any] | None]
    sort: str
    empty: str


@dataclass(frozen=True, slots=True)
class Pane:
    """One pane, called by its number or its name."""

    name: str
    title: str
    sections: Sequence[Section]

    def titles(self) -> list[str]:
        """Return the titles of the columns that it can be sorted by."""
        titles = (column.title for section in self.sections for column in section.columns)
        return list(dict.fromkeys(titles))


def _state(state: str) -> Style:
    return _STATES.get(state, "")


def _full(part: float | None) -> Style:
    if part is None or part < _NEARLY:
        return ""
    return "bad" if part >= 1 else "warning"


def _above(value: float | None) -> Style:
    return "bad" if value else ""


def _flow(
    title: str,
    by: Callable[[Flow], float | None],
    say: Callable[[float | None], str] = format_number,
    *,
    rank: int = 0,
    bad: bool = False,
) -> Column[NodeLine | ModelLine]:
    return Column(
        title=title,
        by=lambda row: by(row.flow),
        say=say,
        rank=rank,
        style=(lambda row: _above(by(row.flow))) if bad else (lambda row: ""),
    )


_NODES: Final[Sequence[Column[NodeLine]]] = (
    Column(title="NODE", by=lambda row: row.name, name=True, least=16),
    Column(title="STATE", by=lambda row: row.state, name=True, style=lambda row: _state(row.state)),
    Column(title="OPEN", by=lambda row: row.open, say=format_number),
    _flow("REQ/S", lambda flow: flow.requests),
    _flow("TTFT50", lambda flow: flow.ttft_p50_s, format_time),
    _flow("TTFT95", lambda flow: flow.ttft_p95_s, format_time),
    _flow("OUT/S", lambda flow: flow.completion_tokens),
    _flow("IN/S", lambda flow: flow.prompt_tokens, rank=2),
    _flow("FAIL/S", lambda flow: flow.failed, rank=1, bad=True),
    Column(title="CPU", by=lambda row: row.cpu, say=format_part, rank=3),
    Column(title="MEM", by=lambda row: row.memory_bytes, say=format_bytes, rank=4),
    _flow("CACHED", lambda flow: flow.cached, format_part, rank=8),
    Column(title="QUEUE", by=lambda row: row.queue, say=format_number, rank=5),
    _flow("REFUSED/S", lambda flow: flow.refused, rank=6),
    _flow("TPOT50", lambda flow: flow.tpot_p50_s, format_time, rank=7),
    Column(title="PROCS", by=lambda row: row.processes, say=format_number, rank=9),
    Column(
        title="STALLS/S",
        by=lambda row: row.stalls,
        say=format_number,
        rank=10,
        style=lambda row: _above(row.stalls),
    ),
)

_MODELS: Final[Sequence[Column[ModelLine]]] = (
    Column(title="MODEL", by=lambda row: row.model, name=True, least=24),
    _flow("REQ/S", lambda flow: flow.requests),
    _flow("TTFT50", lambda flow: flow.ttft_p50_s, format_time),
    _flow("TTFT95", lambda flow: flow.ttft_p95_s, format_time),
    _flow("TPOT50", lambda flow: flow.tpot_p50_s, format_time, rank=2),
    _flow("OUT/S", lambda flow: flow.completion_tokens),
    _flow("IN/S", lambda flow: flow.prompt_tokens, rank=1),
    _flow("CACHED", lambda flow: flow.cached, format_part, rank=5),
    _flow("FAIL/S", lambda flow: flow.failed, rank=4, bad=True),
    _flow("REFUSED/S", lambda flow: flow.refused, rank=6),
    Column(title="QUEUE", by=lambda row: row.queue, say=format_number, rank=3),
)

_WORKERS: Final[Sequence[Column[WorkerLine]]] = (
    Column(title="WORKER", by=lambda row: row.worker, name=True, least=32),
    Column(
        title="STATUS", by=lambda row: row.status, name=True, style=lambda row: _state(row.status)
    ),
    Column(title="MODEL", by=lambda row: row.model or None, name=True),
    Column(title="ROLE", by=lambda row: row.role, name=True, rank=4),
    Column(title="OPEN", by=lambda row: row.open, say=format_number),
    Column(title="RUNNING", by=lambda row: row.running, say=format_number, rank=2),
    Column(title="WAITING", by=lambda row: row.waiting, say=format_number, rank=1),
    Column(
        title="KV",
        by=lambda row: row.kv_usage,
        say=format_part,
        style=lambda row: _full(row.kv_usage),
    ),
    Column(
        title="BREAKERS",
        by=lambda row: row.breakers,
        say=format_number,
        rank=3,
        style=lambda row: _above(row.breakers),
    ),
)

_TENANTS: Final[Sequence[Column[TenantLine]]] = (
    Column(title="TENANT", by=lambda row: row.tenant, name=True, least=24),
    Column(title="REQ/S", by=lambda row: row.requests, say=format_number),
    Column(
        title="REFUSED/S",
        by=lambda row: row.refused,
        say=format_number,
        style=lambda row: "warning" if row.refused else "",
    ),
    Column(title="OUT/S", by=lambda row: row.completion_tokens, say=format_number),
    Column(title="IN/S", by=lambda row: row.prompt_tokens, say=format_number),
    Column(title="CACHED", by=lambda row: row.cached, say=format_part, rank=2),
    Column(title="TOKENS", by=lambda row: row.total_tokens, say=format_number, rank=1),
)


def _window(line: LimitLine) -> str:
    if not line.window_s:
        return "at a time"
    return f"{line.unit}/{_WINDOWS.get(line.window_s) or format_time(line.window_s)}"


def _shown(line: LimitLine, amount: int) -> float:
    """Return an amount as it was typed: cost in the currency."""
    return amount / _MILLION if line.unit == "cost" else amount


def _say_left(amount: float | None) -> str:
    """Return what is left as text; unknown at a node that spends its own part and receives no
    reports.
    """
    return format_number(None if amount is None or amount < 0 else amount)


_LIMITS: Final[Sequence[Column[LimitLine]]] = (
    Column(title="LIMIT", by=lambda row: row.limit, name=True, least=32),
    Column(title="PER", by=_window, name=True),
    Column(
        title="USED", by=lambda row: row.used, say=format_part, style=lambda row: _full(row.used)
    ),
    Column(title="SPENT", by=lambda row: _shown(row, row.spent), say=format_number, rank=1),
    Column(title="OF", by=lambda row: _shown(row, row.amount), say=format_number),
    Column(title="LEFT", by=lambda row: _shown(row, row.left), say=_say_left, rank=2),
    Column(title="COUNTED", by=lambda row: row.state, name=True, rank=3),
)


PANES: Final[Sequence[Pane]] = (
    Pane("nodes", "nodes", (Section(_NODES, lambda view: view.nodes, "NODE", "No node."),)),
    Pane(
        "workers",
        "models, workers",
        (
            Section(_MODELS, lambda view: view.models, "OUT/S", "No model was asked for yet."),
            Section(_WORKERS, lambda view: view.workers, "OPEN", "There is no worker."),
        ),
    ),
    Pane(
        "tenants",
        "tenants",
        (Section(_TENANTS, lambda view: view.tenants, "OUT/S", "Nothing was used yet."),),
    ),
    Pane(
        "limits",
        "limits",
        (Section(_LIMITS, lambda view: view.limits, "USED", "No limit is in use."),),
    ),
)
