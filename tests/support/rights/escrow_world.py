"""A cluster of rights in memory, on virtual time: real facades, a network that may lose, disks that may fail."""

import heapq
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from smg_mesh.escrow.audit.auditor import Fault, audit, overspent
from smg_mesh.escrow.book_rows import Held, Row
from smg_mesh.escrow.escrow_core import Escrow
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.effects import (
    Difference,
    Effect,
    KeepFounding,
    KeepRoster,
    Note,
    Persist,
    Send,
)

BEGIN_WALL_MS = 1_700_000_000_000
DISK_MS = 3


class Defined:
    """Limits as a test says them; nodes share the table and hear of changes when the test says so."""

    def __init__(self, *limits: Limit) -> None:
        self.limits = {limit.key: limit for limit in limits}
        self.version = 1

    def get(self, key: str) -> Limit | None:
        return self.limits.get(key)

    def basis(self) -> bytes:
        return bytes(8) if not self.limits else self.version.to_bytes(8, "big")


@dataclass
class Disk:
    """What outlives a node."""

    minted: dict[tuple[str, int], int] = field(default_factory=dict)
    roster: Roster | None = None
    founding: FoundingState | None = None
    full: bool = False


@dataclass
class Tally:
    """What one node admitted and refused, by (key, window)."""

    admitted: dict[tuple[str, int], int] = field(default_factory=dict)
    refused: dict[tuple[str, int], int] = field(default_factory=dict)


class Node:
    """One life of one node."""

    def __init__(self, world: "World", name: str, boot: int, disk: Disk | None) -> None:
        self.world = world
        self.name = name
        self.boot = boot
        self.disk = disk
        self.skew_ms = 0
        self.up = True
        self.paused_until_ms = 0
        self.packets = 0
        self.ticks = 0
        self.notes: dict[str, int] = {}
        remembers = disk is not None
        self.core = Escrow(
            Life(name, boot),
            limits=world.limits,
            expect=world.expect,
            roster=disk.roster if disk is not None else None,
            remembered=dict(disk.minted) if disk is not None and remembers else None,
            rng=random.Random(f"{name}:{boot}:{world.seed}"),
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            called=self._called,
            founding=disk.founding if disk is not None else None,
        )
        self._planned_ms: int | None = None

    @property
    def now_ms(self) -> int:
        """The monotonic clock of this life: it begins anywhere."""
        return self.world.now_ms + 1_000 * (self.boot % 97)

    @property
    def wall_ms(self) -> int:
        return BEGIN_WALL_MS + self.world.now_ms + self.skew_ms

    def perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to=to, data=data):
                    self.packets += 1
                    self.world.send(self, to, data)
                case Persist(token=token):
                    self._write(token, effect)
                case KeepRoster(token=token) | KeepFounding(token=token):
                    self._write(token, effect)
                case Note(name=name, value=value, detail=detail):
                    key = f"{name}/{detail}" if detail else name
                    self.notes[key] = self.notes.get(key, 0) + value
                case Difference():
                    self.world.differences.append(effect)
        self.plan()

    def _write(self, token: int, wish: Persist | KeepRoster | KeepFounding) -> None:
        def written() -> None:
            disk = self.disk
            if disk is not None and disk.full:
                return
            if disk is not None and isinstance(wish, Persist):
                for row in wish.rows:
                    place = (row.key, row.window)
                    disk.minted[place] = max(disk.minted.get(place, 0), row.total)
            elif disk is not None and isinstance(wish, KeepRoster):
                disk.roster, disk.founding = wish.roster, None
            elif disk is not None and isinstance(wish, KeepFounding):
                disk.founding = wish.state
            done = self.core.persisted(token, now_ms=self.now_ms, wall_ms=self.wall_ms)
            self.perform(done)

        self.world.after(DISK_MS, self, written)

    def _called(self) -> None:
        self.core.hear(now_ms=self.now_ms)
        self.plan()

    def plan(self) -> None:
        due_ms = self.core.due_ms()
        if due_ms is None:
            return
        at_ms = max(self.world.now_ms, due_ms - self.now_ms + self.world.now_ms)
        if self._planned_ms is None or at_ms < self._planned_ms:
            self._planned_ms = at_ms
            self.world.at(at_ms, self, lambda: self._tick(at_ms))

    def _tick(self, at_ms: int) -> None:
        if self._planned_ms != at_ms:
            return
        self._planned_ms = None
        self.ticks += 1
        self.perform(self.core.tick(now_ms=self.now_ms, wall_ms=self.wall_ms))

    def offer(self, key: str, cost: int = 1) -> bool:
        """Ask for so much, as admission does."""
        if not self.up or self.world.now_ms < self.paused_until_ms:
            return False
        share = self.core.share(key, now_ms=self.now_ms, wall_ms=self.wall_ms)
        self.plan()
        if share is None:
            return True
        share.offered += cost
        place = (key, share.window)
        if share.left < cost:
            self.world.tally.refused[place] = self.world.tally.refused.get(place, 0) + cost
            share.wants_more = True
            return False
        share.left -= cost
        share.spent += cost
        if share.left < share.low:
            share.wants_more = True
        self.world.tally.admitted[place] = self.world.tally.admitted.get(place, 0) + cost
        return True


