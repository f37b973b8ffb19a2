"""Admissions of the cluster by window and node, with bounds for what had been charged at a moment.
Pure.

A request is charged at some moment between its sending by the client and its first arrival at an
engine. So of the number charged by a moment only bounds are known: at least all that had arrived,
at most all that had been sent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from smg_chaos.gameday.limits.judge import Allowance
from smg_chaos.gameday.limits.report import SMEAR_US
from smg_chaos.gameday.limits.story import Record

NEWS_US: Final = 250_000
"""So long may a node not know yet of what another one has admitted."""
_PERCENT: Final = 5
_UNITS_MIN: Final = 2


def tolerance(amount: int) -> int:
    """Return by how many units a claim about a limit may be off: 5 % of it, and two at least."""
    return max(_UNITS_MIN, amount * _PERCENT // 100)


class _Charges:
    """Charges of one node to one window: arrivals of those that surely are, sendings of those that
    may be.
    """

    def __init__(self) -> None:
        self.arrived_us: list[int] = []
        self.sent_us: list[int] = []
        self.surely_sent_us: list[int] = []

    def sort(self) -> None:
        """Put the times in order, once all are there."""
        for times in (self.arrived_us, self.sent_us, self.surely_sent_us):
            times.sort()


class Admissions:
    """All that was admitted under a limit with windows of `window_us`, at any node.

    `since_us` is when the limit was set: what was sent before was not charged to it.
    """

    def __init__(self, record: Record, window_us: int, *, since_us: int = 0) -> None:
        self.window_us = window_us
        self._allowance = Allowance(window_us, [])
        self._charges: dict[tuple[int, int], _Charges] = {}
        self._arrived_us: dict[int, list[tuple[int, int]]] = {}
        """(sent, arrived) of each node, by sending."""
        for answer in record.answers:
            arrival = record.arrivals.get(answer.serial)
            if arrival is not None and answer.sent_us >= since_us:
                self._add(answer.node, answer.sent_us, arrival.came_us)
        for charges in self._charges.values():
            charges.sort()
        for pairs in self._arrived_us.values():
            pairs.sort()

    def _add(self, node: int, sent_us: int, came_us: int) -> None:
        span = self._allowance.span(sent_us, came_us, smear_us=SMEAR_US)
        self._arrived_us.setdefault(node, []).append((sent_us, came_us))
        for window in range(span.first, span.last + 1):
            charges = self._charges.setdefault((window, node), _Charges())
            charges.sent_us.append(sent_us)
            if span.first == span.last:
                charges.arrived_us.append(came_us)
                charges.surely_sent_us.append(sent_us)

    @property
    def nodes(self) -> list[int]:
        """Nodes that admitted something, in order."""
        return sorted(self._arrived_us)

    def window(self, at_us: int) -> int:
        """Return the number of the window of a moment."""
        return at_us // self.window_us

    def least(self, window: int, by_us: int, nodes: Iterable[int] | None = None) -> int:
        """Return how many were surely charged to a window by a moment, at these nodes (all)."""
        return sum(
            bisect_right(charges.arrived_us, by_us)
            for node in self._of(nodes)
            if (charges := self._charges.get((window, node))) is not None
        )

    def most(self, window: int, by_us: int, nodes: Iterable[int] | None = None) -> int:
        """Return how many may have been charged to a window by a moment, at these nodes (all)."""
        return sum(
            bisect_right(charges.sent_us, by_us)
            for node in self._of(nodes)
            if (charges := self._charges.get((window, node))) is not None
        )

    def sent_later(self, window: int, after_us: int) -> int:
        """Return how many that were sent after a moment were surely charged to a window."""
        return sum(
            len(charges.surely_sent_us) - bisect_right(charges.surely_sent_us, after_us)
            for (number, _), charges in self._charges.items()
            if number == window
        )

    def next_us(self, node: int, after_us: int) -> int | None:
        """Return when the first arrival was at an engine of what a node was sent after a moment;
        None if nothing of it was admitted.
        """
        pairs = self._arrived_us.get(node, [])
        later = pairs[bisect_left(pairs, (after_us + 1, 0)) :]
        return min((came_us for _, came_us in later), default=None)

    def _of(self, nodes: Iterable[int] | None) -> Iterable[int]:
        return self._arrived_us if nodes is None else nodes
