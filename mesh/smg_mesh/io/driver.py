"""Driver: the loop around the pure SWIM core: one turn per wake-up,
effects performed in their order.

A turn does three things, always in this order:

    1  a stall?    the wake-up came much later than planned: the core hears of it before anything else
    2  datagrams   the socket is read, up to 64 packets, many more after a stall
    3  timers      those that are due

so no timer ever judges a peer whose answer is waiting in the socket. Turns are caused by the socket and
by one planned wake-up: the next timer's, or a tick if that comes sooner. A stall that made any timer late
is noticed by that timer, exactly. One that made none late is noticed by the tick, if it was longer than
a tick: it only left packets unread, and those are read first in any case.

The core never waits: pings and exchanges over streams become tasks of `run`, a bounded number, and their
outcome is one more input. If the core itself fails (a bug), the input is dropped, counted and logged; a
timer is tried again a second later, because a chain of timers that ends would silence the node for good.
"""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from smg_mesh.config import SwimOptions
from smg_mesh.io.counters import Counters
from smg_mesh.io.network.side_datagrams import is_letter
from smg_mesh.io.security.rejected import Rejected
from smg_mesh.swim.effects import (
    Effect,
    Note,
    OpenExchange,
    SendDatagram,
    SetTimer,
    StreamAnswer,
    StreamPing,
    Timer,
)
from smg_mesh.swim.messages import Address

PACKETS_A_TURN: Final = 64
PACKETS_AFTER_STALL: Final = 4096
"""What a full receive buffer holds; refutations may be the last of it."""
TIMERS_A_TURN: Final = 256
TICK_MS: Final = (100, 1000)
"""A tick is a probe interval, within these bounds. Waking an idle process costs 100 us of CPU, ten times
what there is to do then: a tick of 50 ms would be 0.2 % of a core, as much as a whole node is to cost."""
STREAM_PINGS_MAX: Final = 64
EXCHANGES_MAX: Final = 8
"""The core opens 2 at a time; more would be its mistake, and then they fail at once."""
RETRY_TIMER_MS: Final = 1000
_FAULTS_LOGGED_MAX: Final = 20

_log = logging.getLogger("smg_mesh.driver")


Step: TypeAlias = Callable[[], list[Effect]]
"""One input, ready to be given to the core."""


def _lost(_packet: bytes) -> None:
    """Read no letter."""


