"""Judge of a limit: can the arrivals at the engines have been admitted under it (Hall's theorem)?
Pure.

A request is charged to one numbered window, at some moment between its sending by the client and
its first arrival at an engine. Where both lie in the same window, there is no doubt; where they do
not (it crossed a border on its way, or stood in a node that was paused), it may have been any
window of its span. All spans together fit into the limit if and only if in every run of windows
those that lie wholly inside are no more than the run allows (Hall's theorem for intervals): that is
what is checked, for every run. Nothing that a gateway says is used.

Nodes learn in a tick, not in a request, that a window is over, and clocks differ; so a span begins
`smear_us` before the sending. The sums of numbered windows are exact in spite of it.

For tokens the spans carry weights, which may be split among their windows, and the theorem is the
same.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_CLOCKS_US: Final = 1_000
"""Clocks of processes on one machine, read in milliseconds, differ by at most so much."""


@dataclass(frozen=True, slots=True)
class Span:
    """The windows, from first to last, in which an amount may have been charged, and the amount."""

    first: int
    last: int
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Run:
    """A run of windows: the amount surely charged in it, and the amount it allows."""

    first: int
    last: int
    charged: int
    allowed: int

    @property
    def excess(self) -> int:
        """How much more was charged than is allowed; never below zero."""
        return max(0, self.charged - self.allowed)

    @property
    def share(self) -> float:
        """Amount charged, as a share of what is allowed."""
        return self.charged / self.allowed if self.allowed else float(bool(self.charged))


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount that a node may apply: from one moment until another, None: for ever."""

    amount: int
    from_us: int
    until_us: int | None = None


class Allowance:
    """Allowed amount of each window while the limit is changed: the largest that any node may apply
    in it.
    """

    def __init__(self, window_us: int, amounts: Sequence[Amount]) -> None:
        assert window_us > 0
        self.window_us = window_us
        self._amounts = tuple(amounts)

    def window(self, at_us: int) -> int:
        """Return the number of the window of a moment."""
        return at_us // self.window_us

    def of(self, window: int) -> int:
        """Return how much may be charged to a window; 0 if no amount holds in it."""
        begins_us, ends_us = window * self.window_us, (window + 1) * self.window_us
        return max(
            (
                one.amount
                for one in self._amounts
                if one.from_us < ends_us and (one.until_us is None or one.until_us > begins_us)
            ),
            default=0,
        )

    def span(self, sent_us: int, seen_us: int, *, smear_us: int, weight: int = 1) -> Span:
        """Return the span of something sent at one moment and seen at a later one."""
        first = self.window(sent_us - smear_us)
        return Span(first, max(first, self.window(seen_us + _CLOCKS_US)), weight)


def fullest(spans: Iterable[Span], allowed: Callable[[int], int]) -> Run | None:
    """Return the run of windows that exceeds what it allows by most; if none does, the one that is fullest.

    None if nothing was charged. Takes time in the square of the number of windows.
    """
    by_first: dict[int, list[Span]] = {}
    for span in spans:
        by_first.setdefault(span.first, []).append(span)
    if not by_first:
        return None
    begin = min(by_first)
    end = max(span.last for some in by_first.values() for span in some)
    amounts = [allowed(window) for window in range(begin, end + 1)]
    inside = [0] * (end - begin + 1)
    """By last window: what is charged by spans that begin where the run does, or later."""
    best: Run | None = None
    for first in range(end, begin - 1, -1):
        for span in by_first.get(first, ()):
            inside[span.last - begin] += span.weight
        charged = total = 0
        for last in range(first, end + 1):
            charged += inside[last - begin]
            total += amounts[last - begin]
            if charged and (best is None or _is_fuller(charged, total, best)):
                best = Run(first, last, charged, total)
    return best


def _is_fuller(charged: int, allowed: int, best: Run) -> bool:
    excess = max(0, charged - allowed)
    if excess != best.excess:
        return excess > best.excess
    return charged * best.allowed > best.charged * allowed


def crossing(spans: Iterable[Span]) -> int:
    """Return how many spans are of more than one window."""
    return sum(span.first != span.last for span in spans)


def used(spans: Sequence[Span], allowed: Callable[[int], int], first: int, last: int) -> float:
    """Return the share of what these windows allow that was used in them, together.

    A span across the outer borders counts by its last window, so that it counts once in any
    division into runs.
    """
    charged = sum(span.weight for span in spans if first <= span.last <= last)
    total = sum(allowed(window) for window in range(first, last + 1))
    return charged / total if total else 0.0


def use_by_window(
    spans: Sequence[Span], allowed: Callable[[int], int], first: int, last: int
) -> list[float]:
    """Return for each window the share of what it allows that may have been used in it."""
    shares = []
    for window in range(first, last + 1):
        may = sum(span.weight for span in spans if span.first <= window <= span.last)
        shares.append(may / max(1, allowed(window)))
    return shares


def most_open(times: Iterable[tuple[int, int | None]]) -> int:
    """Return the largest number open at one moment; each came at its first time and ended at its
    second, or never.

    One that ends at the very moment at which another comes has made room.
    """
    changes: list[tuple[int, int]] = []
    for came_us, ended_us in times:
        changes.append((came_us, 1))
        if ended_us is not None:
            changes.append((ended_us, -1))
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
