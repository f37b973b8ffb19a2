"""Surprises: unexpected errors, each kept with the faults and log lines around its moment.

Of each the wall clock's time is kept, and how long the nodes' logs were just then: what a node said around that moment is
found by its place in the log, also where the fault of the moment was the clock that stamps its lines.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from smg_chaos.gameday.whole.fault_record import Happened

OF_A_KIND_MAX: Final = 20
"""More of one kind say nothing new."""
_JUST_OVER_S: Final = 15.0
"""So long after its end a fault may still explain something: most of what nodes and clients wait for is shorter."""
_BEFORE_BYTES: Final = 8192
_AFTER_BYTES: Final = 4096
_BEFORE: Final = 8
_AFTER: Final = 4
_LINE_MAX: Final = 400


@dataclass(frozen=True, slots=True)
class Surprise:
    """One unexpected error.

    Times are seconds on the cluster's clock; `logs`: how many bytes each node had logged.
    """

    kind: str
    node: str
    says: str
    begun_s: float
    ended_s: float
    wall_ms: int
    logs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Story:
    """A surprise with what was around it. Times are seconds since the day began; `at` is the wall clock's, UTC."""

    kind: str
    node: str
    says: str
    at: str
    begun_s: float
    ended_s: float
    faults: tuple[str, ...]
    """What went wrong then, or was just over."""
    logged: tuple[str, ...]
    """The lines of each node that is named, before and after that moment, with the node's name before them."""


class Surprises:
    """All surprises of a day, up to `OF_A_KIND_MAX` of a kind.

    `logs` are the nodes' own, by name.
    """

    def __init__(
        self,
        logs: Mapping[str, Path] | None = None,
        *,
        now_s: Callable[[], float] = lambda: 0.0,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.noted: list[Surprise] = []
        self._logs: Final = dict(logs or {})
        self._now_s = now_s
        self._now_ms = now_ms
        self._counts: Counter[str] = Counter()

    def note(self, kind: str, node: str, says: str, begun_s: float) -> None:
        """Note that something which began at `begun_s` has just gone wrong. `node` "": at none, or not known at which."""
        self._counts[kind] += 1
        if self._counts[kind] > OF_A_KIND_MAX:
            return
        logs = {name: _bytes(log) for name, log in self._logs.items()}
        now_s, now_ms = self._now_s(), self._now_ms()
        self.noted.append(Surprise(kind, node, says, begun_s, now_s, now_ms, logs))

    def told(self, faults: Sequence[Happened], day_begun_s: float) -> list[Story]:
        """Return all in order of time, each with the faults and the log's lines around it."""
        return [
            Story(
                *(one.kind, one.node, one.says),
                datetime.fromtimestamp(one.wall_ms / 1000, UTC).isoformat(timespec="milliseconds"),
                round(one.begun_s - day_begun_s, 3),
                round(one.ended_s - day_begun_s, 3),
                around(faults, one.begun_s, one.ended_s),
                self._logged(one),
            )
            for one in sorted(self.noted, key=lambda one: one.ended_s)
        ]

    def _logged(self, one: Surprise) -> tuple[str, ...]:
        """Return what the nodes said that are named: whose surprise it was, and who is told of in its words."""
        named = [name for name in self._logs if name == one.node or name in one.says]
        return tuple(
            f"{name}: {line}"
            for name in named
            for line in lines_around(self._logs[name], one.logs[name])
        )


def around(faults: Sequence[Happened], begun_s: float, ended_s: float) -> tuple[str, ...]:
    """Return in words which faults were on between two moments, or just over at the first, in order of their beginning."""
    found = []
    for fault in sorted(faults, key=lambda fault: fault.begun_s):
        if fault.begun_s > ended_s or begun_s - fault.ended_s > _JUST_OVER_S + (fault.heals_s or 0):
            continue
        since_s = ended_s - fault.begun_s
        over_s = ended_s - fault.ended_s
        how = f"over for {over_s:.1f} s" if over_s > 0 else "still on"
        found.append(f"{fault.told}: begun {since_s:.1f} s before, {how}")
    return tuple(found)


def lines_around(log: Path, at: int) -> list[str]:
    """Return the last lines before a place in a log and the first after it, shortened; none if it cannot be read."""
    from_byte = max(0, at - _BEFORE_BYTES)
    try:
        with log.open("rb") as file:
            file.seek(from_byte)
            before = file.read(at - from_byte)
            after = file.read(_AFTER_BYTES)
    except OSError:
        return []
    # What is cut at either end of the piece is no line.
    earlier = before.split(b"\n")[1 if from_byte else 0 : -1]
    later = (before.rpartition(b"\n")[2] + after).split(b"\n")
    if later and len(after) == _AFTER_BYTES:
        later.pop()
    kept = [*earlier[-_BEFORE:], *later[:_AFTER]]
    return [line.decode(errors="replace")[:_LINE_MAX] for line in kept if line]


def _bytes(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0
