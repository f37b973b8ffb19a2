"""Wait queue: requests of one model waiting for a worker, in four priority classes with aging.
Pure.

    class        places   waits at most   lifted after
    system           64            30 s            5 s
    interactive     256            30 s            5 s
    default         512            60 s           30 s
    bulk          1,024           300 s          120 s

The more urgent class goes first; within a class, the first that came. A request that has waited for
long is *lifted*: every fifth that is called is one of those, the one that has waited longest for
its class. So none starves where urgent work never ends, and however much work of a lower class
waits, four of five that are called are the most urgent.

A class whose places are all taken refuses at once, with the time after which there should be room
again: as long as those before it need at the speed of the last ten seconds. The next one is taken
out of the queue; if no worker suits it, it goes back to where it stood. All of it costs O(log n).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from smg_node.core.request_context import PRIORITIES, Priority
from smg_node.core.sliding_window import Window

NEVER_S: Final = float("inf")
PACE_WINDOW_S: Final = 10.0
LIFTED_EVERY: Final = 5
"""Of so many who are called one is lifted, if there is one."""
RETRY_AFTER_MIN_S: Final = 1.0
RETRY_AFTER_MAX_S: Final = 60.0
_GONE_MAX: Final = 64
"""So many tickets that are gone are kept in a heap before it is cleared of them, and as many as wait."""


@dataclass(frozen=True, slots=True)
class ClassOptions:
    """Limits of one class: how many wait, how long each, and after how long each is lifted (above
    0).
    """

    places: int
    timeout_s: float
    lift_s: float


DEFAULTS: Final[Mapping[Priority, ClassOptions]] = {
    "system": ClassOptions(64, 30.0, 5.0),
    "interactive": ClassOptions(256, 30.0, 5.0),
    "default": ClassOptions(512, 60.0, 30.0),
    "bulk": ClassOptions(1024, 300.0, 120.0),
}


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Limits of each class; see the knobs of `queue`."""

    classes: Mapping[Priority, ClassOptions] = field(default_factory=lambda: DEFAULTS)


class LineFull(Exception):  # noqa: N818 (it says what is so; the caller makes an error of it)
    """All places of a class are taken. `retry_after_s` is when to come again."""

    def __init__(self, rank: Priority, retry_after_s: float) -> None:
        super().__init__(f"all places of the class {rank} are taken")
        self.rank = rank
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Ticket:
    """One waiting request, until `until_s`. Times are monotonic seconds; `number` grows with each
    ticket of a queue.
    """

    rank: Priority
    number: int
    entered_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """Outcomes of the requests that entered a class, and how many wait now. `waited_s` is the sum
    of those served.
    """

    waiting: int
    entered: int
    served: int
    refused: int
    expired: int
    left: int
    waited_s: float


class _Class:
    """One class: the numbers of its tickets as a heap, and what happened in it."""

    __slots__ = (
        "entered", "expired", "heap", "left", "options", "refused", "served", "waited_s", "waiting",
    )  # fmt: skip

    def __init__(self, options: ClassOptions) -> None:
        self.options = options
        self.heap: list[int] = []
        """Numbers of tickets that left stay until they come up, or are too many."""
        self.waiting = self.entered = self.served = self.refused = self.expired = self.left = 0
        self.waited_s = 0.0

    def counts(self) -> ClassCounts:
        """Return what happened so far."""
        return ClassCounts(
            self.waiting,
            self.entered,
            self.served,
            self.refused,
            self.expired,
            self.left,
            self.waited_s,
        )


