"""Streams (TCP) between hosts: pings and exchanges that arrive late rather than never.

Modelled: every call opens a connection, which costs two round trips before the first byte; a lost
segment is sent again after 200 ms, a lost first one after a second, each time doubled; a blocked link
keeps the call waiting until it is unblocked or given up; a host without a living process refuses at
once. A stopped process answers when it runs again. Not modelled: bandwidth, and connections kept open.
"""

from collections.abc import Callable
from typing import Final, Protocol

from smg_chaos.simulate.base.virtual_clock import ARRIVAL, CALL, MS
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import CoreDriver, HasAgenda, PromiseReport
from smg_chaos.simulate.world.exchange_run import SharedConversation
from smg_chaos.simulate.world.tcp_pipes import SETUP_LEGS, Pipes
from smg_mesh.swim.effects import OpenExchange, StreamAnswer, StreamPing
from smg_mesh.swim.messages import Address
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Frame, Opening, Step

NO_DOCUMENTS: Final = bytes(8)
LABEL: Final = "simulated"
FULL: Final = ("join", "told", "stall", "heal")
"""Reasons for which everything is asked for: who was told wrong things, or was away, wants all of it."""


class StreamWorld(HasAgenda, PromiseReport, CoreDriver, Protocol):
    """The world whose nodes call each other."""

    @property
    def streams(self) -> "Streams":
        """All calls of the world."""
        ...


class Streams:
    """Calls between nodes, and what becomes of them."""

    def __init__(self, world: StreamWorld, pipes: Pipes) -> None:
        self._world = world
        self._pipes = pipes
        self.exchanges = 0
        self.failed = 0

    def ping(self, node: Node, asked: StreamPing) -> None:
        """Ask whether that life is there; the core hears the answer or that there was none in time."""
        _Call(self._world, self._pipes, node, asked).open()

    def exchange(self, node: Node, asked: OpenExchange) -> None:
        """Converse with a member for the core, which hears how it ended."""
        world = self._world

        def _over(ok: bool) -> None:
            now_ms = world.now_ms(node)
            effects = node.core.handle_exchange_end(asked.name, ok=ok, now_ms=now_ms)
            world.react(node, f"exchange-end {asked.name} {ok}", effects)

        full = node.life is not None and (asked.why in FULL or not node.life.arrival.held)
        self.converse(node, asked.address, _over, full=full)

    def converse(
        self, node: Node, address: Address, over: Callable[[bool], None], *, full: bool
    ) -> None:
        """Open an exchange with the node at an address; `over(ok)` is called once."""
        self.exchanges += 1
        kind = _Conversation if node.life is None else SharedConversation
        kind(self._world, self._pipes, node, address, over, full=full).open()

    def opening(self, node: Node, *, full: bool) -> Opening:
        """Return what the node says of itself at the beginning of an exchange."""
        digest = node.core.digest() + NO_DOCUMENTS
        return Opening(node.name, node.core.boot, LABEL, digest, full)

    def machine(self, node: Node, *, full: bool, opener: bool) -> Exchange:
        """Return one side of an exchange of nodes that share state."""
        life = node.life
        assert life is not None
        digest = node.core.digest() + life.replica.digest()
        held = life.arrival.held
        mine = Opening(node.name, node.core.boot, LABEL, digest, full, held=held)
        return Exchange(mine, node.core.rows, opener=opener, pieces=life.pieces)


