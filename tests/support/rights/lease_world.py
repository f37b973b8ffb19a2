"""Voters, holders and keepers of one to seven nodes on virtual time, with weather, and what must never be seen there."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

from msgspec.structs import replace

from smg_mesh.escrow.election.slot_holder import Holder
from smg_mesh.escrow.election.voter import Voter
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import ROSTER_SLOT, Life, Roster, slot_of, window_of
from smg_mesh.escrow.messages.messages import (
    LeaseAsk,
    LeaseVote,
    Message,
    Minted,
    RecordsAsk,
    RecordsTell,
    decode,
    encode,
)
from smg_mesh.escrow.roster.roster_keeper import RosterKeeper
from smg_mesh.escrow.roster.roster_values import first
from support.rights.lease_faults import Disk, Weather
from support.rights.lease_invariants import AMOUNT, Books

TICK_MS = 10
KEYS = ("s=1#requests/1000", "s=1#tokens/10000", "s=1#cost/60000", "t=2#requests/2000")


class Node:
    """One name: its clocks, its disk, and its present life, if it has one."""

    def __init__(self, world: "World", name: str, *, rate: float, offset_ms: int) -> None:
        self.world = world
        self.name = name
        self.rate = rate
        self.offset_ms = offset_ms
        self.boots = 0
        self.disk: Disk | None = Disk()
        self.up = False
        self.paused_until_ms = 0
        self.wall_max_ms = 0
        self.window = 0
        self.me = Life(name, 0)
        self.holders: dict[int, Holder] = {}
        self.inbox: list[tuple[Message, str]] = []

    @property
    def now_ms(self) -> int:
        return 1_000 * self.boots + int(self.world.now_ms * self.rate)

    @property
    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.world.now_ms + self.offset_ms

    @property
    def paused(self) -> bool:
        return self.world.now_ms < self.paused_until_ms

    def boot(self, *, expect: int = 1, roster: Roster | None = None) -> None:
        """Begin a life with what the disk has."""
        self.boots += 1
        self.me = Life(self.name, self.boots)
        self.up, self.paused_until_ms = True, 0
        disk = self.disk
        kept = disk.roster if disk is not None else None
        founding = disk.founding if disk is not None else None
        remembered = dict(disk.rows) if disk is not None else None
        now_ms, wall_ms = self.now_ms, self.wall_ms
        self.voter = Voter(
            self.me, remembered=remembered, fresh=kept is None, now_ms=now_ms, wall_ms=wall_ms
        )
        make = partial(RosterKeeper, self.me, expect=expect, roster=kept, founding=founding)
        self.keeper = make(rng=self.world.rng, now_ms=now_ms, wall_ms=wall_ms)
        if roster is not None and kept is None:
            self.keeper.roster = roster
            self.voter.founder = self.keeper.founder = self.boots == 1
        if disk is not None:
            disk.roster = self.keeper.roster
            self.voter.founder = self.keeper.founder
            for row in self.voter.unwritten():
                disk.rows[row.key, row.window] = row.total
        self.holders = {}
        self.inbox = []
        self.keeping = False
        self.window = max(self.window, self.wall_ms // 1_000)

    def crash(self, *, lose_disk: bool = False) -> None:
        """End a life."""
        self.up = False
        if lose_disk:
            self.disk = Disk() if self.disk is not None else None

    def owned(self) -> Iterator[tuple[int, int]]:
        """Yield (slot, term) of what this node owns now, also while it is paused."""
        for slot, holder in self.holders.items():
            term = holder.term(now_ms=self.now_ms) if self.up else 0
            if term:
                yield slot, term

    def tick(self) -> None:
        """Do everything that is due."""
        alive = self.world.seen_by(self.name)
        lives = [self.world.nodes[name].me for name in alive]
        now_ms, wall_ms = self.now_ms, self.wall_ms
        self.wall_max_ms = max(self.wall_max_ms, wall_ms)
        self.keeper.members(lives, self.world.left_names(), now_ms=now_ms)
        self.voter.roster, self.voter.founder = self.keeper.roster, self.keeper.founder
        self.voter.tidy(now_ms=now_ms, wall_ms=self.wall_ms)
        for to, ask in self.voter.asks(now_ms=now_ms):
            self.world.send(self.name, to, ask)
        self._lease(alive, now_ms, wall_ms)
        if self.world.rosters_change:
            self._keep(now_ms, wall_ms)
        if wall_ms // 1_000 > self.window:
            self.window = wall_ms // 1_000
            self.world.stands(self.name, self.window, self.keeper.divisor())

    def heard(self, message: Message, sender: str) -> None:
        """Take a message."""
        now_ms, wall_ms = self.now_ms, self.wall_ms
        match message:
            case LeaseAsk():
                self._asked(message, now_ms, wall_ms)
            case LeaseVote():
                if message.slot in self.holders:
                    self.holders[message.slot].voted(message, now_ms=now_ms)
                self._noticed(message.voter, message.roster, message.roster_version)
            case RecordsAsk():
                tell = self.voter.records_asked(message, now_ms=now_ms)
                if tell is not None:
                    self.world.send(self.name, message.name, tell)
            case RecordsTell():
                self.voter.records_told(message, now_ms=now_ms)
            case _:
                kept: Any = message
                for to, answer in self.keeper.heard(kept, now_ms=now_ms, wall_ms=wall_ms):
                    self.world.send(self.name, to, answer)

    def _asked(self, ask: LeaseAsk, now_ms: int, wall_ms: int) -> None:
        vote, rows = self.voter.asked(ask, now_ms=now_ms, wall_ms=wall_ms)
        if vote.granted:
            self.world.promised(self.name, ask)
        elif ask.release and self.voter.promised(ask.slot, now_ms=now_ms) is None:
            self.world.released(self.name, ask)
        if not rows:
            self.world.send(self.name, ask.name, vote)
        else:
            self.world.write(self, rows, lambda: self.world.send(self.name, ask.name, vote))
        self._noticed(ask.name, ask.roster, ask.roster_version)

    def _noticed(self, name: str, roster_id: bytes, version: int) -> None:
        if self.world.rosters_change:
            for to, message in self.keeper.noticed(name, roster_id, version, now_ms=self.now_ms):
                self.world.send(self.name, to, message)

    def _lease(self, alive: Sequence[str], now_ms: int, wall_ms: int) -> None:
        wanted = {slot_of(key) for key in self.world.keys} if self.world.keys else set()
        if self.world.rosters_change and self.keeper.wants_lease:
            wanted.add(ROSTER_SLOT)
        for slot in sorted(wanted):
            if slot not in self.holders:
                self.holders[slot] = Holder(slot, self.me)
        for slot, holder in list(self.holders.items()):
            roster = self.keeper.roster
            while ask := (
                holder.step(
                    roster=roster,
                    alive=alive,
                    promise=self.voter.promised(slot, now_ms=now_ms),
                    now_ms=now_ms,
                    wall_ms=wall_ms,
                )
                if slot in wanted
                else holder.retire(now_ms)
            ):
                for name in roster.names if roster is not None else ():
                    self.world.send(self.name, name, ask)
            if slot not in wanted:
                del self.holders[slot]
            elif slot != ROSTER_SLOT and holder.term(now_ms=now_ms):
                self._mint(holder, now_ms, wall_ms)

    def _mint(self, holder: Holder, now_ms: int, wall_ms: int) -> None:
        """Mint short windows whole and ahead, long ones tranche by tranche; say what is used."""
        term = holder.term(now_ms=now_ms)
        for key in self.world.keys:
            if slot_of(key) != holder.slot:
                continue
            length_ms = int(key.rpartition("/")[2])
            for window in (window_of(wall_ms, length_ms), window_of(wall_ms + 500, length_ms)):
                if length_ms <= 2_000:
                    holder.mint(key, window, AMOUNT)
                else:
                    base = holder.base(key, window)
                    made = max(0, base) + holder.made(key, window)
                    more = AMOUNT // 100 if self.world.rng.random() < 0.02 else 0
                    holder.mint(key, window, min(AMOUNT, max(0, made) + (more if base >= 0 else 0)))
                if holder.made(key, window):
                    top = holder.base(key, window) + holder.made(key, window)
                    self.world.used(key, window, term, self.me, holder.base(key, window), top)

    def _keep(self, now_ms: int, wall_ms: int) -> None:
        holder = self.holders.get(ROSTER_SLOT)
        term = holder.term(now_ms=now_ms) if holder is not None else 0
        synced = self.voter.synced
        for to, message in self.keeper.step(
            term=term, synced=synced, now_ms=now_ms, wall_ms=wall_ms
        ):
            self.world.send(self.name, to, message)
        kept = self.keeper.unkept or self.keeper.unkept_founding
        if kept is not None and not self.keeping:
            self.keeping = True
            self.world.keep(self, kept)


class World(Books):
    """All of them, and who watches."""

    def __init__(
        self,
        seed: int,
        *,
        names: Sequence[str],
        weather: Weather | None = None,
        keys: Sequence[str] = KEYS,
        rosters_change: bool = False,
        skew: bool = False,
    ) -> None:
        super().__init__()
        self.rng = Random(seed)
        self.keys = tuple(keys)
        self.rosters_change = rosters_change
        self.weather = weather or Weather()
        self.groups: list[frozenset[str]] = []
        self.left: list[str] = []
        self.detect_ms = 2_500
        self._since_ms: dict[str, int] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self.nodes: dict[str, Node] = {}
        for name in names:
            rate = 1 + (self.rng.uniform(-0.01, 0.01) if skew else 0)
            offset_ms = self.rng.randint(-100, 100) if skew else 0
            self.nodes[name] = Node(self, name, rate=rate, offset_ms=offset_ms)

    # ── what happens ─────────────────────────────────────────────────────────

    def start(self, *, roster: bool = True, expect: int = 1) -> None:
        """Boot all of them; with a roster of all, or without one."""
        together = replace(first(bytes(range(16)), self.nodes), proven=True) if roster else None
        for node in self.nodes.values():
            node.boot(expect=expect, roster=together)

    def restart(self, node: Node) -> None:
        """Begin another life of a node; without a disk it is told the roster by somebody.

        Clocks jump as they like while a node lives, but are not set back while it boots: that nobody can notice.
        """
        rosters = [other.keeper.roster for other in self.nodes.values() if other.boots]
        node.offset_ms += max(0, node.wall_max_ms - node.wall_ms)
        known = max((roster for roster in rosters if roster), key=lambda roster: roster.version)
        node.boot(roster=None if self.rosters_change else known)

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            while self._queue and self._queue[0][0] <= self.now_ms:
                heapq.heappop(self._queue)[2]()
            for node in self.nodes.values():
                if node.up and not node.paused:
                    inbox, node.inbox = node.inbox, []
                    for message, sender in inbox:
                        node.heard(message, sender)
                    node.tick()
            self._look()
            self.now_ms += TICK_MS

    def run_until(self, happens: Callable[[], bool], *, within_ms: int) -> int:
        """Let time pass until it happens, and say how long it took; it must."""
        began_ms = self.now_ms
        while not happens():
            assert self.now_ms - began_ms <= within_ms, f"not within {within_ms} ms"
            self.run(TICK_MS)
        return self.now_ms - began_ms

    def at(self, at_ms: int, do: Callable[[], None]) -> None:
        """Do something at a moment."""
        self._count += 1
        heapq.heappush(self._queue, (at_ms, self._count, do))

    def send(self, sender: str, to: str, message: Message) -> None:
        """Carry a message over the wire, as the weather is; a node's own come at once."""
        if to not in self.nodes:
            return
        if sender == to:
            life = self.nodes[to].me
            self.at(self.now_ms, lambda: self._arrive(to, message, sender, life))
            return
        times = 2 if self.rng.random() < self.weather.twice else 1
        for _ in range(times):
            if self.rng.random() < self.weather.loss:
                continue
            low_ms, high_ms = self.weather.delay_ms
            delay_ms = self.rng.randint(low_ms, high_ms)
            if self.rng.random() < self.weather.late:
                delay_ms += self.rng.randint(0, 3_000)
            self.at(self.now_ms + delay_ms, lambda: self._arrive(to, message, sender, None))

    def write(self, node: Node, rows: Sequence[Minted], then: Callable[[], None]) -> None:
        """Write rows to a disk, and say so, unless the life ends before."""
        life = node.me

        def written() -> None:
            if node.up and node.me == life and node.disk is not None:
                for row in rows:
                    place = (row.key, row.window)
                    node.disk.rows[place] = max(node.disk.rows.get(place, 0), row.total)
                node.voter.persisted(rows)
                then()

        self.at(self.now_ms + self.rng.randint(*self.weather.disk_ms), written)

    def keep(self, node: Node, kept: Roster | FoundingState) -> None:
        """Write a roster to a disk, or what a founding needs, and say so."""
        life = node.me

        def written() -> None:
            if not node.up or node.me != life:
                return
            node.keeping = False
            if node.disk is not None:
                node.disk.keep(kept, node.voter)
            if isinstance(kept, Roster):
                node.keeper.kept(kept, wall_ms=node.wall_ms)
                return
            for to, message in node.keeper.founding_kept(kept):
                self.send(node.name, to, message)

        self.at(self.now_ms + self.rng.randint(*self.weather.disk_ms), written)

    def sees(self, one: str, other: str) -> bool:
        """Return whether packets pass between two."""
        return not self.groups or any(one in group and other in group for group in self.groups)

    def seen_by(self, name: str) -> list[str]:
        """Return who is alive to one of them: silence is noticed after a while, return at once."""
        seen = []
        for other, node in sorted(self.nodes.items()):
            pair = f"{name}>{other}"
            if other == name or (node.up and not node.paused and self.sees(name, other)):
                self._since_ms[pair] = self.now_ms
            if other in self.left or not node.boots:
                continue
            since_ms = self._since_ms.get(pair, -self.detect_ms)
            if self.now_ms - since_ms < self.detect_ms:
                seen.append(other)
        return seen

    def left_names(self) -> Sequence[str]:
        """Return who said goodbye."""
        return [name for name in self.left if not self.nodes[name].up]

    def owner(self, slot: int) -> str:
        """Return who owns a slot now; empty if nobody does."""
        owners = [
            name for name, node in self.nodes.items() if slot in dict(node.owned()) and node.up
        ]
        assert len(owners) <= 1
        return owners[0] if owners else ""

    def part(self, name: str) -> int:
        """Return by what a node divides now."""
        return self.nodes[name].keeper.divisor()

    def _look(self) -> None:
        owned: dict[int, Life] = {}
        for node in self.nodes.values():
            for slot, term in node.owned():
                assert self.islands or slot not in owned, f"{owned[slot]} and {node.me} own {slot}"
                owned[slot] = node.me
                self.owned(slot, term, node.me)

    def _arrive(self, to: str, message: Message, sender: str, life: Life | None) -> None:
        node = self.nodes[to]
        if not node.up or not self.sees(sender, to) or (life is not None and node.me != life):
            return
        (packet,) = encode([message])
        (again,) = decode(packet)
        assert again == message
        if node.paused:
            node.inbox.append((message, sender))
        else:
            node.heard(message, sender)