class WaitQueue:
    """Requests that wait for a worker of one model."""

    def __init__(self, options: QueueOptions | None = None) -> None:
        classes = (options or QueueOptions()).classes
        self._classes = {rank: _Class(classes[rank]) for rank in PRIORITIES}
        self._standing: dict[int, Ticket] = {}
        self._number = 0
        self._ends: list[tuple[float, int]] = []
        """A heap: when whose time is up, also of tickets that are gone."""
        self._late: list[Ticket] = []
        self._passed = 0
        self._pace = Window(PACE_WINDOW_S)

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._standing)

    # ── In and out ───────────────────────────────────────────────────────────

    def enter(self, rank: Priority, now_s: float, deadline_s: float) -> Ticket:
        """Return a ticket at the end of its class; LineFull if all places are taken."""
        mine = self._classes[rank]
        if mine.waiting >= mine.options.places:
            # One whose time is up may not have left yet; its place is free all the same.
            self._expire_late(now_s)
        if mine.waiting >= mine.options.places:
            mine.refused += 1
            raise LineFull(rank, self.drain_s(rank, now_s))
        self._number += 1
        until_s = min(now_s + mine.options.timeout_s, deadline_s)
        ticket = Ticket(rank, self._number, now_s, until_s)
        mine.entered += 1
        self._stand(ticket)
        return ticket

    def next(self, now_s: float) -> Ticket | None:
        """Take out the next one; None if none waits. Those whose time is up are left to
        `expired`.
        """
        urgent: Ticket | None = None
        lifted: Ticket | None = None
        longest = 1.0
        for each in self._classes.values():
            first = self._first(each, now_s)
            if first is None:
                continue
            urgent = first if urgent is None else urgent
            waited = (now_s - first.entered_s) / each.options.lift_s
            if waited >= longest and first is not urgent:
                lifted, longest = first, waited
        chosen = self._of_both(urgent, lifted)
        if chosen is not None:
            mine = self._take(chosen)
            mine.served += 1
            mine.waited_s += now_s - chosen.entered_s
            self._pace.add(now_s)
        return chosen

    def _of_both(self, urgent: Ticket | None, lifted: Ticket | None) -> Ticket | None:
        """Return the most urgent one, and now and then the lifted one; count how often that was passed over."""
        if lifted is None:
            return urgent
        self._passed += 1
        if self._passed < LIFTED_EVERY:
            return urgent
        self._passed = 0
        return lifted

    def back(self, ticket: Ticket, now_s: float) -> None:
        """Put one that `next` took out, and that found no worker, back to where it stood."""
        assert ticket.number not in self._standing
        mine = self._classes[ticket.rank]
        mine.served -= 1
        mine.waited_s -= now_s - ticket.entered_s
        self._pace.add(now_s, -1)
        self._stand(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Remove one that does not want to wait any more; harmless for one that is not in the
        queue.
        """
        if ticket.number in self._standing:
            self._take(ticket).left += 1

    def expired(self, now_s: float) -> list[Ticket]:
        """Take out all whose time is up, in the order of their numbers."""
        self._expire_late(now_s)
        found, self._late = self._late, []
        return sorted(found, key=lambda ticket: ticket.number)

    def _expire_late(self, now_s: float) -> None:
        while self._ends and self._ends[0][0] <= now_s:
            ticket = self._standing.get(heappop(self._ends)[1])
            # One that was called and came back is in the heap twice.
            if ticket is not None and ticket.until_s <= now_s:
                self._expire(ticket)

    # ── Questions ────────────────────────────────────────────────────────────

    def next_s(self) -> float:
        """Return when the next one's time is up; infinity if none waits."""
        ends = self._ends
        while ends and ends[0][1] not in self._standing:
            heappop(ends)
        return ends[0][0] if ends else NEVER_S

    def drain_s(self, rank: Priority, now_s: float) -> float:
        """Return after how long there should be room for one more of `rank`: 1 to 60 seconds."""
        served = self._pace.total(now_s)
        if served <= 0:
            return PACE_WINDOW_S
        before = 1
        for each in PRIORITIES:
            before += self._classes[each].waiting
            if each == rank:
                break
        return min(max(before * PACE_WINDOW_S / served, RETRY_AFTER_MIN_S), RETRY_AFTER_MAX_S)

    def counts(self) -> Mapping[Priority, ClassCounts]:
        """Return what happened in each class since the start."""
        return {rank: each.counts() for rank, each in self._classes.items()}

    def retune(self, options: QueueOptions) -> None:
        """Take new options; waiting requests keep the time they were given."""
        for rank, each in self._classes.items():
            each.options = options.classes[rank]

    # ── Standing ─────────────────────────────────────────────────────────────

    def _stand(self, ticket: Ticket) -> None:
        mine = self._classes[ticket.rank]
        mine.waiting += 1
        self._standing[ticket.number] = ticket
        heappush(mine.heap, ticket.number)
        heappush(self._ends, (ticket.until_s, ticket.number))
        self._tidy(mine)

    def _take(self, ticket: Ticket) -> _Class:
        del self._standing[ticket.number]
        mine = self._classes[ticket.rank]
        mine.waiting -= 1
        return mine

    def _expire(self, ticket: Ticket) -> None:
        self._take(ticket).expired += 1
        self._late.append(ticket)

    def _first(self, each: _Class, now_s: float) -> Ticket | None:
        """Return the first of a class that has time left."""
        heap = each.heap
        while heap:
            ticket = self._standing.get(heap[0])
            if ticket is not None and ticket.until_s > now_s:
                return ticket
            if ticket is not None:
                self._expire(ticket)
            heappop(heap)
        return None

    def _tidy(self, mine: _Class) -> None:
        """Keep the heaps in proportion to the number of waiting requests."""
        if len(mine.heap) > 2 * mine.waiting + _GONE_MAX:
            mine.heap = [number for number in mine.heap if number in self._standing]
            heapify(mine.heap)
        if len(self._ends) > 2 * len(self._standing) + _GONE_MAX:
            self._ends = [end for end in self._ends if end[1] in self._standing]
            heapify(self._ends)
