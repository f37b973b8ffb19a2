"""Replica of one life, with as much of a node's driver as decides how it fares.

What the replica wishes is done as a real node does it, after the call that wished it: news and digests go
to the membership core, conversations are opened by it, pieces that changed are written to the virtual disk
one after the other a while later, and the next `tick` comes when it was asked for, or a little later. A
process that stands still does none of it until it runs again.
"""

from collections.abc import Callable
from typing import Final, ParamSpec, Protocol, TypeVar

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import CALL, MS, SECOND
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import (
    CoreDriver,
    HasAgenda,
    HasNotes,
    HasSeed,
    HasTrace,
    PromiseReport,
)
from smg_chaos.simulate.hosts.state_write import Cell, Write
from smg_chaos.simulate.replicas.checkers import StateCheckers
from smg_chaos.simulate.replicas.live_pieces import LivePieces
from smg_chaos.simulate.replicas.recorded_views import Views
from smg_chaos.simulate.replicas.replica_interface import Replica, ReplicaFactory
from smg_chaos.simulate.replicas.write_ledger import WORKERS, Held, Ledger
from smg_mesh.config import StateOptions
from smg_mesh.crdt.namespace import StateError
from smg_mesh.swim.messages import News
from smg_mesh.sync.exchange.piece_interface import PieceError
from smg_mesh.sync.join_progress import Arrival
from smg_mesh.sync.replica_effects import (
    Count,
    DigestIs,
    Keep,
    OpenExchanges,
    SpreadRumor,
    Wake,
    Wish,
)

_LATE_US: Final = 500
_WISHES_MAX: Final = 100_000
"""What one call may wish; a node that pushes 50,000 keys at once says one thing per key at most."""
_WRITE_US: Final = 3 * MS
"""Time to write one file and to make sure of it, at most."""
_SAY_WHEN_MS: Final = 60_000
"""So often the disk learns that the node still runs."""

_ASK_US: Final = 500 * MS

_A = ParamSpec("_A")
_R = TypeVar("_R")


class ReplicaWorld(HasAgenda, HasSeed, HasNotes, HasTrace, PromiseReport, CoreDriver, Protocol):
    """The world of a life that shares state."""


class LifeCommons(Protocol):
    """The replicated state of the world that a life belongs to."""

    options: StateOptions
    watchful: bool
    make_replica: ReplicaFactory
    ledger: Ledger
    checkers: StateCheckers
    forgot: int

    @property
    def world(self) -> ReplicaWorld:
        """The world itself."""
        ...

    def number(self) -> int:
        """Return a number that no other life has."""
        ...


