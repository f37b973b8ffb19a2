"""Exchange run between two nodes that share state: frame by frame, piece by piece, cut anywhere.

Every frame is a segment of its own on the simulated TCP and arrives in the order in which it was sent; a
crash, a blocked link or the deadline may come between any two. Each piece of work takes one turn of its
node's loop, so whatever else happens to a node happens in between. The opener counts the exchange as done
when it hears that the answerer has done its part; the answerer as soon as it has.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from smg_chaos.simulate.base.virtual_clock import ARRIVAL, CALL, MS, SECOND
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import CoreDriver, HasAgenda, PromiseReport
from smg_chaos.simulate.world.tcp_pipes import SETUP_LEGS, Pipes
from smg_mesh.swim.messages import Address
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Frame, Step

_EXCHANGE_MAX_US: Final = 120 * SECOND
_WORK_US: Final = 100
"""One piece of work, and what the loop does beside it."""


class _End:
    """The answerer has done its part."""


_END: Final = _End()


class _Channel:
    """One direction of a connection: what is sent arrives in that order, or never."""

    def __init__(self, pipes: Pipes, take: Callable[[Node | None, Frame | _End], None]) -> None:
        self._pipes = pipes
        self._take = take
        self._sent = 0
        self._taken = 0
        self._arrived: dict[int, tuple[Node | None, Frame | _End]] = {}

    def send(
        self,
        source: Node,
        to: Address,
        frames: Sequence[Frame | _End],
        *,
        until_us: int,
        legs: int = 1,
    ) -> None:
        """Put frames on their way, each on its own."""
        for frame in frames:
            number, self._sent = self._sent, self._sent + 1
            self._pipes.carry(
                source.host, to, self._reaching(number, frame), until_us=until_us, legs=legs
            )

    def _reaching(self, number: int, frame: Frame | _End) -> Callable[[Node | None], None]:
        def reached(there: Node | None) -> None:
            self._arrived[number] = (there, frame)
            while self._taken in self._arrived:
                found = self._arrived.pop(self._taken)
                self._taken += 1
                self._take(*found)

        return reached


class _Side:
    """One node's part: a machine, and the frames that wait until it has worked off the last one."""

    def __init__(self, node: Node, machine: Exchange) -> None:
        self.node = node
        self.machine = machine
        self.inbox: deque[Frame] = deque()
        self.busy = False
        self.over = False


class ExchangeStreams(Protocol):
    """The calls of the world, as far as exchanges are concerned."""

    failed: int

    def machine(self, node: Node, *, full: bool, opener: bool) -> Exchange:
        """Return one side of an exchange of nodes that share state."""
        ...


class ExchangeWorld(HasAgenda, PromiseReport, CoreDriver, Protocol):
    """The world of two nodes that exchange their state."""

    @property
    def streams(self) -> ExchangeStreams:
        """All calls of the world."""
        ...


