"""Pending announcer: tells all other nodes which threads are about to be spooled here, in rounds.

One round is in progress at a time, and threads that come meanwhile go with the next: so each node
gets at most one message per round trip, however many turns there are.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.history.errors import NotAnnouncedError
from smg_node.history.peers.peer_interface import FORETOLD, Peers
from smg_node.history.peers.pending_announcements import TAKEN, PendingThreads

TELL_S: Final = 1.0
"""So long a node may take to say that it has heard it."""
AT_ONCE_MAX: Final = 64
"""So many nodes are told at a time."""
ROUND_MAX: Final = 1_000
"""So many threads go with one round."""


class _Round:
    """Threads announced together, and the result: the name of a node that could not be told, "" if
    all were.
    """

    __slots__ = ("done", "threads", "untold")

    def __init__(self) -> None:
        self.threads: dict[tuple[str, str], None] = {}
        self.done = False
        self.untold = ""


class PendingAnnouncer:
    """Announcements of this node, made before it spools a turn."""

    def __init__(self, peers: Peers) -> None:
        self._peers: Final = peers
        self._next = _Round()
        self._telling: Final = asyncio.Lock()

    async def tell(self, tenant: str, any_id: str) -> None:
        """Return when every other node knows that this thread is spooled here; NotAnnouncedError if
        one cannot be told.
        """
        if not self._peers.heard():
            return
        its = self._next
        its.threads[tenant, any_id] = None
        if len(its.threads) >= ROUND_MAX:
            self._next = _Round()
        async with self._telling:
            # The first caller announces for all that came by then; if it was cancelled, the next one does.
            if not its.done:
                if self._next is its:
                    self._next = _Round()
                its.untold = await self._tell_all(list(its.threads))
                its.done = True
        if its.untold:
            raise NotAnnouncedError(its.untold)

    async def _tell_all(self, threads: Sequence[tuple[str, str]]) -> str:
        """Return a node that could not be told, "" if all were."""
        heard = self._peers.heard()
        dead = next((name for name, last in heard.items() if last.state == "dead"), "")
        if dead:
            return dead
        payload, names = msgspec.msgpack.encode(PendingThreads(threads)), list(heard)
        for first in range(0, len(names), AT_ONCE_MAX):
            some = names[first : first + AT_ONCE_MAX]
            answers = await asyncio.gather(*(self._tell(name, payload) for name in some))
            for name, answer in zip(some, answers, strict=True):
                if answer != TAKEN:
                    return name
        return ""

    async def _tell(self, name: str, payload: bytes) -> bytes:
        try:
            return await self._peers.ask(name, FORETOLD, payload, deadline_s=TELL_S)
        except SmgError:
            return b""
