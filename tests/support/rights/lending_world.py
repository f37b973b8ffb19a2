"""A control process, its data processes and the links between them, on virtual time: who may spend what, and who did."""

from collections import Counter, deque
from dataclasses import dataclass, field

from smg_node.admission.charging import admit, give_back
from smg_node.processes.limit_leases.lease_client import LeaseClient, Limit, Waits
from smg_node.processes.limit_leases.lease_messages import (
    LeaseGrant,
    LeaseGrants,
    LeaseReport,
    pack,
    read_grants,
    read_report,
)
from smg_node.processes.limit_leases.lease_server import LeaseServer
from smg_node.processes.limit_leases.leased_share import LeasedShare

WINDOW_MS = 500
LIMITS = {"w": Limit(20, WINDOW_MS), "c": Limit(5, 0)}


class NodeShares:
    """The shares of one life of a node. It knows all windows but the one that it begins in; some is in its pool."""

    def __init__(self, now_ms: int, *, first: bool, pooled: int = 0) -> None:
        self.pooled = pooled
        self.shares = {
            key: LeasedShare(key, amount=a, window_ms=w) for key, (a, w) in LIMITS.items()
        }
        self.shares["c"].window = 0
        self.shares["c"].left = LIMITS["c"].amount
        self.shares["c"].pool = 0
        self._born = -1 if first else now_ms // WINDOW_MS
        self.roll(now_ms)

    def roll(self, now_ms: int) -> None:
        share, window = self.shares["w"], now_ms // WINDOW_MS
        if share.window == window:
            return
        share.window, share.ends_ms = window, (window + 1) * WINDOW_MS
        whole = 0 if window == self._born else share.amount
        share.pool = min(self.pooled, whole)
        share.left = whole - share.pool
        share.spent = share.offered = 0

    def refill(self, key: str, cost: int) -> None:
        share = self.shares[key]
        more = min(share.pool, max(0, cost - share.left))
        share.pool -= more
        share.left += more


@dataclass
class Request:
    """One that is under way, charged to this share in that window."""

    key: str
    share: LeasedShare
    window: int
    cost: int


@dataclass
class Process:
    """A data process, what it waits for, and what is on its way to it and from it."""

    name: str
    borrower: LeaseClient = field(init=False)
    up: deque[bytes] = field(default_factory=deque)
    down: deque[bytes] = field(default_factory=deque)
    line: dict[str, list[int]] = field(default_factory=dict)
    open: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.borrower = LeaseClient(self._waits)

    def _waits(self, key: str) -> Waits:
        costs = self.line.get(key, [])
        return Waits(costs[0], sum(costs)) if costs else Waits()


