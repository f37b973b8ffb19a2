"""Ledgers and treasuries of a few nodes in virtual time, over a network that loses, repeats and reorders.

Leases are the world's own: it says who owns everything, under which term, and stores what is minted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from smg_mesh.escrow.audit.auditor import audit
from smg_mesh.escrow.book_rows import Held, Minting
from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.messages import RightsAsk, RightsGive
from smg_mesh.escrow.owning.treasury import Treasury
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.escrow.spending.lived_time import LivedTime
from smg_mesh.escrow.spending.released_slices import ReleasedSlices
from smg_mesh.escrow.spending.spending_ledger import Ledger

WALL_MS = 1_700_000_000_000
"""A border of all windows up to a second; days begin elsewhere."""


class Defined:
    def __init__(self, *limits: Limit) -> None:
        self.limits = {limit.key: limit for limit in limits}

    def get(self, key: str) -> Limit | None:
        return self.limits.get(key)

    def basis(self) -> bytes:
        return b"as it is"


@dataclass
class Store:
    """What a majority has stored."""

    totals: dict[tuple[str, int], int] = field(default_factory=dict)
    delay_ms: int = 4


class Lease:
    """What one term of one owner has minted."""

    def __init__(self, world: "World", name: str, term: int) -> None:
        self._world = world
        self._name = name
        self._term = term
        self._bases: dict[tuple[str, int], int] = {}
        self._made: dict[tuple[str, int], int] = {}
        self._wished: dict[tuple[str, int], int] = {}

    def term(self, *, now_ms: int) -> int:
        return self._term if self._world.owner == (self._name, self._term) else 0

    def mint(self, key: str, window: int, total: int, *, urgent: bool = False) -> None:
        world = self._world
        self._wished[key, window] = max(total, self.wished(key, window))
        world.later(world.store.delay_ms, lambda: self._store((key, window), total))

    def wished(self, key: str, window: int) -> int:
        return self._wished.get((key, window), -1)

    def minted(self, key: str, window: int) -> int:
        place = (key, window)
        return self._world.store.totals.get(place, 0) if place in self._bases else -1

    def made(self, key: str, window: int) -> int:
        return self._made.get((key, window), 0)

    def current(self, basis: bytes, *, began_ms: int) -> frozenset[str]:
        return frozenset(self._world.roster.names if self._world.adopted_ms < began_ms else ())

    def _store(self, place: tuple[str, int], total: int) -> None:
        if not self.term(now_ms=0):
            return
        totals = self._world.store.totals
        before = totals.get(place, 0)
        self._bases.setdefault(place, before)
        if total > before:
            totals[place] = total
            self._made[place] = self._made.get(place, 0) + total - before


class Node:
    def __init__(self, world: "World", name: str, boot: int, offset_ms: int = 0) -> None:
        self.world = world
        self.life = Life(name, boot)
        self.offset_ms = offset_ms
        now_ms, wall_ms = world.now_ms, self.wall_ms
        memory_ms = world.lost_ms.get(name, 0)
        released = ReleasedSlices(world.disks.get(name), memory_ms=lambda: memory_ms)
        self.lived = LivedTime(None, now_ms=now_ms, wall_ms=wall_ms)
        """What this life has seen; what those before it have, is not kept here."""
        self.ledger = Ledger(
            self.life,
            world.limits,
            now_ms=now_ms,
            wall_ms=wall_ms,
            lived=self.lived,
            released=released,
            called=self._called,
        )
        self.treasury = Treasury(self.life, world.limits, lived=self.lived)
        self.leases: dict[int, Lease] = {}
        self.cut = False
        self.alone = False
        self.paused = False
        self.peak_ms = self.wall_ms
        known_ms = wall_ms if boot > 1 else wall_ms - 86_400_000
        self.ledger.follow(
            world.roster, len(world.roster.names), wall_ms=known_ms, founder=boot == 1
        )
        self._write()

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.world.now_ms + self.offset_ms

    def _called(self) -> None:
        self.ledger.hear(self.world.now_ms)

    def lease(self, _: int) -> Lease | None:
        name, term = self.world.owner
        if name != self.life.name:
            return None
        return self.leases.setdefault(term, Lease(self.world, name, term))

    def owner(self, _: int) -> str:
        if self.cut:
            return self.life.name if self.alone else ""
        return self.world.known_owner

    def tick(self) -> None:
        self.peak_ms = max(self.peak_ms, self.wall_ms)
        world, now_ms, wall_ms = self.world, self.world.now_ms, self.wall_ms
        self._write()
        asks = self.ledger.tick(
            now_ms=now_ms, wall_ms=wall_ms, owners=self.owner, majority=not self.cut
        )
        for owner, ask in asks:
            world.send(self, owner, ask)
        gives = self.treasury.tick(
            ownership=self.lease,
            alive=[node.life for node in world.nodes.values()],
            roster=world.roster,
            now_ms=now_ms,
            wall_ms=wall_ms,
        )
        for life, give in gives:
            world.send(self, life.name, give)

    def _write(self) -> None:
        """Write to the disk of this name what the ledger wants written, before it says anything of it."""
        self.lived.written(self.lived.unwritten(spends=self.ledger.spends))
        rows = self.ledger.unwritten(now_ms=self.world.now_ms)
        disk = self.world.disks.setdefault(self.life.name, {})
        for row in rows:
            place = (row.key, row.window)
            disk[place] = max(row.total, disk.get(place, 0))
        self.lived.written(rows)
        self.ledger.written(rows, now_ms=self.world.now_ms)

    def hear(self, message: RightsAsk | RightsGive) -> None:
        now_ms, wall_ms = self.world.now_ms, self.wall_ms
        if isinstance(message, RightsGive):
            self.ledger.given(message, now_ms=now_ms, wall_ms=wall_ms)
            return
        give = self.treasury.asked(
            message,
            ownership=self.lease,
            alone=self.alone and self.cut,
            roster=self.world.roster,
            now_ms=now_ms,
            wall_ms=wall_ms,
            alive=[node.life for node in self.world.nodes.values()],
        )
        if give is not None:
            self.world.send(self, message.name, give)

    def share(self, key: str) -> Share | None:
        limit = self.world.limits.get(key)
        if limit is None:
            return None
        share = self.ledger.peek(key)
        if share is None or share.left <= 0:
            share = self.ledger.share(limit, now_ms=self.world.now_ms, wall_ms=self.wall_ms)
        return share

    def spend(self, key: str, cost: int = 1) -> bool:
        """Admit, as admission does; count what was admitted by window."""
        share = self.share(key)
        if share is None:
            return False
        share.offered += cost
        if share.left < cost:
            return False
        share.left -= cost
        share.spent += cost
        if share.left < share.low:
            share.wants_more = True
        self.world.admitted(key, share.window, self.life.name, cost)
        return True


class World:
    def __init__(self, *limits: Limit, names: str = "abcde", seed: int = 1) -> None:
        self.now_ms = 0
        self.rng = Random(seed)
        self.limits = Defined(*limits)
        self.store = Store()
        self.adopted_ms = -(1 << 62)
        """When all nodes went by the limits of now, by the wall clock."""
        self.roster = Roster(
            id=bytes(16), version=1, names=tuple(names), divisors=(len(names),) * len(names)
        )
        self.disks: dict[str, dict[tuple[str, int], int]] = {}
        """By name, what outlives its processes."""
        self.lost_ms: dict[str, int] = {}
        """By name, when a disk was lost last."""
        self.owner = ("a" if "a" in names else names[0], 1)
        self.known_owner = self.owner[0]
        self.delay_ms = 2
        self.jitter_ms = 0
        self.loss = 0.0
        self.repeat = 0.0
        self.packets = 0
        self.got: dict[tuple[str, int], int] = {}
        self.by_node: dict[tuple[str, int, str], int] = {}
        self._book: dict[tuple[object, ...], Held | Minting] = {}
        """The last row of everything there was, also of the dead and the forgotten."""
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self.nodes: dict[str, Node] = {name: Node(self, name, 1) for name in names}

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._due, (self.now_ms + delay_ms, self._count, what))

    def send(self, sender: Node, to: str, message: RightsAsk | RightsGive) -> None:
        local = to == sender.life.name
        times = 1
        if not local:
            self.packets += 1
            times = 1 + (self.rng.random() < self.repeat)
        for _ in range(times):
            if not local and self.rng.random() < self.loss:
                continue
            delay_ms = 0 if local else self.delay_ms + self.rng.randint(0, self.jitter_ms)
            self.later(delay_ms, lambda: self._deliver(sender, to, message))

    def _deliver(self, sender: Node, to: str, message: RightsAsk | RightsGive) -> None:
        node = self.nodes.get(to)
        if node is None or node.paused or (node.cut != sender.cut):
            return
        node.hear(message)

    def admitted(self, key: str, window: int, name: str, cost: int) -> None:
        self.got[key, window] = self.got.get((key, window), 0) + cost
        place = (key, window, name)
        self.by_node[place] = self.by_node.get(place, 0) + cost

    def hand_over(self, name: str) -> None:
        """Let somebody else be the owner, under the next term; empty: nobody."""
        self.owner = (name, self.owner[1] + 1)
        self.known_owner = name

    def lose_disk(self, name: str) -> None:
        """Let the disk of a name be lost; its process goes on until it is restarted."""
        self.disks[name] = {}
        self.lost_ms[name] = WALL_MS + self.now_ms

    def restart(self, name: str) -> None:
        """Let a node die and come back at once: another life, and no lease.

        What a life did by a clock that was far ahead, the next one cannot know: such a node goes on.
        """
        node = self.nodes[name]
        if node.wall_ms < node.peak_ms - 200:
            return
        self.rows()
        self.nodes[name] = Node(self, name, node.life.boot + 1, node.offset_ms)
        if self.owner[0] == name:
            self.owner = (name, self.owner[1] + 1)

    def run(
        self, for_ms: int, load: Callable[["World"], None] | None = None, *, audits: bool = False
    ) -> None:
        """Go on millisecond by millisecond; nodes tick every five, one after the other."""
        end_ms = self.now_ms + for_ms
        while self.now_ms < end_ms:
            self.now_ms += 1
            while self._due and self._due[0][0] <= self.now_ms:
                heappop(self._due)[2]()
            for index, node in enumerate(self.nodes.values()):
                if (self.now_ms + index) % 5 == 0 and not node.paused:
                    node.tick()
            if load is not None:
                load(self)
            if audits and self.now_ms % 20 == 0:
                self.check()

    def cut(self, name: str, *, off: bool) -> None:
        """Let a node see no majority, or see it again; an owner is none without one."""
        self.nodes[name].cut = off
        if off and self.owner[0] == name:
            self.hand_over("")

    def rows(self) -> list[Held | Minting]:
        for node in self.nodes.values():
            rows: list[Held | Minting] = [*node.ledger.rows()]
            rows += node.treasury.rows()
            for row in rows:
                term = row.term if isinstance(row, Minting) else -1
                self._book[row.key, row.window, row.name, row.boot, term] = row
        return list(self._book.values())

    def check(self) -> None:
        """Everything adds up, and every pool and share is what the books say."""
        faults = audit(self.rows())
        assert not faults, faults[0]


def rate(**per_s: float) -> Callable[[World], None]:
    """Return a load of so many single units a second, evenly, by node; of every key."""
    owed = dict.fromkeys(per_s, 0.0)

    def load(world: World) -> None:
        for name, speed in per_s.items():
            owed[name] += speed / 1000
            while owed[name] >= 1:
                owed[name] -= 1
                node = world.nodes.get(name)
                if node is not None and not node.paused:
                    for key in world.limits.limits:
                        node.spend(key)

    return load
