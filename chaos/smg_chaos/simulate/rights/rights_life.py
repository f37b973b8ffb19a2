"""Rights of one life of a node: its packets, disk, clocks, and the clients that ask it.

It does what a driver does with the effects of `Escrow`, and nothing of its own. Customers come every 5 ms while
there are any; ticks come when they are due.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import CALL, MS, RIGHTS, SECOND
from smg_chaos.simulate.hosts.host import Host, Node
from smg_chaos.simulate.hosts.ports import HasAgenda, HasNetwork, HasNotes, HasSeed, PromiseReport
from smg_chaos.simulate.rights.admission_books import LINGERS_US, Books, Page
from smg_chaos.simulate.rights.definitions import Heard
from smg_chaos.simulate.rights.escrow import RightsCore, RightsFactory
from smg_chaos.simulate.rights.limit_clients import Customers
from smg_chaos.simulate.rights.limit_judge import Judge
from smg_chaos.simulate.rights.open_permits import Openings
from smg_chaos.simulate.rights.rights_setting import RightsSetting
from smg_mesh.escrow.book_rows import Minting
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
from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.escrow.spending.lived_time import LivedTime
from smg_mesh.swim.messages import Address, Rank

_TICK_US: Final = 5 * MS
_LATE_US: Final = 500
_WRITE_US: Final = (1 * MS, 60 * MS)
"""A write to disk takes that long; writes are synced in groups."""
_LOOK_EVERY: Final = 8
"""Inputs without a packet in return after which the books are looked at anyway: what this node has of a window
can have moved only inside of it."""
_IDLE_US: Final = SECOND


class RightsWorld(HasAgenda, HasSeed, HasNetwork, HasNotes, PromiseReport, Protocol):
    """The world of a life that has rights."""


class LifeMarket(Protocol):
    """The rights of the world that a life belongs to."""

    setting: RightsSetting
    make_core: RightsFactory
    books: Books
    openings: Openings
    judge: Judge
    failing_writes: float
    roster_us: int

    @property
    def world(self) -> RightsWorld:
        """The world itself."""
        ...

    def tellers(self) -> list["Teller"]:
        """Return all that live now."""
        ...

    def pace_ppm(self, number: int) -> int:
        """Return how much faster the clock of that host runs."""
        ...

    def known_to(self, host: Host) -> Iterable[Limit]:
        """Return the definitions a life begins with."""
        ...

    def name_at(self, address: Address) -> str:
        """Return whose packets come from there."""
        ...

    def count_packet(self, label: str) -> None:
        """Count a packet that a node sends."""
        ...

    def wrote(self, teller: "Teller", effects: Sequence[Effect]) -> None:
        """Count an input of a node's rights."""
        ...

    def writes(self, teller: "Teller", rows: Sequence[Minted]) -> int:
        """Take note of what a node begins to write; return how much longer than usual that takes."""
        ...

    def took_office(self, row: Minting) -> None:
        """Take note of who owns a window for the first time."""
        ...