class LendingWorld:
    """All of it. `used` is what was charged and did not come back, by window: the truth that nobody else knows."""

    def __init__(self, *, pooled: int = 0) -> None:
        self.now_ms = 10_000
        self.pooled = pooled
        self.used: Counter[int] = Counter()
        self.waited: Counter[str] = Counter()
        self.processes: dict[str, Process] = {}
        self._number = 0
        self._begin(first=True)

    # ── What happens ─────────────────────────────────────────────────────────

    def start(self) -> str:
        self._number += 1
        process = Process(f"data-{self._number}")
        self.processes[process.name] = process
        self.link(process)
        return process.name

    def link(self, process: Process) -> None:
        process.up.clear()
        process.down.clear()
        process.up.append(pack(LeaseReport((), process.borrower.begin_anew(self.now_ms))))

    def cut(self, name: str) -> None:
        """Cut a link, and open another one."""
        process = self.processes[name]
        process.borrower.cut()
        self.lender.closed(name, gone=False, now_ms=self.now_ms)
        self._say()
        self.link(process)

    def kill(self, name: str) -> None:
        del self.processes[name]
        self.lender.closed(name, gone=True, now_ms=self.now_ms)
        self._say()

    def restart_control(self) -> None:
        for process in self.processes.values():
            process.borrower.cut()
        self._begin(first=False)
        self.lender.expect(self.processes)
        for process in self.processes.values():
            self.link(process)

    def request(self, name: str, key: str, cost: int, *, waits: bool = True) -> bool:
        process = self.processes[name]
        share = self._share(process, key)
        if admit([share], cost) is None:
            self._charged(process, share, cost)
            return True
        share.offered += cost
        if waits and share.pool != 0:
            process.line.setdefault(key, []).append(cost)
            process.borrower.want(key, self.now_ms)
        return False

    def own_request(self, key: str, cost: int) -> bool:
        """Charge the control process's own share, for good."""
        share = self.node.shares[key]
        if not share.window_ms or admit([share], cost) is not None:
            return False
        self.used[share.window] += cost
        return True

    def settle(self, name: str, at: int, unused: int) -> None:
        process = self.processes[name]
        if not process.open:
            return
        request = process.open.pop(at % len(process.open))
        whole = request.share.window_ms == 0
        back = request.cost if whole else min(unused, request.cost)
        if request.share.window == request.window:
            give_back(request.share, request.window, back)
            if not whole:
                self.used[request.window] -= back

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.node.roll(self.now_ms)
        self.look()

    def look(self) -> None:
        for process in self.processes.values():
            asks = process.borrower.look(self.now_ms, self.now_ms)
            if asks:
                process.up.append(pack(LeaseReport(tuple(asks))))

    def deliver(self, name: str, *, up: bool) -> None:
        """Deliver the next of what is on its way."""
        process = self.processes[name]
        if up and process.up:
            said = read_report(process.up.popleft())
            self.lender.hear(name, said, now_ms=self.now_ms)
            self._say()
        elif not up and process.down:
            told = read_grants(process.down.popleft())
            for key in process.borrower.hear(told, now_ms=self.now_ms, wall_ms=self.now_ms):
                self._let_go(process, key)

    def refill(self) -> None:
        for key, cost in list(self.lender.refills()):
            self.node.refill(key, cost)
            self.lender.refilled(key, now_ms=self.now_ms)
        self._say()

    def settle_down(self, ms: int = 1_000) -> None:
        """Let everything arrive, and time pass, until nothing is said any more."""
        for _ in range(ms // 25):
            self.pass_time(25)
            self.arrive()

    def arrive(self) -> None:
        """Let everything arrive that is on its way."""
        for _ in range(200):
            self.look()
            self.refill()
            busy = [(p.name, bool(p.up)) for p in self.processes.values() if p.up or p.down]
            if not busy:
                return
            for name, up in busy:
                self.deliver(name, up=up)
        raise AssertionError("they never stop to talk")

    # ── What must be so ──────────────────────────────────────────────────────

    def check(self) -> None:
        for window, used in self.used.items():
            assert used <= LIMITS["w"].amount, (window, used)
        opened = sum(
            request.cost
            for process in self.processes.values()
            for request in process.open
            if request.key == "c"
        )
        assert opened <= LIMITS["c"].amount
        for process in self.processes.values():
            for key in LIMITS:
                share = process.borrower.peek(key)
                assert share is None or share.left >= 0

    def _begin(self, *, first: bool) -> None:
        self.node = NodeShares(self.now_ms, first=first, pooled=self.pooled)
        self.lender = LeaseServer(lambda key: self.node.shares.get(key))

    def _share(self, process: Process, key: str) -> LeasedShare:
        return process.borrower.share(key, LIMITS[key], now_ms=self.now_ms, wall_ms=self.now_ms)

    def _charged(self, process: Process, share: LeasedShare, cost: int) -> None:
        process.open.append(Request(share.key, share, share.window, cost))
        if share.window_ms:
            self.used[share.window] += cost

    def _let_go(self, process: Process, key: str) -> None:
        line = process.line.get(key, [])
        share = self._share(process, key)
        while line and admit([share], line[0]) is None:
            self.waited[key] += 1
            self._charged(process, share, line.pop(0))
        if line and share.pool == 0:
            line.clear()

    def _say(self) -> None:
        words: dict[str, list[LeaseGrant]] = {}
        for name, word in self.lender.told():
            words.setdefault(name, []).append(word)
        for name, told in words.items():
            if name in self.processes:
                self.processes[name].down.append(pack(LeaseGrants(tuple(told))))