class SharedConversation:
    """One exchange: two machines, and the frames between them."""

    def __init__(
        self,
        world: ExchangeWorld,
        pipes: Pipes,
        node: Node,
        address: Address,
        over: Callable[[bool], None],
        *,
        full: bool,
    ) -> None:
        self._world = world
        self._node = node
        self._address = address
        self._report = over
        self._over = False
        self._back_broken = False
        self._mine = _Side(node, world.streams.machine(node, full=full, opener=True))
        self._theirs: _Side | None = None
        self._forth = _Channel(pipes, self._at_answerer)
        self._back = _Channel(pipes, self._at_opener)
        self._patience_us = node.options.stream_exchange_ms * MS
        self._begun_us = self._heard_us = world.agenda.now_us

    def open(self) -> None:
        """Connect and say who we are; give up when nothing comes, or too much."""
        frames = self._mine.machine.begin()
        self._send(self._forth, self._node, self._address, frames, legs=SETUP_LEGS + 1)
        self._wait()

    def _wait(self) -> None:
        """Give up if the peer has been silent for too long, or the whole takes too long."""
        due_us = min(self._heard_us + self._patience_us, self._begun_us + _EXCHANGE_MAX_US)
        now_us = self._world.agenda.now_us
        if due_us <= now_us:
            self._end(False)
        elif not self._over:
            self._world.agenda.plan(due_us, CALL, self._node, self._wait, ())

    def _send(
        self,
        channel: _Channel,
        source: Node,
        to: Address,
        frames: Sequence[Frame | _End],
        *,
        legs: int = 1,
    ) -> None:
        until_us = self._world.agenda.now_us + self._patience_us
        channel.send(source, to, frames, until_us=until_us, legs=legs)

    # ── What arrives ─────────────────────────────────────────────────────────

    def _at_answerer(self, there: Node | None, frame: Frame | _End) -> None:
        assert not isinstance(frame, _End)
        if there is None or (self._theirs is not None and there is not self._theirs.node):
            # Nothing listens there any more, or a life that knows nothing of this connection.
            now_us = self._world.agenda.now_us
            self._world.agenda.plan(now_us, ARRIVAL, self._node, self._end, (False,))
            return
        if self._theirs is None:
            machine = self._world.streams.machine(there, full=False, opener=False)
            self._theirs = _Side(there, machine)
        self._theirs.inbox.append(frame)
        self._work(self._theirs)

    def _at_opener(self, there: Node | None, frame: Frame | _End) -> None:
        if there is not self._node:
            # No process or another life got it: the connection is gone, and nothing follows.
            self._back_broken = True
        if self._back_broken or self._over:
            return
        self._heard_us = self._world.agenda.now_us
        if isinstance(frame, _End):
            self._end(True)
        else:
            self._mine.inbox.append(frame)
            self._work(self._mine)

    # ── What is done ─────────────────────────────────────────────────────────

    def _work(self, side: _Side) -> None:
        while side.inbox and not side.busy and not side.over:
            frame = side.inbox.popleft()
            self._step(side, lambda frame=frame: side.machine.receive(frame))  # type: ignore[misc]  # bound at once

    def _proceed(self, side: _Side) -> None:
        side.busy = False
        if not side.over:
            self._step(side, side.machine.proceed)
            self._work(side)

    def _step(self, side: _Side, act: Callable[[], Step]) -> None:
        world, node = self._world, side.node
        try:
            step = act()
        except ExchangeError as error:
            world.broken(f"{node.host.label} ended an exchange: {error.reason}, {error}")
            self._fail(side)
            return
        if step.learned:
            effects = node.core.handle_rows(step.learned, now_ms=world.now_ms(node))
            world.react(node, f"rows {len(step.learned)}", effects)
        mine = side is self._mine
        channel, to = (self._forth, self._address) if mine else (self._back, self._node.address)
        self._send(channel, node, to, step.send)
        if step.more:
            side.busy = True
            world.agenda.plan(world.agenda.now_us + _WORK_US, CALL, node, self._proceed, (side,))
        if step.done:
            self._done(side)

    def _done(self, side: _Side) -> None:
        side.over = True
        refused = side.machine.refused
        if refused is not None:
            self._world.broken(f"{side.node.host.label} refused a piece: {refused}")
        if side is not self._mine:
            self._met(side)
            self._send(self._back, side.node, self._node.address, [_END])

    def _fail(self, side: _Side) -> None:
        side.over = True
        now_us = self._world.agenda.now_us
        self._world.agenda.plan(now_us, ARRIVAL, self._node, self._end, (False,))

    def _end(self, ok: bool) -> None:
        if self._over:
            return
        self._over = self._mine.over = True
        if ok:
            self._met(self._mine)
        else:
            self._world.streams.failed += 1
        self._report(ok)

    def _met(self, side: _Side) -> None:
        peer = side.machine.peer
        node = side.node
        assert peer is not None
        if (peer.name, peer.boot) == (node.name, node.core.boot):
            return
        if node.search is not None:
            node.search.exchanged()
        if node.life is not None:
            node.life.met(peer.name, full=side.machine.full, held=peer.held)
