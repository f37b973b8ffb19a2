"""Rights, the front door: what this node may spend of the cluster's
limits, and driver of their core.

    rights = Rights(name, limits=…, folder=…, rng=…, wall_ms=…, monotonic_s=…)
    rights.connect(post)            # what takes letters to members; without it this node is a cluster of one
    await rights.open(boot)         # what an earlier life minted and voted is known again
    await rights.run()              # a task of the caller's: writes what votes wait for
    rights.share(key)               # what may be charged, now, without waiting for any peer

A node alone, for which nothing was ever defined, has no core: most of what is here is loaded with
the first limit. Between inputs there is one wake-up planned, for when the core says, and sooner
where a share calls; while no rights are wanted there is none, and no packet. Times are read here
and are arguments further down. A mistake about one input is counted and logged, and costs that
input.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.book_rows import Row
from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.messages.effects import (
    Difference,
    Effect,
    KeepFounding,
    KeepRoster,
    Note,
    Persist,
    Rng,
    Send,
)
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.io.blocking_threads import Threads
from smg_mesh.io.counters import Counters
from smg_mesh.io.rights.mint_writer import MintWriter
from smg_mesh.io.rights.rights_queue import RightsQueue
from smg_mesh.io.rights.wakeup import WakeupTimer

if TYPE_CHECKING:
    from smg_mesh.escrow.escrow_core import Escrow

WAIT_MAX_S: Final = 1.5
"""Nobody waits longer for a refill, whatever was asked for: by then there is an owner, or there will be none soon."""

_CORE: Final = "smg_mesh.escrow.escrow_core"
"""Two megabytes, and some 30 ms of reading."""
_NOTHING: Final = bytes(8)
"""The basis of definitions where there are none."""
_DIFFERENCES_LOGGED_MAX: Final = 100
"""Of one process; more are counted only."""

_log: Final = logging.getLogger("smg_mesh.rights")


class Post(Protocol):
    """Carrier of letters to members."""

    @property
    def expect(self) -> int:
        """How many nodes have to see each other before they are a cluster; 1 for a node alone."""
        ...

    def send_letter(self, name: str, content: bytes) -> None:
        """Send a datagram to a member, by its name, or lose it."""
        ...


class _Start(NamedTuple):
    """A life that has begun, for which there was nothing to do so far."""

    boot: int
    roster: Roster | None
    remembered: Mapping[tuple[str, int], int] | None
    now_ms: int
    wall_ms: int
    founding: FoundingState | None


class Rights:
    """Rights of this node; used in the loop's thread only."""

    def __init__(
        self,
        name: str,
        *,
        limits: Limits,
        folder: Path | None,
        rng: Rng,
        counters: Counters,
        wall_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
    ) -> None:
        self.name: Final = name
        self._audits = True
        self._differences_logged = 0
        self._limits: Final = limits
        self._rng: Final = rng
        self._wall_ms: Final = wall_ms
        self._monotonic_s: Final = monotonic_s
        self._counters: Final = counters
        self._pulse: Final = WakeupTimer(
            self._beat, monotonic_s=monotonic_s, counters=self._counters
        )
        self._writer: Final = MintWriter(
            folder, counters=self._counters, wall_ms=wall_ms, written=self._written
        )
        self._waiting: Final = RightsQueue()
        self._post: Post | None = None
        self._core: Escrow | None = None
        self._start: _Start | None = None
        """Until there is a core."""
        self._alive: Sequence[Life] = ()
        self._left: Sequence[str] = ()

    # ── Its life ─────────────────────────────────────────────────────────────

    def connect(self, post: Post) -> None:
        """Let `post` take letters; before `open`."""
        self._post = post

    async def open(self, boot: int) -> None:
        """Begin the life `boot` with what an earlier one left. Does not fail."""
        recalled = await self._writer.open()
        if self._post is not None:
            # Members may talk already, and the loop must not stand still for it.
            await Threads("rights", threads_max=1).start(lambda: import_module(_CORE))
        self._start = _Start(
            boot,
            recalled.roster,
            recalled.minted,
            self._now_ms(),
            self._wall_ms(),
            recalled.founding,
        )
        if self._post is not None or self._limits.basis() != _NOTHING:
            self._begin(self._start)
        self._pulse.start()

    def change_boot(self, boot: int) -> None:
        """Go on as that life, with what is open and none of the other rights of the one before, and no votes."""
        core = self._core
        if core is not None and core.me.boot != boot:
            now_ms, wall_ms = self._now_ms(), self._wall_ms()
            start = _Start(boot, core.roster, None, now_ms, wall_ms, core.founding)
            self._begin(start, before=core)
            core.retire()
        elif self._start is not None:
            self._start = self._start._replace(boot=boot)

    async def run(self) -> None:
        """Write what votes wait for, until cancelled."""
        await self._writer.run()

    async def close(self) -> None:
        """Spend and vote no more. Safe to call twice, and also if it was never opened."""
        self.step_down()
        self._pulse.stop()
        await self._writer.close()

    def leave(self) -> None:
        """Let others own at once what this node owned, and have no rights from now on."""
        core = self._core
        if core is not None:
            now_ms, wall_ms = self._now_ms(), self._wall_ms()
            self._pulse.guard(lambda: self._perform(core.leave(now_ms=now_ms, wall_ms=wall_ms)))
        self.step_down()

    def step_down(self) -> None:
        """Have no rights from now on: another process may have what stands with this name."""
        core, self._core, self._start = self._core, None, None
        if core is not None:
            core.retire()
        for key in self._waiting.awaited():
            self._waiting.give_up(key)

    # ── What spends ──────────────────────────────────────────────────────────

    def share(self, key: str) -> Share | None:
        """Return what may be charged of a limit now, which is nothing before `open` and after `close`.

        None if there is no such limit.
        """
        core = self._core
        if core is None:
            limit = self._limits.get(key)
            return None if limit is None else Share(limit)
        share = core.share(key, now_ms=self._now_ms(), wall_ms=self._wall_ms())
        self._plan(core)
        return share

    async def refilled(self, share: Share, cost: int, within_s: float) -> bool:
        """Ask for rights at once, and return whether there was room for `cost` within that time; charges nothing.

        At most 10,000 wait for one key; they go in order.
        """
        core = self._core
        if core is None:
            return False
        core.want(share, cost)
        self._pulse.at(self._now_ms())
        return await self._waiting.wait(share, cost, min(within_s, WAIT_MAX_S))

    def changed(self) -> None:
        """Learn that limits are defined otherwise than before."""
        core = self._core
        if core is None and self._start is not None:
            if self._limits.basis() != _NOTHING:
                self._begin(self._start)
        elif core is not None:
            now_ms, wall_ms = self._now_ms(), self._wall_ms()
            self._pulse.guard(lambda: core.limits_changed(now_ms=now_ms, wall_ms=wall_ms))
            self._plan(core)

    # ── What it is ───────────────────────────────────────────────────────────

    def report(self, key: str) -> Report | None:
        """Return what this node can say of a limit; None if there is no such limit."""
        core = self._core
        return None if core is None else core.report(key, wall_ms=self._wall_ms())

    def rows(self) -> Sequence[Row]:
        """Return both halves of this node's book, of the last windows of every key it touched."""
        return () if self._core is None else self._core.rows()

    def audit(self, *, on: bool) -> None:
        """Say what does not add up in windows that are over, or not: `rights_difference`, and a line of the log each."""
        self._audits = on

    # ── What the mesh tells it ───────────────────────────────────────────────

    def hear(self, content: bytes, sender: str) -> None:
        """Take a letter of a member."""
        core = self._core
        if core is not None:
            now_ms, wall_ms = self._now_ms(), self._wall_ms()
            self._counters.add("rights_packets", "in")
            self._step(core, lambda: core.handle(content, sender, now_ms=now_ms, wall_ms=wall_ms))

    def members(self, alive: Sequence[Life], left: Sequence[str]) -> None:
        """Learn which members live, sorted, this node among them, and which
        said goodbye or were forgotten.
        """
        self._alive, self._left = alive, left
        self._tell_members()

    # ── The core ─────────────────────────────────────────────────────────────

    def _begin(self, start: _Start, before: "Escrow | None" = None) -> None:
        escrow: type[Escrow] = import_module(_CORE).Escrow
        self._start = None
        self._core = escrow(
            Life(self.name, start.boot),
            limits=self._limits,
            expect=1 if self._post is None else self._post.expect,
            roster=start.roster,
            remembered=start.remembered,
            rng=self._rng,
            now_ms=start.now_ms,
            wall_ms=start.wall_ms,
            lived=None if before is None else before.lived,
            released=None if before is None else before.released,
            adopted_ms=self._wall_ms(),
            called=self._called,
            founding=start.founding,
        )
        if before is not None:
            self._core.inherit(before)
        self._tell_members()

    def _tell_members(self) -> None:
        core = self._core
        if core is None:
            return
        alive = [life for life in self._alive if life.name != self.name]
        alive = sorted([*alive, core.me])
        now_ms = self._now_ms()
        self._pulse.guard(lambda: core.members(alive, self._left, now_ms=now_ms))
        self._plan(core)

    def _written(self, token: int) -> None:
        core = self._core
        if core is not None:
            now_ms, wall_ms = self._now_ms(), self._wall_ms()
            self._step(core, lambda: core.persisted(token, now_ms=now_ms, wall_ms=wall_ms))

    def _called(self) -> None:
        """Plan a look at a share that its caller found low."""
        core = self._core
        if core is not None:
            core.hear(now_ms=self._now_ms())
            self._plan(core)

    def _beat(self) -> None:
        core = self._core
        if core is not None:
            now_ms, wall_ms = self._now_ms(), self._wall_ms()
            self._step(core, lambda: core.tick(now_ms=now_ms, wall_ms=wall_ms))

    def _step(self, core: "Escrow", step: Callable[[], Sequence[Effect]]) -> None:
        self._pulse.guard(lambda: self._perform(step()))
        if self._waiting:
            self._look(core)
        self._plan(core)

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to=to, data=content):
                    self._counters.add("rights_packets", "out")
                    if self._post is not None:
                        self._post.send_letter(to, content)
                case Persist() | KeepRoster() | KeepFounding():
                    self._writer.write(effect)
                case Note(name=name, value=value, detail=detail):
                    self._counters.add(name, detail, value)
                case Difference():
                    self._differ(effect)

    def _differ(self, difference: Difference) -> None:
        """Say that a window did not add up: once for each, since its owner reckons it up once."""
        if not self._audits:
            return
        self._counters.add("rights_difference", value=difference.more)
        self._differences_logged += 1
        if self._differences_logged <= _DIFFERENCES_LOGGED_MAX:
            minting = difference.minting
            _log.error(
                "%s, window %d: nodes spent %d more than there was; minted and given: %s; may have stood with them:"
                " %d; spent and borrowed, as they say: %s",
                minting.key,
                minting.window,
                difference.more,
                minting,
                difference.stands,
                difference.said,
            )

    def _look(self, core: "Escrow") -> None:
        """Let requests go on that waited for what is here now."""
        now_ms, wall_ms = self._now_ms(), self._wall_ms()
        for key in self._waiting.awaited():
            share = core.share(key, now_ms=now_ms, wall_ms=wall_ms)
            if share is None:
                self._waiting.give_up(key)
                continue
            self._waiting.look(share)
            if not share.pool:
                # There is nothing to come: they need not wait to be told.
                self._waiting.give_up(key)

    def _plan(self, core: "Escrow") -> None:
        due_ms = core.due_ms()
        if due_ms is not None:
            self._pulse.at(due_ms)

    def _now_ms(self) -> int:
        return int(self._monotonic_s() * 1000)
