"""Limit clients: requests at one node, each admitted or refused after a wait, then settled.

Admission as a node does it, without the node: all that comes is charged to the share at hand; where that is too
small the share is looked up once more, then it is waited for what the owner may have, and then refused.
"""

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Final, Protocol

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.rights.admission_books import Page
from smg_chaos.simulate.rights.open_permits import Openings
from smg_chaos.simulate.rights.rights_setting import Flow
from smg_mesh.escrow.spendable_share import Share

WAIT_US: Final = 60 * MS
WAITING_MAX: Final = 200
_BACKLOG_S: Final = 1.0
"""Requests of a time that long wait in the sockets of a node that stands still."""
_SETTLED_S: Final = 3.0


@dataclass(slots=True)
class _Counter:
    """One flow at one node."""

    flow: Flow
    rate_per_s: float
    share: Share | None = None
    since_us: int = 0
    due: float = 0.0
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    """(cost, until), the longest wait first."""


@dataclass(slots=True)
class _Answer:
    """What was reserved in one window, and is settled later."""

    share: Share
    page: Page
    reserved: int
    used: float


class PermitMarket(Protocol):
    """The rights of the world, as far as it is counted what is open at a time."""

    openings: Openings


class AskedRights(Protocol):
    """The rights of the node that is asked."""

    node: Node

    @property
    def market(self) -> PermitMarket:
        """The rights of the world."""
        ...

    @property
    def now_us(self) -> int:
        """The world's clock."""
        ...

    def share(self, key: str) -> Share | None:
        """Return the share of a key, awake."""
        ...

    def want(self, share: Share, cost: int) -> None:
        """Ask for so much soon."""
        ...

    def page(self, share: Share) -> Page:
        """Return the page of the window that a share is in."""
        ...

    def charge(self, share: Share, cost: int) -> Page:
        """Count what was charged to a share."""
        ...

    def settle(self, page: Page, unused: int) -> None:
        """Count what was given back of a charge in the same window."""
        ...


