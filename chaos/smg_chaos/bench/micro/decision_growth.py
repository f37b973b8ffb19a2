"""Decision growth benchmark (`smg-chaos decision-growth`): CPU time of placing a call, over workers
and open streams.

Everything that placing does for one call is measured: a worker is chosen and the call counted in
(`decision`), its first token comes, it ends, and it is counted out. Around it so many streams are
open, spread over all workers, and stay so. A row may cost more with more workers, which are looked
at one by one; with more streams it may not.
"""

import json
import time
from collections.abc import Sequence
from statistics import median
from typing import Annotated, Any, Final

import typer

from smg_chaos.bench.micro.decision import Case, Scene
from smg_node.pipeline.placement.decider import PlacementAttempt
from smg_node.pipeline.reservation import Reservation

WORKERS: Final = (1, 8, 64)
STREAMS: Final = (1, 64, 1_000)
_BURST: Final = 16
_ROOM: Final = 2
"""Workers have room for so many times the streams: none is full."""


class Crowd(Scene):
    """Some workers with some open streams, which neither continue nor end."""

    def __init__(self, policy: str, workers: int, streams: int) -> None:
        super().__init__(Case(policy, workers, "short", nodes=1))
        self.open: list[Reservation] = []
        for worker in self.workers:
            worker.load.sized(max(64, _ROOM * streams))
        for _ in range(streams):
            hold = self._held()
            hold.spoke(self.now_s)
            self.open.append(hold)

    def burst(self) -> float:
        """Place some calls and see them end; return the CPU time of one, in seconds."""
        holds: list[Reservation] = []
        start_ns = time.thread_time_ns()
        for _ in range(_BURST):
            hold = self._held()
            hold.spoke(self.now_s)
            self._decider.confirmed(hold, self.now_s)
            holds.append(hold)
        for hold in holds:
            hold.ended(self.now_s)
            hold.release(self.now_s)
        took_s = (time.thread_time_ns() - start_ns) / _BURST / 1e9
        self._pass(0.001)
        return took_s

    def _held(self) -> Reservation:
        decider, model, rule, now_s = self._decider, self._model, self._rule, self.now_s
        wish = self._wish()
        stages = decider.stages_for(model, wish, now_s, rule, last=False)
        hold = decider.find(PlacementAttempt(model, wish, stages, rule, now_s), now_s)
        assert hold is not None, "there is room"
        return hold


def measure(policy: str, *, rounds: int, bursts: int) -> list[dict[str, Any]]:
    """Return a row for each number of workers and of streams; they take turns."""
    crowds = [
        (Crowd(policy, workers, streams), workers, streams)
        for workers in WORKERS
        for streams in STREAMS
    ]
    found: list[list[float]] = [[] for _ in crowds]
    for _ in range(rounds):
        for (crowd, _, _), medians in zip(crowds, found, strict=True):
            medians.append(1e6 * median(crowd.burst() for _ in range(bursts)))
    return [
        {
            "policy": policy,
            "workers": workers,
            "streams": streams,
            "median_us": median(medians),
            "best_us": min(medians),
            "worst_us": max(medians),
        }
        for (_, workers, streams), medians in zip(crowds, found, strict=True)
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as text."""
    lines = ["CPU us of a call's placing, from the decision to its end (best to worst round)"]
    lines += [
        f"  {row['policy']:18} {row['workers']:3} workers, {row['streams']:5} streams "
        f"{row['median_us']:6.1f} ({row['best_us']:.1f} to {row['worst_us']:.1f})"
        for row in rows
    ]
    return "\n".join(lines)


def decision_growth(
    policies: Annotated[list[str] | None, typer.Option("--policy", help="these")] = None,
    rounds: Annotated[int, typer.Option(help="rounds in which all rows take turns", min=1)] = 9,
    bursts: Annotated[int, typer.Option(help="of 16 calls, in a round of a row", min=1)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure what placing a call costs, for 1, 8 and 64 workers, and 1, 64 and 1,000 open streams."""
    rows = [
        row
        for policy in policies or ("cache_aware",)
        for row in measure(policy, rounds=rounds, bursts=bursts)
    ]
    print(json.dumps(rows, indent=2) if as_json else table(rows))


app: Final = typer.Typer(add_completion=False)
app.command(name="decision-growth")(decision_growth)
