"""Nodes that found a first roster on virtual time, in a network and on disks that do as they like; nothing else runs there.

Every roster that any life goes by, or is about to, is noted; two with a name in common fail at once.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.messages.messages import Message, RosterMessage, decode, encode
from smg_mesh.escrow.roster.roster_keeper import RosterKeeper

TICK_MS = 10
WALL_MS = 1_700_000_000_000


@dataclass
class Disk:
    """What outlives a life."""

    roster: Roster | None = None
    founding: FoundingState | None = None

    def keep(self, kept: Roster | FoundingState) -> None:
        if isinstance(kept, Roster):
            self.roster, self.founding = kept, None
        else:
            self.founding = kept


@dataclass
class Host:
    """One name: its disk, its present life if there is one, and whom that sees."""

    name: str
    disk: Disk = field(default_factory=Disk)
    boots: int = 0
    keeper: RosterKeeper | None = None
    sees: frozenset[str] = frozenset()
    writing: Roster | FoundingState | None = None
    clock_off_ms: int = 0


class FoundingWorld:
    """All of them. What may happen to them is up to the test."""

    def __init__(
        self, seed: int, names: Sequence[str], *, expect: int, disk_ms: tuple[int, int] = (1, 60)
    ):
        self.rng = Random(seed)
        self.now_ms = 0
        self.expect = expect
        self.loss = self.twice = self.late = 0.0
        self.losses: dict[type, float] = {}
        """Of messages of some kinds more are lost."""
        self.disk_ms = disk_ms
        self.hosts = {name: Host(name) for name in names}
        self.heard: Counter[type] = Counter()
        """How many messages of each kind have come in."""
        self.proven: dict[bytes, tuple[str, ...]] = {}
        self.cut: Callable[[str, str], bool] = lambda _one, _other: False
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    # ── What happens ─────────────────────────────────────────────────────────

    def boot(self, name: str) -> None:
        """Begin a life with what the disk has."""
        host = self.hosts[name]
        host.boots += 1
        host.writing = None
        host.keeper = RosterKeeper(
            Life(name, host.boots),
            expect=self.expect,
            roster=host.disk.roster,
            rng=self.rng,
            now_ms=self.now_ms,
            wall_ms=WALL_MS + self.now_ms,
            founding=host.disk.founding,
        )

    def crash(self, name: str, *, lose_disk: bool = False) -> None:
        """End a life; what was being written is written, or not."""
        host = self.hosts[name]
        if host.writing is not None and self.rng.random() < 0.5:
            host.disk.keep(host.writing)
        host.keeper = host.writing = None
        if lose_disk:
            host.disk = Disk()

    def look(self, *, blind: float = 0.0, stale: float = 0.0) -> None:
        """Let all see whom they can reach; of these some not (`blind`), and some of the others (`stale`)."""
        for host in self.hosts.values():
            host.sees = frozenset(
                other
                for other, there in self.hosts.items()
                if self.rng.random()
                < (stale if there.keeper is None or self.cut(host.name, other) else 1 - blind)
            )

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms += TICK_MS
            while self._queue and self._queue[0][0] <= self.now_ms:
                heapq.heappop(self._queue)[2]()
            for host in self.hosts.values():
                if host.keeper is not None and self.rng.random() < 0.2:
                    self._tick(host, host.keeper)
            self._note()

    def run_until(self, happens: Callable[[], bool], *, within_ms: int) -> int:
        """Let time pass until it happens, and return how long that took; it must."""
        began_ms = self.now_ms
        while not happens():
            assert self.now_ms - began_ms <= within_ms, f"not within {within_ms} ms"
            self.run(TICK_MS)
        return self.now_ms - began_ms

    def rosters(self) -> set[bytes]:
        """Return the ids by which all living go; an empty one for none."""
        keepers = [host.keeper for host in self.hosts.values() if host.keeper is not None]
        return {keeper.roster.id if keeper.roster is not None else b"" for keeper in keepers}

    def agreed(self) -> bool:
        """Return whether all that live go by one roster."""
        rosters = self.rosters()
        return len(rosters) == 1 and b"" not in rosters

    # ── What follows ─────────────────────────────────────────────────────────

    def _tick(self, host: Host, keeper: RosterKeeper) -> None:
        lives = [
            Life(other.name, max(1, other.boots))
            for other in self.hosts.values()
            if other.name in host.sees and other.name != host.name
        ]
        keeper.members(lives, (), now_ms=self.now_ms)
        wall_ms = WALL_MS + self.now_ms + host.clock_off_ms
        out = keeper.step(term=0, synced=True, now_ms=self.now_ms, wall_ms=wall_ms)
        self._say(host, out)

    def _say(self, host: Host, out: list[tuple[str, RosterMessage]]) -> None:
        for to, message in out:
            if to == host.name:
                self._hear(host, message)
                continue
            times = 2 if self.rng.random() < self.twice else 1
            for _ in range(times):
                delay_ms = self.rng.randint(1, 30)
                if self.rng.random() < self.late:
                    delay_ms = self.rng.randint(30, 4_000)
                if self.rng.random() >= max(self.loss, self.losses.get(type(message), 0.0)):
                    self._later(delay_ms, self._arrival(host.name, to, message))
        keeper = host.keeper
        kept = None if keeper is None else keeper.unkept or keeper.unkept_founding
        if kept is not None and host.writing is None:
            host.writing = kept
            self._later(self.rng.randint(*self.disk_ms), self._write(host, kept))

    def _arrival(self, sender: str, to: str, message: Message) -> Callable[[], None]:
        def arrive() -> None:
            host = self.hosts.get(to)
            if host is not None and not self.cut(sender, to):
                (packet,) = encode([message])
                (again,) = decode(packet)
                assert again == message
                self._hear(host, message)

        return arrive

    def _hear(self, host: Host, message: Message) -> None:
        if host.keeper is not None:
            self.heard[type(message)] += 1
            wall_ms = WALL_MS + self.now_ms + host.clock_off_ms
            heard = host.keeper.heard
            out = heard(message, now_ms=self.now_ms, wall_ms=wall_ms)  # type: ignore[arg-type]  # of rosters all
            self._say(host, out)

    def _write(self, host: Host, kept: Roster | FoundingState) -> Callable[[], None]:
        keeper = host.keeper
        assert keeper is not None

        def written() -> None:
            if host.keeper is not keeper:
                return
            host.writing = None
            host.disk.keep(kept)
            out = []
            if isinstance(kept, Roster):
                keeper.kept(kept, wall_ms=WALL_MS + self.now_ms)
            else:
                out = keeper.founding_kept(kept)
            self._say(host, out)

        return written

    def _later(self, delay_ms: int, do: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._count, do))

    def _note(self) -> None:
        for host in self.hosts.values():
            keeper = host.keeper
            for roster in () if keeper is None else (keeper.roster, keeper.unkept):
                if roster is None or roster.id in self.proven:
                    continue
                assert roster.counts
                for names in self.proven.values():
                    assert not {*names} & {*roster.names}, (
                        f"{names} and {roster.names} at {self.now_ms}"
                    )
                self.proven[roster.id] = roster.names