class _Call:
    """A ping over TCP; it ends once."""

    def __init__(self, world: StreamWorld, pipes: Pipes, node: Node, asked: StreamPing) -> None:
        self._world = world
        self._pipes = pipes
        self._node = node
        self._asked = asked
        self._over = False
        self._until_us = world.agenda.now_us + asked.deadline_ms * MS

    def open(self) -> None:
        """Connect and ask; give up at the deadline."""
        silent = (StreamAnswer.SILENT,)
        self._world.agenda.plan(self._until_us, CALL, self._node, self._end, silent)
        legs = SETUP_LEGS + 1
        to = self._asked.address
        self._pipes.carry(self._node.host, to, self._answer, until_us=self._until_us, legs=legs)

    def _answer(self, there: Node | None) -> None:
        if there is None:
            # Refused: the caller hears it as soon as its loop runs.
            now_us = self._world.agenda.now_us
            nobody = (StreamAnswer.NOBODY,)
            self._world.agenda.plan(now_us, ARRIVAL, self._node, self._end, nobody)
            return
        known = there.name == self._asked.name and there.boot == self._asked.boot

        def reached(node: Node | None) -> None:
            if node is self._node:
                self._end(StreamAnswer.HERE if known else StreamAnswer.SILENT)

        self._pipes.carry(there.host, self._node.address, reached, until_us=self._until_us)

    def _end(self, answer: StreamAnswer) -> None:
        if self._over:
            return
        self._over = True
        node, nonce = self._node, self._asked.nonce
        now_ms = self._world.now_ms(node)
        effects = node.core.handle_stream_ping(nonce, answer=answer, now_ms=now_ms)
        self._world.react(node, f"stream-ping {nonce} {answer.value}", effects)


class _Conversation:
    """One exchange: two machines, and the frames between them."""

    def __init__(
        self,
        world: StreamWorld,
        pipes: Pipes,
        node: Node,
        address: Address,
        over: Callable[[bool], None],
        *,
        full: bool,
    ) -> None:
        self._world = world
        self._pipes = pipes
        self._node = node
        self._address = address
        self._report = over
        self._over = False
        self._mine = Exchange(world.streams.opening(node, full=full), node.core.rows, opener=True)
        self._theirs: Exchange | None = None
        self._peer: Node | None = None
        self._until_us = world.agenda.now_us + node.options.stream_exchange_ms * MS

    def open(self) -> None:
        """Connect and say who we are; give up at the deadline."""
        self._world.agenda.plan(self._until_us, CALL, self._node, self._end, (False,))
        frames = self._mine.begin()
        self._send(self._node, self._address, frames, legs=SETUP_LEGS + 1)

    def _send(
        self, source: Node, to: Address, frames: list[Frame] | tuple[Frame, ...], *, legs: int
    ) -> None:
        def reached(there: Node | None) -> None:
            for frame in frames:
                if not self._over:
                    self._receive(there, source, frame)

        if frames:
            self._pipes.carry(source.host, to, reached, until_us=self._until_us, legs=legs)

    def _receive(self, there: Node | None, sender: Node, frame: Frame) -> None:
        if sender is self._node:
            self._answer(there, frame)
        elif there is self._node:
            self._take(there, self._mine, sender.address, frame)
            if self._mine.done:
                self._end(True)

    def _answer(self, there: Node | None, frame: Frame) -> None:
        if there is None or (self._peer is not None and there is not self._peer):
            # Nothing listens there any more, or a life that knows nothing of this connection.
            now_us = self._world.agenda.now_us
            self._world.agenda.plan(now_us, ARRIVAL, self._node, self._end, (False,))
            return
        if self._theirs is None:
            self._peer = there
            opening = self._world.streams.opening(there, full=False)
            self._theirs = Exchange(opening, there.core.rows, opener=False)
        self._take(there, self._theirs, self._node.address, frame)

    def _take(self, node: Node, machine: Exchange, to: Address, frame: Frame) -> None:
        try:
            step: Step = machine.receive(frame)
        except ExchangeError as error:
            self._world.broken(f"{node.name} refused a frame of an exchange: {error}")
            self._end(False)
            return
        if step.learned:
            now_ms = self._world.now_ms(node)
            effects = node.core.handle_rows(step.learned, now_ms=now_ms)
            self._world.react(node, f"rows {len(step.learned)}", effects)
        self._send(node, to, step.send, legs=1)
        if step.done and step.peer is not None and node.search is not None:
            node.search.exchanged()

    def _end(self, ok: bool) -> None:
        if not self._over:
            self._over = True
            if not ok:
                self._world.streams.failed += 1
            self._report(ok)