class Core(Protocol):
    """Core that is driven; `swim_core.Swim` fits."""

    def start(self, *, now_ms: int) -> list[Effect]:
        """Set the first timers."""
        ...

    def handle_datagram(self, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        """Take an opened packet."""
        ...

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        """Take back a timer that is due."""
        ...

    def is_stale(self, timer: Timer) -> bool:
        """Return whether the timer is known to do nothing any more."""
        ...

    def handle_stall(self, lag_ms: int, *, now_ms: int) -> list[Effect]:
        """Learn that the loop stood still."""
        ...

    def handle_stream_ping(self, nonce: int, *, answer: StreamAnswer, now_ms: int) -> list[Effect]:
        """Learn what became of a stream ping."""
        ...

    def handle_exchange_end(self, name: str, *, ok: bool, now_ms: int) -> list[Effect]:
        """Learn that an exchange is over."""
        ...


class Socket(Protocol):
    """Socket of datagrams; `Datagrams` fits."""

    def fileno(self) -> int:
        """Return the descriptor to watch."""
        ...

    def drain(self, take: Callable[[bytes, Address], None], *, packets_max: int) -> bool:
        """Hand over what has arrived."""
        ...

    def send(self, datagram: bytes, to: Address) -> bool:
        """Send or lose."""
        ...


class Seals(Protocol):
    """Sealing and opening of packets; `Keyring` fits."""

    def seal(self, packet: bytes) -> bytes:
        """Return the datagram for a packet."""
        ...

    def open(self, datagram: bytes) -> bytes:
        """Return the packet of a datagram; raise `Rejected`."""
        ...


class Peers(Protocol):
    """Calls to members over streams. Neither raises."""

    async def ping(
        self, name: str, address: Address, boot: int, *, deadline_ms: int
    ) -> StreamAnswer:
        """Return whether that very life of that member answered, or what its host said."""
        ...

    async def exchange(self, name: str, address: Address, why: str) -> bool:
        """Return whether the exchange came to its end."""
        ...


class Driver:
    """Performs what the core asks for; everything that is not I/O goes to `tell`."""

    def __init__(
        self,
        core: Core,
        options: SwimOptions,
        *,
        socket: Socket,
        seals: Seals,
        peers: Peers,
        tell: Callable[[Effect], None],
        counters: Counters,
        monotonic_s: Callable[[], float],
        letters: Callable[[bytes], None] = _lost,
    ) -> None:
        self._core = core
        self._letters = letters
        self._socket = socket
        self._seals = seals
        self._peers = peers
        self._tell = tell
        self._counters = counters
        self._monotonic_s = monotonic_s
        self._tick_ms = min(max(options.probe_interval_ms, TICK_MS[0]), TICK_MS[1])
        self._stall_ms = max(options.stall_min_ms, options.probe_interval_ms // 4)
        self._timers: list[tuple[int, int, Timer]] = []
        self._order = itertools.count()
        self._group: asyncio.TaskGroup | None = None
        self._wake_up: asyncio.TimerHandle | None = None
        self._planned_ms = 0
        self._in_turn = False
        self._pings = 0
        self._exchanges = 0
        self._faults = 0

    def now_ms(self) -> int:
        """Return the core's time."""
        return int(self._monotonic_s() * 1000)

    @property
    def timers(self) -> int:
        """How many timers wait, stale ones included."""
        return len(self._timers)

    async def run(self) -> None:
        """Drive the core until cancelled. Effects said outside of `run` are lost."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._planned_ms = self.now_ms() + self._tick_ms
                loop.add_reader(self._socket.fileno(), self._turn)
                self.perform(self._core.start(now_ms=self.now_ms()))
                await loop.create_future()
        finally:
            self._group = None
            loop.remove_reader(self._socket.fileno())
            if self._wake_up is not None:
                self._wake_up.cancel()
                self._wake_up = None

    def perform(self, effects: Sequence[Effect]) -> None:
        """Do what the core asked for, in order."""
        for effect in effects:
            match effect:
                case SendDatagram(to=to, packet=packet):
                    self._socket.send(self._seals.seal(packet), to)
                case SetTimer(timer=timer, due_ms=due_ms):
                    heapq.heappush(self._timers, (due_ms, next(self._order), timer))
                case Note(name=name, value=value, detail=detail):
                    self._counters.add(name, detail, value)
                case StreamPing():
                    self._ping(effect)
                case OpenExchange():
                    self._exchange(effect)
                case _:
                    self._tell(effect)
        if not self._in_turn:
            self._plan()

    def post(self, packet: bytes, to: Address) -> None:
        """Seal and send a packet that is not the core's, now, or lose it."""
        self._socket.send(self._seals.seal(packet), to)

    # ── One turn ─────────────────────────────────────────────────────────────

    def _turn(self) -> None:
        self._in_turn = True
        try:
            now_ms = self.now_ms()
            lag_ms = now_ms - self._planned_ms
            stalled = lag_ms > self._stall_ms
            if stalled:
                self.step(lambda: self._core.handle_stall(lag_ms, now_ms=now_ms))
            packets = PACKETS_AFTER_STALL if stalled else PACKETS_A_TURN
            self._socket.drain(self._take, packets_max=packets)
            self._fire()
        finally:
            self._in_turn = False
            self._plan()

    def _planned_turn(self) -> None:
        self._wake_up = None
        self._turn()

    def _take(self, datagram: bytes, sender: Address) -> None:
        try:
            packet = self._seals.open(datagram)
        except Rejected as refused:
            self._counters.add("refused", refused.reason)
            return
        if is_letter(packet):
            self._letters(packet)
            return
        now_ms = self.now_ms()
        self.step(lambda: self._core.handle_datagram(packet, sender, now_ms=now_ms))

    def _fire(self) -> None:
        """Hand due timers back; those that become due by it wait for the next turn."""
        now_ms = self.now_ms()
        due: list[Timer] = []
        while self._timers and self._timers[0][0] <= now_ms and len(due) < TIMERS_A_TURN:
            due.append(heapq.heappop(self._timers)[2])
        for timer in due:
            if not self._fired(timer, now_ms):
                again = (now_ms + RETRY_TIMER_MS, next(self._order), timer)
                heapq.heappush(self._timers, again)

    def _fired(self, timer: Timer, now_ms: int) -> bool:
        return self.step(lambda: self._core.handle_timer(timer, now_ms=now_ms))

    def step(self, step: Step) -> bool:
        """Let the core take one step and perform what it asks for; False if it failed."""
        try:
            self.perform(step())
        except Exception:
            # A door: a mistake of ours about one packet must not take the gateway down with it.
            self._counters.add("core_fault")
            self._faults += 1
            if self._faults <= _FAULTS_LOGGED_MAX:
                _log.exception("the membership core failed on one input, which is dropped")
            return False
        return True

    def _plan(self) -> None:
        """See to it that the next turn comes at the next timer, or after a tick."""
        if self._group is None:
            return
        now_s = self._monotonic_s()
        now_ms = int(now_s * 1000)
        dropped = self._drop_stale()
        planned_ms = now_ms + self._tick_ms
        if self._timers and self._timers[0][0] < planned_ms:
            planned_ms = max(self._timers[0][0], now_ms)
        if self._wake_up is not None:
            # Sooner than needed does no harm, unless it is for nothing.
            if not dropped and now_ms < self._planned_ms <= planned_ms:
                return
            self._wake_up.cancel()
        self._planned_ms = planned_ms
        # Half a millisecond later than due, so that no rounding wakes us just before it.
        delay_s = max(0.0, (planned_ms + 0.5) / 1000 - now_s)
        self._wake_up = asyncio.get_running_loop().call_later(delay_s, self._planned_turn)

    def _drop_stale(self) -> bool:
        """Drop the next timers if they do nothing any more; return whether there were any.

        Most often that is the end of the wait for an answer that has come: one wake-up a probe.
        """
        dropped = False
        while self._timers and self._core.is_stale(self._timers[0][2]):
            heapq.heappop(self._timers)
            dropped = True
        return dropped

    # ── Streams ──────────────────────────────────────────────────────────────

    def _ping(self, effect: StreamPing) -> None:
        if self._group is None:
            return
        if self._pings >= STREAM_PINGS_MAX:
            self._counters.add("stream_ping_refused")
            asyncio.get_running_loop().call_soon(self._pinged, effect.nonce, StreamAnswer.SILENT)
            return
        self._pings += 1
        self._group.create_task(self._ping_now(effect))

    async def _ping_now(self, effect: StreamPing) -> None:
        answer = StreamAnswer.SILENT
        try:
            answer = await self._peers.ping(
                effect.name, effect.address, effect.boot, deadline_ms=effect.deadline_ms
            )
        except Exception:
            # A door: one call that fails in a new way is an unanswered ping, not the end of the mesh.
            self._counters.add("stream_fault")
            _log.exception("a stream ping to %s failed", effect.address)
        finally:
            self._pings -= 1
        self._pinged(effect.nonce, answer)

    def _pinged(self, nonce: int, answer: StreamAnswer) -> None:
        now_ms = self.now_ms()
        self.step(lambda: self._core.handle_stream_ping(nonce, answer=answer, now_ms=now_ms))

    def _exchange(self, effect: OpenExchange) -> None:
        if self._group is None:
            return
        if self._exchanges >= EXCHANGES_MAX:
            self._counters.add("exchange_refused")
            asyncio.get_running_loop().call_soon(self._exchanged, effect.name, False)
            return
        self._exchanges += 1
        self._group.create_task(self._exchange_now(effect))

    async def _exchange_now(self, effect: OpenExchange) -> None:
        ok = False
        try:
            ok = await self._peers.exchange(effect.name, effect.address, effect.why)
        except Exception:
            # A door: one call that fails in a new way is a failed exchange, not the end of the mesh.
            self._counters.add("stream_fault")
            _log.exception("an exchange with %s failed", effect.address)
        finally:
            self._exchanges -= 1
        self._counters.add("exchange_ended", "ok" if ok else "failed")
        self._exchanged(effect.name, ok)

    def _exchanged(self, name: str, ok: bool) -> None:
        now_ms = self.now_ms()
        self.step(lambda: self._core.handle_exchange_end(name, ok=ok, now_ms=now_ms))