class ReplicaLife:
    """The replica of one node, from its start to its end."""

    def __init__(self, commons: LifeCommons, node: Node) -> None:
        self._commons = commons
        self._world = commons.world
        self.node = node
        self.name = node.name
        self._archive = node.host.disk.archive
        self._wishes: list[Wish] = []
        self._depth = 0
        self._doing: tuple[Callable[..., object], tuple[object, ...]] = (ReplicaLife, ())
        """What is being called, for reports."""
        self._due_ms: int | None = None
        self._unsaved: dict[str, None] = {}
        self._saving = False
        self._changed: dict[str, None] = {}
        """Pieces that were not looked at since they changed."""
        own = chance(self._world.setting.seed, "replica", node.host.label, node.host.lives)
        self._random = own.random
        self.held = Held(node.host.label)
        self.number = commons.number()
        self.replica: Replica = commons.make_replica(
            node.name,
            node.boot,
            options=commons.options,
            rng=own,
            now_ms=lambda: self._world.now_ms(node),
            wall_ms=self.wall_ms,
            tell=self._wishes.append,
        )
        self.pieces: Final = LivePieces(self)
        self.arrival = Arrival(
            node.name,
            grace_ms=commons.options.join_grace_ms,
            now_ms=lambda: self._world.now_ms(node),
        )
        self.forgot = 0
        self.refusals = 0
        self.remembered: dict[str, int] = {}
        """Versions of settings as this node's operators saw them last."""
        self.published: dict[str, int] = {}
        """When it wrote its registers last, by key."""
        self.views: Views = Views(self)

    @property
    def options(self) -> StateOptions:
        """What its replica was told."""
        return self._commons.options

    @property
    def now_us(self) -> int:
        """The world's time."""
        return self._world.agenda.now_us

    def wall_ms(self) -> int:
        """Return what the node's wall clock shows."""
        return self.node.host.wall_ms(self._world.agenda.now_us)

    # ── Beginning and end ────────────────────────────────────────────────────

    def begin(self) -> None:
        """Take what an earlier life left on the disk, then live."""
        self._commons.ledger.began(self.number, self.held)
        self.replica.watch_forgotten(self._forgot)
        self.run(self._load)
        self.run(self.replica.set_members, [(self.name, self.node.boot)])
        span_ms = min(_SAY_WHEN_MS, max(1, self._commons.options.removed_keep_ms // 20))
        self._say_when(span_ms * MS)
        self._arrive()
        self._tidy()

    def _load(self) -> None:
        archive, now_ms = self._archive, self.wall_ms()
        for name in sorted(archive.files):
            try:
                self.replica.load(name, archive.files[name])
            except PieceError as error:
                self.broken(f"cannot load what it kept: {error}")
        absent_ms = 0 if archive.wall_ms is None else max(0, now_ms - archive.wall_ms)
        self.replica.loaded(absent_ms)
        if not self.node.host.seeds:
            self.arrival.nobody = _true
            self.replica.alone()
        self._changed.update(dict.fromkeys(archive.files))
        self._commons.checkers.restored(self, archive.sure)

    def _say_when(self, again_us: int) -> None:
        self._archive.wall_ms = self.wall_ms()
        self._world.agenda.plan(
            self.now_us + again_us, CALL, self.node, self._say_when, (again_us,)
        )

    def close(self) -> None:
        """Write everything that is not on the disk yet: an orderly end."""
        while self._unsaved:
            self._write_one()
        self._archive.wall_ms = self.wall_ms()

    def end(self) -> None:
        """The process is gone."""
        self._commons.ledger.ended(self.number)

    def _tidy(self) -> None:
        """Clear away what removals made void, as a node does about once a second."""
        living = [one.name for one in self.node.core.members() if not one.rank.gone]
        self.run(self.views.workers.tidy, self.wall_ms(), living=living)
        self._world.agenda.plan(self.now_us + SECOND, CALL, self.node, self._tidy, ())

    # ── Calls ────────────────────────────────────────────────────────────────

    def run(self, deed: Callable[_A, _R], *args: _A.args, **named: _A.kwargs) -> _R:
        """Call something of the replica or above it, then do what it wished, then look at it."""
        self._depth += 1
        if self._depth == 1:
            self._doing = (deed, args)
        try:
            return deed(*args, **named)
        finally:
            if self._depth == 1:
                self._grant()
                self._look()
            self._depth -= 1

    def hear(self, news: News) -> None:
        """Take a rumor that the core heard."""
        self.run(self.replica.hear, news)

    def members_changed(self) -> None:
        """Tell the replica who lives."""
        core = self.node.core
        living = [(one.name, one.boot) for one in core.members() if not one.rank.gone]
        self.arrival.set_members([name for name, _ in living])
        self.run(self.replica.set_members, living)

    def rebooted(self, boot: int) -> None:
        """Go on as a later life."""
        self.run(self.replica.change_boot, boot)
        self.members_changed()

    def met(self, peer: str, *, full: bool, held: bool) -> None:
        """An exchange came to its end; `held`: the peer said that it holds the cluster's state."""
        self.arrival.met(peer, full=full, held=held)
        self.run(self.replica.met, peer, full=full)

    def _arrive(self) -> None:
        """Ask who was not asked yet, as long as this node does not hold the cluster's state."""
        if self.arrival.held:
            return
        name = self.arrival.ask()
        if name:
            self._perform(OpenExchanges("gap", name=name))
        self._world.agenda.plan(self.now_us + _ASK_US, CALL, self.node, self._arrive, ())

    def _tick(self, due_ms: int) -> None:
        if self._due_ms == due_ms:
            self._due_ms = None
            self.run(self.replica.tick)

    # ── Wishes ───────────────────────────────────────────────────────────────

    def _grant(self) -> None:
        granted = 0
        while self._wishes:
            wishes, self._wishes[:] = list(self._wishes), []
            for wish in wishes:
                granted += 1
                self._trace(wish)
                self._perform(wish)
            if granted > _WISHES_MAX:
                self.broken(f"wished more than {_WISHES_MAX} things in one call")
                return

    def _perform(self, wish: Wish) -> None:
        world, node = self._world, self.node
        match wish:
            case SpreadRumor(kind, key, content):
                effects = node.core.say(kind, key, content, now_ms=world.now_ms(node))
                world.react(node, "say", effects)
            case OpenExchanges(why, count, name):
                now_ms = world.now_ms(node)
                effects = node.core.converse(why, count=count, name=name, now_ms=now_ms)
                world.react(node, "converse", effects)
            case DigestIs(digest):
                node.core.set_document_digest(digest)
            case Keep(name):
                self._changed[name] = None
                self._keep(name)
            case Wake(due_ms):
                self._wake(due_ms)
            case Count(name, value, detail):
                noted = f"{name} {detail}".rstrip()
                world.notes[noted] = world.notes.get(noted, 0) + value

    def _wake(self, due_ms: int) -> None:
        if self._due_ms is not None and self._due_ms <= due_ms:
            return
        self._due_ms = due_ms
        due_us = (due_ms - self.node.offset_ms) * MS + int(self._random() * _LATE_US)
        self._world.agenda.plan(due_us, CALL, self.node, self._tick, (due_ms,))

    def _trace(self, wish: Wish) -> None:
        if self._world.trace is not None:
            self._world.trace.note(self.now_us, self.node.host.label, wish, ())

    # ── The disk ─────────────────────────────────────────────────────────────

    def _keep(self, name: str) -> None:
        self._unsaved[name] = None
        if not self._saving:
            self._saving = True
            apart_us = self._commons.options.save_apart_ms * MS
            due_us = self.now_us + int(self._random() * apart_us)
            self._world.agenda.plan(due_us, CALL, self.node, self._save, ())

    def _save(self) -> None:
        """Write one piece; the next one follows, and a crash may come between them."""
        self._write_one()
        if self._unsaved:
            due_us = self.now_us + int(self._random() * _WRITE_US)
            self._world.agenda.plan(due_us, CALL, self.node, self._save, ())
        else:
            self._saving = False

    def _write_one(self) -> None:
        name = next(iter(self._unsaved), None)
        if name is not None:
            del self._unsaved[name]
            self._archive.write(name, self.run(self.replica.dump, name))
            self._archive.wall_ms = self.wall_ms()
        if not self._unsaved:
            self._archive.complete(dict(self.held.writes), now_us=self.now_us)

    # ── Being watched ────────────────────────────────────────────────────────

    def wrote(self, write: Write) -> None:
        """Something was acknowledged here."""
        if self._commons.watchful:
            self._commons.ledger.wrote(self.number, write)
            self._commons.checkers.counts(self, write)

    def refused(self, refused: StateError) -> None:
        """A write was refused; only for a reason that can be."""
        self.refusals += 1
        if refused.reason not in ("full", "stale"):
            self.broken(f"refused a write: {refused.reason}, {refused}")

    def retired(self, cell: Cell) -> None:
        """An own entry was taken away here; in a log for good, of a worker because it is beaten."""
        if cell[0] != WORKERS:
            self._commons.ledger.retired(cell)

    def broken(self, promise: str) -> None:
        """Note that something happened which must not."""
        deed, args = self._doing
        about = f" {args[0]!r:.200}" if args else ""
        name = getattr(deed, "__name__", "")
        self._world.broken(f"{self.node.host.label} {promise}; in {name}{about}")

    def _forgot(self) -> None:
        """Everything was dropped, as it has to be after a long absence."""
        self.forgot += 1
        self._commons.forgot += 1
        self._commons.ledger.ended(self.number)
        self.held.writes.clear()
        self._commons.ledger.began(self.number, self.held)

    def _look(self) -> None:
        if self._changed:
            changed = list(self._changed)
            self._changed.clear()
            if self._commons.watchful:
                self._commons.checkers.look(self, changed)


def _true() -> bool:
    return True