class World:
    """Nodes by name, on one virtual clock."""

    def __init__(
        self,
        names: Sequence[str],
        limits: Defined,
        *,
        seed: int = 1,
        expect: int | None = None,
        loss: float = 0.0,
        delay_ms: tuple[int, int] = (1, 3),
        disks: bool = True,
    ) -> None:
        self.seed = seed
        self.limits = limits
        self.expect = len(names) if expect is None else expect
        self.loss = loss
        self.delay_ms = delay_ms
        self.now_ms = 0
        self.tally = Tally()
        self.differences: list[Difference] = []
        self.cut: Callable[[str, str], bool] = lambda _one, _other: False
        self.overhear: Callable[[bytes], object] = lambda _data: None
        self.dead_rows: list[Row] = []
        self._rng = random.Random(seed)
        self._order = itertools.count()
        self._queue: list[tuple[int, int, Node | None, Callable[[], None]]] = []
        self._boots = itertools.count(7)
        self.disks = {name: Disk() if disks else None for name in names}
        self.nodes: dict[str, Node] = {}
        for name in names:
            self._begin(name)
        self.tell_members()

    def _begin(self, name: str) -> Node:
        node = self.nodes[name] = Node(self, name, next(self._boots), self.disks.setdefault(name))
        node.plan()
        return node

    # ── Time ─────────────────────────────────────────────────────────────────

    def at(self, at_ms: int, node: Node | None, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (at_ms, next(self._order), node, act))

    def after(self, delay_ms: int, node: Node | None, act: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, node, act)

    def run(self, ms: int, each: Callable[[], None] | None = None) -> None:
        """Let time pass, and call `each` once a millisecond."""
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            if each is not None:
                each()
            self.now_ms += 1
            while self._queue and self._queue[0][0] <= self.now_ms:
                _, _, node, act = heapq.heappop(self._queue)
                if node is None or node.up:
                    if node is not None and node.paused_until_ms > self.now_ms:
                        self.at(node.paused_until_ms, node, act)
                    else:
                        act()

    def until(self, true: Callable[[], bool], *, at_most_ms: int = 10_000) -> int:
        """Let time pass until something is so; return how long that took."""
        begun_ms = self.now_ms
        while not true():
            assert self.now_ms - begun_ms < at_most_ms, "never"
            self.run(1)
        return self.now_ms - begun_ms

    # ── What happens ─────────────────────────────────────────────────────────

    def send(self, sender: Node, to: str, data: bytes) -> None:
        self.overhear(data)
        node = self.nodes.get(to)
        if node is None or not node.up or self.cut(sender.name, to):
            return
        if self._rng.random() < self.loss:
            return
        copies = 2 if self.loss and self._rng.random() < self.loss / 2 else 1
        for _ in range(copies):
            self.after(
                self._rng.randint(*self.delay_ms),
                node,
                lambda: self._arrive(node, data, sender.name),
            )

    def _arrive(self, node: Node, data: bytes, sender: str) -> None:
        effects = node.core.handle(data, sender, now_ms=node.now_ms, wall_ms=node.wall_ms)
        node.perform(effects)

    def tell_members(self, *, left: Sequence[str] = ()) -> None:
        """Tell every node whom it can see."""
        for node in self.living():
            alive = [
                Life(other.name, other.boot)
                for other in self.living()
                if not self.cut(node.name, other.name)
            ]
            node.core.members(sorted(alive), left, now_ms=node.now_ms)
            node.plan()

    def kill(self, name: str) -> None:
        """Let a node die; the others hear of it three seconds later."""
        node = self.nodes[name]
        self.dead_rows += node.core.rows()
        node.up = False
        self.after(3_000, None, self.tell_members)

    def restart(self, name: str) -> Node:
        if self.nodes[name].up:
            self.dead_rows += self.nodes[name].core.rows()
            self.nodes[name].up = False
        node = self._begin(name)
        self.after(200, None, self.tell_members)
        return node

    def cut_off(self, names: Sequence[str]) -> None:
        """Cut some from the others, who notice three seconds later."""
        self.cut = lambda one, other: (one in names) != (other in names)
        self.after(3_000, None, self.tell_members)

    def heal(self) -> None:
        self.cut = lambda _one, _other: False
        self.after(500, None, self.tell_members)

    def redefine(self, *limits: Limit, heard_by: Sequence[str] | None = None) -> None:
        """Define limits anew; all nodes hear of it at once."""
        self.limits.limits = {limit.key: limit for limit in limits}
        self.limits.version += 1
        for node in self.living():
            node.core.limits_changed(now_ms=node.now_ms, wall_ms=node.wall_ms)
            node.plan()

    # ── What is there ────────────────────────────────────────────────────────

    def living(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.up]

    def owner(self, key: str) -> Node | None:
        """Return the node that owns a key now."""
        for node in self.living():
            report = node.core.report(key, wall_ms=node.wall_ms)
            if report is not None and report.term:
                return node
        return None

    def window(self, window_ms: int) -> int:
        return (BEGIN_WALL_MS + self.now_ms) // window_ms

    def to_border(self, window_ms: int) -> int:
        """Return how long it is until a window of that length begins."""
        return window_ms - (BEGIN_WALL_MS + self.now_ms) % window_ms

    def rows(self) -> list[Row]:
        """Return the rows of all that live, and the last ones of those that do not."""
        return [*self.dead_rows, *(row for node in self.living() for row in node.core.rows())]

    def faults(self) -> list[Fault]:
        """Return what does not add up in windows that all who live still have in their books."""
        return audit(row for row in self.rows() if row.window >= self._kept_from(row.key))

    def _kept_from(self, key: str) -> int:
        return self.window(self.limits.limits[key].window_ms) - 2

    def overspent(self) -> list[Fault]:
        return overspent(self.rows())

    def spent(self, key: str) -> Mapping[int, int]:
        """Return what was spent by window, as the nodes wrote it down."""
        sums: dict[int, int] = {}
        for row in self.rows():
            if isinstance(row, Held) and row.key == key:
                sums[row.window] = sums.get(row.window, 0) + row.spent
        return sums


def load(
    world: World, key: str, rates_per_s: Mapping[str, float], cost: int = 1
) -> Callable[[], None]:
    """Return what offers so much a second at each node, evenly, when called once a millisecond."""
    owed = dict.fromkeys(rates_per_s, 0.0)

    def each() -> None:
        for name, rate in rates_per_s.items():
            owed[name] += rate / 1000
            while owed[name] >= 1:
                owed[name] -= 1
                world.nodes[name].offer(key, cost)

    return each
