"""Replica: one node's copy of everything the nodes share, and what it has to tell them.

    a view writes ──▶ document ──▶ rumor or push ─────────────────▶ the others
    a rumor       ──▶ document, register or table ──▶ views hear
    an exchange   ──▶ pieces, compared by digest, merged whole ──▶ views hear, and it is passed on

    piece_store      the pieces and their digest   change_spreader     what is said, pushed, fetched
    upkeep_schedule  what is tidied up when        document_namespace  namespace over documents
    rumor_receiver   what rumors mean              bound_views         registers, tables, and clock
    wall_clock       the wall clock, doubted       stale_absence       away for too long, or not

Guaranteed: replicas that have exchanged everything hold the same; a write counts here at once. Not
guaranteed: that it survives if its node dies before any other heard of it and before its disk had
it. What a replica wants is told as effects (`replica_effects`) while it is called; nothing happens
between two calls.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents.document import DocumentError
from smg_mesh.crdt.documents.owned_registers import OwnedRegisters, Written
from smg_mesh.crdt.hybrid_clock import HybridClock
from smg_mesh.crdt.namespace import Namespace
from smg_mesh.crdt.registers.ephemeral_registers import Registers
from smg_mesh.crdt.tables.lww_table import Row
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import News
from smg_mesh.sync.bound_views import BoundRegisters, BoundTable
from smg_mesh.sync.change_spreader import PASS_ON_COUNT, PUSH_COUNT, Spreader
from smg_mesh.sync.exchange.piece_interface import REGISTERS, PieceError, PieceState
from smg_mesh.sync.piece_store import DocumentPiece, NamespaceState, PieceStore, ShardPiece
from smg_mesh.sync.replica_effects import Count, Wake, Wish
from smg_mesh.sync.rumor_receiver import REGISTER, TABLE, RumorReceiver
from smg_mesh.sync.stale_absence import Absence
from smg_mesh.sync.upkeep_schedule import Caretaker
from smg_mesh.sync.wall_clock import WallClock

__all__ = ["NamespaceState", "Replica"]

_TABLE_KEY_BYTES: Final = 8
_CLUSTER, _HISTORY, _HISTORY_BYTES = "cluster", "history", 8

Act = Callable[[OwnedRegisters], tuple[bytes, Sequence[str]]]
"""Does something with a document; returns an answer and the keys that it changed."""


class Replica:
    """Shared state of node `me` in its life `boot`; alone until `set_members` says otherwise."""

    def __init__(
        self,
        me: str,
        boot: int,
        *,
        options: StateOptions,
        rng: Rng,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tell: Callable[[Wish], None],
    ) -> None:
        self.me: Final = me
        self.held = False
        """A full exchange has come to its end, or there is nobody to have one with."""
        self._options: Final = options
        self._rng: Final = rng
        self._now_ms: Final = now_ms
        self._boot = boot
        self._dates_again = False
        clock = HybridClock(future_ms=options.future_ms)
        self._wall: Final = WallClock(
            wall_ms, clock=clock, future_ms=options.future_ms, fell_back=self._fell_back
        )
        self._wall_ms: Final = self._wall.ms
        self._tell: Final = tell
        self._wake_ms: int | None = None
        self._spreader: Final = Spreader(options, now_ms=now_ms, tell=tell, wake=self._wake)
        self._caretaker: Final = Caretaker(now_ms=now_ms, wake=self._wake)
        self._shelf: Final = PieceStore(
            me,
            options=options,
            rng=rng,
            clock=clock,
            wall_ms=self._wall_ms,
            tell=tell,
            wrote=self._wrote,
            wrote_row=self._wrote_row,
        )
        self._registers: Final = Registers(me, options=options, say=self._say_register)
        self._ears: Final = RumorReceiver(
            me,
            self._shelf,
            self._registers,
            spreader=self._spreader,
            caretaker=self._caretaker,
            now_ms=now_ms,
            wall_ms=self._wall_ms,
            tell=tell,
        )
        self._living: tuple[str, ...] = (me,)
        self._absence: Final = Absence(options.removed_keep_ms, now_ms())
        self._forgotten: list[Callable[[], None]] = []
        self._learned = False
        self.change_boot(boot)

    # ── What it holds, for views ─────────────────────────────────────────────

    def namespace(self, name: str) -> Namespace:
        """Return the namespace of that name; KeyError."""
        return self._shelf.namespaces[name]

    def table(self, name: str) -> BoundTable:
        """Return the table of that name; KeyError."""
        return BoundTable(self._shelf.tables[name], self._wall_ms)

    @property
    def registers(self) -> BoundRegisters:
        """The ephemeral registers."""
        return BoundRegisters(self._registers, self._now_ms, self._wake)

    @property
    def living(self) -> Sequence[str]:
        """The names of the members that live, this one too, sorted."""
        return self._living

    def state(self) -> Mapping[str, NamespaceState]:
        """Return what is held, by name."""
        return self._shelf.state()

    def digest(self) -> bytes:
        """Return 8 bytes over all pieces: equal where the same is held."""
        return self._shelf.digest()

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        """Tell `heard` when this node dropped what it held because it was away for too long."""
        self._forgotten.append(heard)

    # ── What happens to it ───────────────────────────────────────────────────

    def hear(self, news: News) -> None:
        """Take a rumor of another node; what is none of ours, or no sense, changes nothing."""
        self._ears.hear(news)
        self._wake_for_registers()

    def set_members(self, living: Sequence[tuple[str, int]]) -> None:
        """Learn which members live, and in which life; this node is among them, said or not."""
        now_ms = self._now_ms()
        names = sorted({self.me, *(name for name, _ in living)})
        gone = [name for name in self._living if name not in names]
        self._living = tuple(names)
        self._spreader.alone = len(names) == 1
        for name, boot in living:
            if name != self.me:
                self._registers.member_up(name, boot)
        for name in gone:
            self._registers.member_gone(name, now_ms)
        self._wake_for_registers()

    def change_boot(self, boot: int) -> None:
        """Go on as that life, whose writes are later than all before it began: boots are times, too."""
        self._shelf.clock.witness(boot, self._wall_ms())
        self._begin(boot)
        self._registers.change_boot(boot, now_ms=self._now_ms())

    def _begin(self, boot: int) -> None:
        self._boot = boot
        for space in self._shelf.namespaces.values():
            space.begin(boot)

    def met(self, peer: str, *, full: bool) -> None:
        """Learn that an exchange with that peer came to its end."""
        self.held |= full
        self._absence.met()
        if full and not self.history:
            number = self._rng.getrandbits(8 * _HISTORY_BYTES)
            self.namespace(_CLUSTER).put(_HISTORY, number.to_bytes(_HISTORY_BYTES, "big"))
        if self._learned:
            self._learned = False
            self._spreader.push(PASS_ON_COUNT)

    def alone(self) -> None:
        """Learn that no other node could know more."""
        self.held = True
        self._absence.met()

    def tick(self) -> None:
        """Do what is due; a `Wake` tells when to call again."""
        now_ms = self._now_ms()
        self._absence.tick(now_ms)
        self._look_at_clock(now_ms)
        self._wake_ms = None
        self._registers.tick(now_ms)
        self._spreader.tick(self._ears.holds)
        if self._caretaker.round_is_due():
            self._go_round()
        for name in self._caretaker.take():
            self._tend(name)
        self._wake_for_registers()

    def _look_at_clock(self, now_ms: int) -> None:
        """See whether the wall clock was set: then what waits for its time may be due in any document."""
        if self._dates_again:
            self._dates_again = False
            self._shelf.date_again()
        if self._wall.was_set(now_ms):
            for document in self._shelf.documents():
                self._caretaker.soon(document.name)

    # ── Pieces: what exchanges carry ─────────────────────────────────────────

    @property
    def stale(self) -> bool:
        """Back after longer than removals are kept, or without anything held: a fresh peer knows better."""
        return self._shelf.empty or self._absence.stale(self._now_ms())

    @property
    def history(self) -> bytes:
        """What all nodes of one cluster come to share; b"" before this node ever met another."""
        space = self._shelf.namespaces.get(_CLUSTER)
        held = None if space is None else space.get(_HISTORY)
        return b"" if held is None else held.value or b""

    def forget_stale(self) -> None:
        """Drop what may have been removed long ago. Watchers that list
        workers of this node hear of it.

        Own entries that are younger than removals grow are written again: their removals, if any,
        are remembered by some node.
        """
        if not self._absence.stale(self._now_ms()):
            return
        self._absence.over(self._now_ms())
        self._tell(Count("state_forgotten"))
        young_ms = self._wall_ms() - self._options.removed_keep_ms
        self._shelf.forget(older_than_ms=young_ms)
        self._spreader.clear()
        for heard in self._forgotten:
            heard()

    def holdings(self, *, full: bool) -> Sequence[PieceState]:
        """Return every piece that is not empty, sorted by name."""
        return sorted(self._shelf.holdings(), key=lambda piece: piece.name)

    def epoch(self, name: str) -> int:
        """Return the epoch at which this side holds a piece; 0 if it does not."""
        document = self._shelf.document(name)
        return 0 if document is None else document.epoch

    def summary(self, name: str, epoch: int) -> bytes:
        """Return what this side holds of a piece at that epoch, moving up to it if it is later."""
        if name == REGISTERS:
            return b""
        found = self._shelf.find(name)
        if isinstance(found, ShardPiece):
            return found.table.summary(found.shard)
        return self._act(found, lambda document: (document.summary(epoch), ()))

    def missing(self, name: str, epoch: int, summary: bytes) -> bytes:
        """Return what a side that said `summary` lacks; PieceError if that makes no sense."""
        if name == REGISTERS:
            return self._registers.dump(self._now_ms())
        found = self._shelf.find(name)
        try:
            if isinstance(found, ShardPiece):
                return found.table.missing(found.shard, summary)
            return self._act(found, lambda document: (document.missing(epoch, summary), ()))
        except (DocumentError, ValueError) as error:
            raise PieceError("summary", f"{name}: {error}") from error

    def merge(self, name: str, epoch: int, update: bytes, *, peer: str) -> None:
        """Take in what a peer sent; PieceError if it is none, and then nothing has changed."""
        try:
            if name == REGISTERS:
                self._registers.merge(update, self._now_ms())
                self._wake_for_registers()
                return
            found = self._shelf.find(name)
            before = self._shelf.digest_of(name)
            if isinstance(found, ShardPiece):
                found.table.merge(found.shard, update, self._wall_ms())
                self._shelf.changed(name)
            else:
                self._act(found, lambda document: (b"", document.merge(epoch, update)))
        except (DocumentError, ValueError) as error:
            raise PieceError("update", f"{name} of {peer}: {error}") from error
        if self._shelf.digest_of(name) != before:
            self._learned = True
            self._tell(Count("state_learned", detail=name.partition("/")[0]))

    # ── The disk ─────────────────────────────────────────────────────────────

    def pieces(self) -> Sequence[str]:
        """Return the names of all pieces that belong on disk."""
        return self._shelf.names()

    def dump(self, name: str) -> bytes:
        """Return what is kept of a piece; b"" if it is empty."""
        return self._shelf.find(name).dump()

    def load(self, name: str, content: bytes) -> None:
        """Take in what an earlier life kept; PieceError if it is damaged."""
        try:
            found = self._shelf.find(name)
            if isinstance(found, ShardPiece):
                found.table.load(found.shard, content, self._wall_ms())
                self._shelf.changed(name)
            else:
                self._act(found, lambda document: (b"", document.load(content)))
        except (DocumentError, ValueError) as error:
            raise PieceError("disk", f"{name}: {error}") from error

    def loaded(self, absent_ms: int) -> None:
        """Learn that everything kept is loaded, and how long this node was away."""
        self._absence.loaded(absent_ms, self._now_ms())

    # ── Own writes ───────────────────────────────────────────────────────────

    def _wrote(self, document: str, written: Written) -> None:
        self._spreader.wrote(document, written)
        self._caretaker.soon(document)
        self._shelf.changed(document)

    def _wrote_row(self, name: str, row: Row) -> None:
        table = self._shelf.tables[name]
        key = blake2b(row.key.encode(), digest_size=_TABLE_KEY_BYTES).hexdigest()
        spread = self._spreader
        brief = self._options.brief_tables.get(name)
        say = spread.say_if_easy if brief is not None and brief.yields else spread.say
        say(TABLE + name, key, table.pack(row))
        self._caretaker.keep_going()
        self._shelf.changed(f"{name}/{table.shard_of(row.key)}")

    def _say_register(self, kind: str, key: str, content: bytes) -> None:
        self._spreader.say_now(REGISTER + kind, key, content)

    # ── Documents and rows ───────────────────────────────────────────────────

    def _act(self, at: DocumentPiece, act: Act) -> bytes:
        """Do something with a document that may change it, also by moving it to a later epoch."""
        document = at.document
        before = document.epoch
        was_empty = document.empty
        answer, changed = act(document)
        if document.epoch != before and not was_empty:
            self._begun_anew()
            changed = document.keys()
        if changed:
            self._caretaker.soon(document.name)
        self._shelf.changed(document.name)
        at.space.changed(document, changed)
        return answer

    def _tend(self, name: str) -> None:
        found = self._shelf.find(name)
        assert isinstance(found, DocumentPiece)
        document = found.held
        if document is None:
            return
        before, now_ms = document.epoch, self._now_ms()
        tended = document.tend(wall_ms=self._wall_ms(), now_ms=now_ms, living=self._living)
        for written in tended.writes:
            self._spreader.wrote(name, written)
        if tended.deleted:
            # Not by rumor: a deletion that came before what it made room for would leave nothing at all.
            self._spreader.push(PASS_ON_COUNT)
        if document.epoch != before:
            self._begun_anew()
        if tended.due_ms is not None:
            self._caretaker.at(name, max(tended.due_ms, now_ms + 1))
        self._shelf.changed(name)
        found.space.changed(document, tended.changed)

    def _begun_anew(self) -> None:
        """An epoch began: own entries were written again, where no other node has them yet."""
        self._tell(Count("state_epoch"))
        self._spreader.push(PUSH_COUNT)

    def _go_round(self) -> None:
        """Look at what nothing happened to: documents and rows grow old."""
        self._caretaker.go_round([document.name for document in self._shelf.documents()])
        if self._shelf.expire():
            self._caretaker.keep_going()

    def _fell_back(self) -> None:
        """The wall clock was wrong: what is written from now on is earlier, and counts as of a later life."""
        self._dates_again = True
        self._begin(self._boot + 1)
        self._wake(self._now_ms())

    def _wake(self, due_ms: int) -> None:
        if self._wake_ms is None or due_ms < self._wake_ms:
            self._wake_ms = due_ms
            self._tell(Wake(due_ms))

    def _wake_for_registers(self) -> None:
        due_ms = self._registers.due_ms()
        if due_ms is not None:
            self._wake(due_ms)
