"""TCP pipes: how long something sent over TCP takes to arrive, or whether it does.

Modelled: round trips before the first byte; a lost segment is sent again after 200 ms, a lost first one after a
second, each time doubled; a blocked link keeps it waiting until it is unblocked or given up. Not modelled: bandwidth.
"""

from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from smg_chaos.simulate.base.virtual_clock import ARRIVAL, MS, SECOND, Agenda
from smg_chaos.simulate.hosts.host import Host, Node
from smg_chaos.simulate.hosts.network import Network
from smg_mesh.swim.messages import Address

SETUP_LEGS: Final = 4
"""TCP's handshake and TLS 1.3's: two round trips."""
_TRIES_MAX: Final = 8

Reached: TypeAlias = Callable[[Node | None], None]
"""Called at the far end with the process there, or with None when there is none."""


class Pipes:
    """The time until something sent over TCP arrives."""

    def __init__(self, agenda: Agenda, network: Network, chance: Random) -> None:
        self._agenda = agenda
        self._network = network
        self._random = chance.random

    def carry(
        self, source: Host, to: Address, reached: Reached, *, until_us: int, legs: int = 1
    ) -> None:
        """Bring something from `source` to an address, `legs` segments after one another.

        `reached` is called there, or never if that would be after `until_us`.
        """
        self._attempt(source, to, reached, until_us, legs, SECOND if legs > 1 else 200 * MS)

    def _attempt(
        self,
        source: Host,
        to: Address,
        reached: Reached,
        until_us: int,
        legs: int,
        again_us: int,
    ) -> None:
        now_us = self._agenda.now_us
        took_us = self._took_us(source, to, legs)
        if took_us is None:
            if now_us + again_us <= until_us:
                waited = (source, to, reached, until_us, legs, 2 * again_us)
                self._agenda.deed(now_us + again_us, self._attempt, *waited)
        elif now_us + took_us <= until_us:
            self._agenda.deed(now_us + took_us, self._arrive, source, to, reached)

    def _arrive(self, source: Host, to: Address, reached: Reached) -> None:
        host = self._network.route(source, to).host
        node = None if host is None else host.node
        if node is None:
            reached(None)
        else:
            self._agenda.plan(self._agenda.now_us, ARRIVAL, node, reached, (node,))

    def _took_us(self, source: Host, to: Address, legs: int) -> int | None:
        """Return how long it takes, or None if nothing gets through now."""
        there = self._network.route(source, to)
        if there.host is None:
            return None
        back = self._network.route(there.host, source.address)
        ways = (there, back)
        took_us = 0
        for leg in range(legs):
            _, delay_us, jitter_us, rough = ways[leg % 2]
            took_us += delay_us + int(self._random() * jitter_us)
            if rough is not None:
                again_us = SECOND if legs > 1 and leg < 2 else 200 * MS
                tries = 0
                while rough.block or self._random() < rough.loss:
                    took_us += again_us << tries
                    tries += 1
                    if tries == _TRIES_MAX or rough.block:
                        return None
        return took_us if not (back.rough and back.rough.block) else None
