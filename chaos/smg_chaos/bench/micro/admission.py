"""Admission benchmark (`smg-chaos admission`): CPU time of admitting a request under its limits.

An admission is all that every such request pays before it goes on: its limits found by tenant, key
and model, its ticket made, the request charged to all of them, its tokens reserved. Requests come
from some hundred keys, so that finding means looking up. Without limits it is what every request
pays on a node where none are set.

Settling is measured beside it, and so is a refusal. A row's figures are of short bursts; the rows
take turns.
"""

import json
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Annotated, Any, Final

import typer

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.ports import Match, Unit
from smg_node.admission.ticket import Ticket
from smg_node.core.request_context import RequestContext

_BURST: Final = 64
_KEYS: Final = 200
_MINUTE_MS: Final = 60_000
_ENOUGH: Final = 1 << 50
_REQUESTS: Final[tuple[tuple[str, Unit, int], ...]] = (
    ("tenant", "requests", _MINUTE_MS),
    ("tenant", "requests", 1_000),
    ("tenant", "concurrent", 0),
    ("model", "requests", _MINUTE_MS),
    ("tenant", "requests", 86_400_000),
    ("", "requests", _MINUTE_MS),
)
_TOKENS: Final[tuple[tuple[str, Unit, int], ...]] = (
    ("tenant", "tokens", _MINUTE_MS),
    ("tenant", "tokens", 86_400_000),
    ("model", "tokens", _MINUTE_MS),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One row: how many limits a request meets when it enters, and how many when its tokens are known."""

    name: str
    requests: int = 0
    tokens: int = 0
    left: int = _ENOUGH


CASES: Final = (
    Case("no limits"),
    Case("1 limit", 1),
    Case("3 limits", 3),
    Case("6 limits", 6),
    Case("3 limits, 1 of tokens", 2, 1),
    Case("6 limits, 3 of tokens", 3, 3),
    Case("refused by 1 of 3", 3, left=0),
)


@dataclass(frozen=True, slots=True)
class _Limit:
    key: str
    scope: str
    unit: Unit
    window_ms: int
    reserve: str = "estimate"
    on_exhausted: str = "debt"
    cached_weight: float = 1.0


class _Share:
    """A share as the cluster's: attributes and nothing else."""

    __slots__ = (
        "amount",
        "debt",
        "ends_ms",
        "key",
        "left",
        "low",
        "next_ms",
        "offered",
        "pool",
        "spent",
        "state",
        "wants_more",
        "window",
        "window_ms",
    )

    def __init__(self, limit: _Limit, left: int) -> None:
        self.key, self.window_ms = limit.key, limit.window_ms
        self.amount = _ENOUGH
        self.left = left
        self.low = self.window = self.debt = self.spent = self.offered = self.pool = 0
        self.next_ms = 0
        self.ends_ms = limit.window_ms
        self.wants_more = False
        self.state = "exact"


class Scene:
    """State of one case, which continues from round to round."""

    version = 1

    def __init__(self, case: Case, seed: int = 1) -> None:
        self._case = case
        self._shares: dict[str, Any] = {}
        self._door = Admission(self, self, clock=self, rng=Random(seed))
        self._contexts = [
            RequestContext("r", 0.0, 600.0, tenant=f"tenant-{at % 20}", key_id=f"key{at}")
            for at in range(_KEYS)
        ]
        Random(seed).shuffle(self._contexts)
        self._at = 0

    # ── What admission asks ──────────────────────────────────────────────────

    def of_provider(self, provider: str) -> Sequence[Match]:
        """See `Rules`."""
        return ()

    def of_tool(self, tenant: str, key_id: str, model: str, tool: str) -> Sequence[Match]:
        """See `Rules`."""
        return ()

    def matching(self, tenant: str, key_id: str, model: str) -> Sequence[Match]:
        """See `Rules`."""
        names = {"tenant": f"tenant={tenant}", "model": f"model={model}", "": ""}
        limits = [
            *(_REQUESTS[: self._case.requests]),
            *(_TOKENS[: self._case.tokens]),
        ]
        found: list[Any] = []
        for kind, unit, window_ms in limits:
            scope = names[kind]
            limit = _Limit(f"{scope}#{unit}/{window_ms}", scope, unit, window_ms)
            self._shares.setdefault(limit.key, _Share(limit, self._case.left))
            found.append(limit)
        return found

    def share(self, key: str) -> Any:
        """See `Rights`."""
        return self._shares.get(key)

    async def refilled(self, share: Any, cost: int, within_s: float) -> bool:
        """See `Rights`."""
        return False

    def now_ms(self) -> int:
        """See `Clock`."""
        return 0

    def monotonic_s(self) -> float:
        """See `Clock`."""
        return 0.0

    # ── Time ─────────────────────────────────────────────────────────────────

    def burst(self) -> tuple[float, float]:
        """Admit some requests and settle them; return the CPU time of each, in seconds."""
        contexts = [self._next() for _ in range(_BURST)]
        tickets: list[Ticket] = []
        start_ns = time.thread_time_ns()
        _run(self._enter(contexts, tickets))
        entered_ns = time.thread_time_ns()
        for ticket in tickets:
            if ticket is not None:
                ticket.settle(1_000, 0, 300, complete=True)
        ended_ns = time.thread_time_ns()
        return (entered_ns - start_ns) / _BURST / 1e9, (ended_ns - entered_ns) / _BURST / 1e9

    async def _enter(self, contexts: Sequence[RequestContext], tickets: list[Ticket]) -> None:
        """Admit them one after the other with `await`, as request handling does; mostly nothing
        waits.
        """
        for context in contexts:
            ticket = self._door.ticket(context, "model")
            if ticket is None:
                continue
            try:
                await ticket.enter()
                if ticket.metered:
                    await ticket.reserve(1_000, 500)
            except LimitedError:
                ticket.void()
                continue
            tickets.append(ticket)

    def _next(self) -> RequestContext:
        self._at = (self._at + 1) % _KEYS
        return self._contexts[self._at]


def _run(entering: Coroutine[Any, Any, None]) -> None:
    """Run what never waits, without a loop."""
    try:
        entering.send(None)
    except StopIteration:
        return
    raise AssertionError("nobody waits here")


def measure(
    cases: Sequence[Case],
    *,
    rounds: int,
    bursts: int,
    scene: Callable[[Case], Scene] = Scene,
) -> list[dict[str, Any]]:
    """Return a row for each case: the median of its rounds' medians, the best and the worst of those."""
    scenes = [scene(case) for case in cases]
    for one in scenes:
        for _ in range(bursts):
            one.burst()
    entering: list[list[float]] = [[] for _ in scenes]
    settling: list[list[float]] = [[] for _ in scenes]
    for _ in range(rounds):
        for one, enter, settle in zip(scenes, entering, settling, strict=True):
            times = [one.burst() for _ in range(bursts)]
            enter.append(1e6 * median(entered for entered, _ in times))
            settle.append(1e6 * median(settled for _, settled in times))
    return [
        {
            "case": case.name,
            "median_us": median(enter),
            "best_us": min(enter),
            "worst_us": max(enter),
            "settle_us": median(settle),
        }
        for case, enter, settle in zip(cases, entering, settling, strict=True)
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as text."""
    lines = ["CPU us of an admission: median of the rounds' medians (best to worst round)"]
    for row in rows:
        spread = f"{row['best_us']:.2f} to {row['worst_us']:.2f}"
        lines.append(
            f"  {row['case']:24} {row['median_us']:6.2f} ({spread:14}),"
            f" settled in {row['settle_us']:5.2f}"
        )
    return "\n".join(lines)


def admission(
    rounds: Annotated[int, typer.Option(help="rounds in which all rows take turns", min=1)] = 9,
    bursts: Annotated[int, typer.Option(help="of 64 requests, in a round of a row", min=1)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure what it costs to let a request in, with none to six limits that apply to it."""
    rows = measure(CASES, rounds=rounds, bursts=bursts)
    print(json.dumps(rows, indent=2) if as_json else table(rows))


app: Final = typer.Typer(add_completion=False)
app.command(name="admission")(admission)