class Customers:
    """All clients of one node."""

    def __init__(self, teller: AskedRights, flows: tuple[Flow, ...], own: Random) -> None:
        self._teller = teller
        self._own = own
        self._counters = [
            _Counter(flow, rate)
            for flow in flows
            if (rate := flow.rate_per_s(teller.node.host.number)) > 0.0
        ]
        self._answers: list[tuple[int, int, _Answer]] = []
        """A heap: (when it is settled, number, answer)."""
        self._numbered = 0
        self._open: list[tuple[int, int, Share]] = []
        """A heap of what is open at a time: (until when, number, share)."""

    @property
    def any(self) -> bool:
        """Whether there are any, ever."""
        return bool(self._counters)

    def come(self, now_us: int) -> None:
        """Let everything happen that was due since the last time."""
        while self._answers and self._answers[0][0] <= now_us:
            self._settle(heappop(self._answers)[2])
        while self._open and self._open[0][0] <= now_us:
            _, number, share = heappop(self._open)
            self._close(number, share)
        for counter in self._counters:
            flow = counter.flow
            if not flow.from_ms * MS <= now_us < flow.until_ms * MS:
                counter.since_us = now_us
                continue
            if counter.waiting:
                self._again(counter, now_us)
            spent_s = min(_BACKLOG_S, (now_us - counter.since_us) / SECOND)
            counter.since_us = now_us
            counter.due += counter.rate_per_s * spent_s * 2.0 * self._own.random()
            count = int(counter.due)
            counter.due -= count
            if count:
                self._ask(counter, count, now_us)

    # ── Admission ────────────────────────────────────────────────────────────

    def _ask(self, counter: _Counter, count: int, now_us: int) -> None:
        low, high = counter.flow.cost
        if low == high == 1:
            rest = count if counter.waiting else count - self._charge(counter, count)
            if rest:
                rest -= 0 if counter.waiting else self._charge_anew(counter, rest)
            for _ in range(rest):
                self._wait(counter, 1, now_us)
            return
        for _ in range(count):
            cost = low + int(self._own.random() * (high - low + 1))
            if counter.waiting or not (
                self._whole(counter, cost) or self._whole_anew(counter, cost)
            ):
                self._wait(counter, cost, now_us)

    def _charge(self, counter: _Counter, most: int) -> int:
        """Admit requests of cost 1 as far as there are rights; return how many."""
        share = counter.share
        count = 0 if share is None else min(most, share.left)
        if share is not None and count > 0:
            self._take(counter, share, count)
        return max(0, count)

    def _charge_anew(self, counter: _Counter, most: int) -> int:
        self._look_up(counter)
        return self._charge(counter, most)

    def _whole(self, counter: _Counter, cost: int) -> bool:
        """Admit one request of that cost, if there are rights for all of it."""
        share = counter.share
        if share is None or share.left < cost:
            return False
        self._take(counter, share, cost)
        return True

    def _whole_anew(self, counter: _Counter, cost: int) -> bool:
        self._look_up(counter)
        return self._whole(counter, cost)

    def _take(self, counter: _Counter, share: Share, cost: int) -> None:
        share.left -= cost
        share.spent += cost
        share.offered += cost
        if share.left < share.low:
            share.wants_more = True
        if not share.window_ms:
            for _ in range(cost):
                self._begin(counter.flow, share)
            return
        page = self._teller.charge(share, cost)
        page.offered += cost
        if counter.flow.settles:
            self._reserve(counter.flow, share, page, cost)

    def _look_up(self, counter: _Counter) -> None:
        found = self._teller.share(counter.flow.key)
        if found is not counter.share:
            if counter.share is not None:
                counter.share.wanted = 0
            counter.share = found

    # ── Waiting ──────────────────────────────────────────────────────────────

    def _wait(self, counter: _Counter, cost: int, now_us: int) -> None:
        share = counter.share
        if share is None or share.pool == 0 or len(counter.waiting) >= WAITING_MAX:
            self._refuse(counter, cost)
            return
        counter.waiting.append((cost, now_us + WAIT_US))
        self._teller.want(share, cost)

    def _again(self, counter: _Counter, now_us: int) -> None:
        """Admit those who wait, in order; refuse who waited too long, and all once there is nothing."""
        waiting = counter.waiting
        self._look_up(counter)
        while waiting and self._whole(counter, waiting[0][0]):
            waiting.popleft()
        empty = counter.share is None or counter.share.pool == 0
        while waiting and (empty or waiting[0][1] <= now_us):
            self._refuse(counter, waiting.popleft()[0])
        if counter.share is not None:
            counter.share.wanted = sum(cost for cost, _ in waiting)

    def _refuse(self, counter: _Counter, cost: int) -> None:
        share = counter.share
        if share is None or share.window < 0:
            return
        share.offered += cost
        if not share.window_ms:
            return
        page = self._teller.page(share)
        page.offered += cost
        page.refused += cost

    # ── What is open at a time ───────────────────────────────────────────────

    def end(self) -> None:
        """Let nothing be open any more: the process is over."""
        for _, number, share in self._open:
            self._teller.market.openings.closed(share.key, number)
        self._open = []

    def _begin(self, flow: Flow, share: Share) -> None:
        shortest_ms, longest_ms = flow.holds_ms
        held_us = int((shortest_ms + (longest_ms - shortest_ms) * self._own.random()) * MS)
        number = self._teller.market.openings.opened(share.key, self._teller.node.name)
        heappush(self._open, (self._teller.now_us + held_us, number, share))

    def _close(self, number: int, share: Share) -> None:
        self._teller.market.openings.closed(share.key, number)
        if share.window >= 0:
            share.left += 1
            share.spent -= 1

    # ── Settlement ───────────────────────────────────────────────────────────

    def _reserve(self, flow: Flow, share: Share, page: Page, cost: int) -> None:
        low, high = flow.used
        used = low + self._own.random() * (high - low)
        due_us = self._teller.now_us + int(_SETTLED_S * SECOND * (0.05 + 0.95 * self._own.random()))
        self._numbered += 1
        heappush(self._answers, (due_us, self._numbered, _Answer(share, page, cost, used)))

    def _settle(self, answer: _Answer) -> None:
        unused = answer.reserved - int(answer.reserved * answer.used)
        share = answer.share
        if unused < 0:
            self._overdraw(share, -unused)
        elif unused and share.window == answer.page.window:
            share.left += unused
            share.spent -= unused
            self._teller.settle(answer.page, unused)

    def _overdraw(self, share: Share, excess: int) -> None:
        """Charge what went beyond to the window of now, as far as there are rights; the rest is debt."""
        paid = max(0, min(share.left, excess))
        if paid:
            share.left -= paid
            share.spent += paid
            self._teller.charge(share, paid)
        if excess > paid:
            share.debt += excess - paid
            if share.window >= 0:
                self._teller.page(share).owed += excess - paid