class Teller:
    """One life's rights. Without a node that runs it is not asked."""

    def __init__(self, market: LifeMarket, node: Node) -> None:
        world = market.world
        self.market = market
        self.node = node
        self._own = chance(world.setting.seed, "rights", node.host.label, node.host.lives)
        self._pace = 1.0 + market.pace_ppm(node.host.number) / 1_000_000
        self.heard = Heard(market.known_to(node.host))
        flows = market.setting.flows
        self._customers = Customers(
            self, flows, chance(world.setting.seed, "asks", node.host.label)
        )
        self._beat_us = market.setting.beat_ms * MS
        self._planned_us = 0
        self._unseen = 0
        self._pages: dict[str, tuple[int, Page]] = {}
        self.alone_until_us = 0
        self._alone = True
        self._remembered = node.host.disk.vault.remembered() if market.setting.disks else None
        self.packets = 0
        self.begin(node.boot)

    def begin(self, boot: int, before: LivedTime | None = None) -> None:
        """Begin the rights of this life; what an earlier one had is on disk, or nowhere."""
        vault = self.node.host.disk.vault
        self.me = Life(self.node.name, boot)
        self.core: RightsCore = self.market.make_core(
            self.me,
            limits=self.heard,
            expect=self.market.setting.expect,
            roster=vault.roster if self.market.setting.disks else None,
            remembered=self._remembered,
            rng=self._own,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            lived=before,
            called=self._called,
            founding=vault.founding if self.market.setting.disks else None,
        )
        self._remembered = None
        self.members_changed()
        self._beat_at(self.now_us + int(self._own.random() * self._beat_us))

    # ── Clocks ───────────────────────────────────────────────────────────────

    @property
    def now_us(self) -> int:
        """The world's clock."""
        return self.market.world.agenda.now_us

    @property
    def now_ms(self) -> int:
        """What its monotonic clock shows, which may run a little fast or slow."""
        return int(self.now_us * self._pace) // MS + self.node.offset_ms

    @property
    def wall_ms(self) -> int:
        """What its wall clock shows."""
        return self.node.host.wall_ms(self.now_us)

    # ── What customers see ───────────────────────────────────────────────────

    def share(self, key: str) -> Share | None:
        """Return the share of a key, awake."""
        found = self.core.share(key, now_ms=self.now_ms, wall_ms=self.wall_ms)
        self._plan_tick()
        return found

    def want(self, share: Share, cost: int) -> None:
        """Ask for so much soon: a request waits for it."""
        self.core.want(share, cost)
        self._plan_tick()

    def page(self, share: Share) -> Page:
        """Return the page of the window that a share is in."""
        known = self._pages.get(share.key)
        if known is None or known[0] != share.window:
            page = self.market.books.page(share.key, share.window, share.window_ms)
            known = self._pages[share.key] = (share.window, page)
            self._note_alone(page)
        return known[1]

    def charge(self, share: Share, cost: int) -> Page:
        """Count what was charged to a share."""
        page = self.page(share)
        self.market.books.charged(page, self.me, cost, share.state)
        return page

    def settle(self, page: Page, unused: int) -> None:
        """Count what was given back of a charge in the same window."""
        self.market.books.settled(page, self.me, unused)

    def window_ms(self, key: str) -> int:
        """Return how long the windows of a key are."""
        limit = self.heard.get(key)
        assert limit is not None
        return limit.window_ms

    # ── What happens to it ───────────────────────────────────────────────────

    def hear(self, packet: bytes, sender: Address) -> None:
        """Take a packet."""
        name = self.market.name_at(sender)
        self._do(self.core.handle(packet, name, now_ms=self.now_ms, wall_ms=self.wall_ms))

    def members_changed(self) -> None:
        """Tell the core which members live."""
        core = self.node.core
        rows = [row for row in core.members() if row.name != self.node.name]
        alive = [
            Life(row.name, row.boot)
            for row in rows
            if row.rank in (Rank.ALIVE, Rank.SUSPECT) and row.name in self.node.counts_on
        ]
        alive = sorted([*alive, self.me])
        left = sorted(row.name for row in rows if row.rank is Rank.LEFT)
        self.core.members(alive, left, now_ms=self.now_ms)
        self._see(alive)
        self._plan_tick()

    def rebooted(self, boot: int) -> None:
        """Begin anew: the node goes on under a larger boot, as another life, with what is open."""
        before = self.core
        self.end()
        self.begin(boot, before.lived)
        self.core.inherit(before)
        before.retire()

    def learn(self, limit: Limit) -> None:
        """Tell the core of another version of a limit."""
        if self.heard.hear(limit):
            self.node.host.disk.vault.limits[limit.key] = limit
            self.core.limits_changed(now_ms=self.now_ms, wall_ms=self.wall_ms)
            self._plan_tick()

    def leave(self) -> None:
        """Have no rights any more: it says goodbye, or goes on as another life."""
        self.end()
        self.core.retire()

    def end(self) -> None:
        """It is over: what its books say last, stays."""
        self._look()

    def over(self) -> None:
        """Its process is over, and all that was open in it."""
        self.end()
        self._customers.end()

    def _see(self, alive: Sequence[Life]) -> None:
        roster = self.core.roster
        seen = 0 if roster is None else sum(life.name in roster.names for life in alive)
        alone = roster is None or seen < roster.majority
        if self._alone and not alone:
            self.alone_until_us = self.now_us
        self._alone = alone
        for _, page in self._pages.values():
            self._note_alone(page)

    def _note_alone(self, page: Page) -> None:
        """Note in the page of a window that this node may live on what it borrowed."""
        roster = self.core.roster
        since_us = self.now_us - self.alone_until_us
        if roster is not None and (self._alone or since_us < LINGERS_US + page.length_us):
            names = min(len(roster.names), page.alone.get(self.me.name, len(roster.names)))
            page.alone[self.me.name] = names

    # ── Beats ────────────────────────────────────────────────────────────────

    def _beat_at(self, at_us: int) -> None:
        agenda = self.market.world.agenda
        self._planned_us = at_us
        late_us = at_us + int(self._own.random() * _LATE_US)
        agenda.plan(late_us, CALL, self.node, self._beat, (at_us, self.core))

    def _beat(self, planned_us: int, core: object) -> None:
        """Let customers come and tick; then plan the next time."""
        if planned_us != self._planned_us or core is not self.core:
            return
        now_us = self.now_us
        self._customers.come(now_us)
        due_ms = self.core.due_ms()
        if due_ms is not None and due_ms <= self.now_ms:
            effects = self.core.tick(now_ms=self.now_ms, wall_ms=self.wall_ms)
            self._do(effects)
        next_us = now_us + (self._beat_us if self._customers.any else _IDLE_US)
        self._beat_at(min(next_us, self._due_us(now_us + _TICK_US)))

    def _due_us(self, least_us: int) -> int:
        """Return when the next tick is due on the world's clock, not before `least_us`."""
        due_ms = self.core.due_ms()
        if due_ms is None:
            return least_us + _IDLE_US
        wanted_us = int((due_ms - self.node.offset_ms) * MS / self._pace) + MS
        return max(least_us, wanted_us)

    def _called(self) -> None:
        self.core.hear(now_ms=self.now_ms)
        self._plan_tick()

    def _plan_tick(self) -> None:
        """Come earlier than planned if something is due earlier."""
        if not self._planned_us or self._customers.any:
            return
        due_us = self._due_us(self.now_us)
        if due_us < self._planned_us:
            self._beat_at(due_us)

    def _do(self, effects: Sequence[Effect]) -> None:
        world = self.market.world
        said = False
        for effect in effects:
            match effect:
                case Send(to, data):
                    said = True
                    self.packets += 1
                    self.market.count_packet(self.node.host.label)
                    row = self.node.core.member(to)
                    if row is not None:
                        world.network.send(self.node.host, row.address, data, kind=RIGHTS)
                case Persist(token, rows):
                    self._write(token, rows, None)
                case KeepRoster(token, roster):
                    self.market.roster_us = self.now_us
                    self._write(token, (), roster)
                case KeepFounding(token, state):
                    self._write(token, (), state)
                case Note("permits_taken_back", detail=name):
                    self.market.openings.taken_back(name)
                case Note(name, value):
                    world.notes[name] = world.notes.get(name, 0) + value
                case Difference():
                    world.broken(f"{self.node.host.label}'s own audit: {effect}"[:1_000])
        self.market.wrote(self, effects)
        self._unseen += 1
        if said or self._unseen >= _LOOK_EVERY:
            self._look()
        self._plan_tick()

    def _look(self) -> None:
        self._unseen = 0
        if self.market.setting.watchful:
            self.market.judge.look(self)

    # ── Disk ─────────────────────────────────────────────────────────────────

    def _write(
        self, token: int, rows: tuple[Minted, ...], kept: Roster | FoundingState | None
    ) -> None:
        """Write, which takes a while; a node that dies meanwhile may have written it or not."""
        if self._own.random() < self.market.failing_writes:
            return
        shortest_us, longest_us = _WRITE_US
        takes_us = shortest_us + int((longest_us - shortest_us) * self._own.random() ** 3)
        longer_us = self.market.writes(self, rows)
        takes_us += longer_us
        done_us = self.now_us + max(longer_us, int(takes_us * self._own.random()))
        disk = self.node.host.disk
        agenda = self.market.world.agenda
        agenda.deed(done_us, self._written, disk, rows, kept)
        agenda.plan(self.now_us + takes_us, CALL, self.node, self._persisted, (token, self.core))

    def _written(
        self, disk: object, rows: tuple[Minted, ...], kept: Roster | FoundingState | None
    ) -> None:
        """Keep it, unless the disk was lost or the process died first."""
        if not self.node.alive or disk is not self.node.host.disk or not self.market.setting.disks:
            return
        vault = self.node.host.disk.vault
        for row in rows:
            vault.write(row)
        if kept is not None:
            vault.keep(kept)

    def _persisted(self, token: int, core: object) -> None:
        if core is self.core:
            done = self.core.persisted(token, now_ms=self.now_ms, wall_ms=self.wall_ms)
            self._do(done)
