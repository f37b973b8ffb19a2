"""Gossip bridge: carries effects of shared state to the gossip, and living members back to it."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from smg_mesh.crdt.hints.hint_messages import HintError
from smg_mesh.escrow.limit_model import Life
from smg_mesh.io.driver import Step
from smg_mesh.io.event_journal import Journal
from smg_mesh.io.network.side_datagrams import read_letter, write_letter
from smg_mesh.io.security.secret_vault import Seals
from smg_mesh.io.shared_state.hint_transport import TOPIC, NotDeliveredError
from smg_mesh.io.shared_state.state_interface import Replicated
from smg_mesh.io.stream_sessions import StreamSessions
from smg_mesh.io.streams import AskError
from smg_mesh.io.views import EventKind
from smg_mesh.swim.effects import Member
from smg_mesh.swim.messages import Address, Rank
from smg_mesh.swim.swim_core import Swim
from smg_mesh.sync.replica_effects import DigestIs, OpenExchanges, SpreadRumor

_EVENTS: Final[Mapping[str, tuple[EventKind, int]]] = {
    "state_joined": ("state_joined", logging.INFO),
    "document_full": ("document_full", logging.WARNING),
}


FORGOTTEN_MAX: Final = 4_096
"""As many as there can be rows of the dead."""


class GossipBridge:
    """Bridge between one node's core and its `shared`; fulfils `state_interface.Gossip`."""

    def __init__(
        self,
        shared: Replicated,
        swim: Swim,
        *,
        seals: Seals,
        journal: Journal,
        now_ms: Callable[[], int],
        step: Callable[[Step], object],
        nobody: Callable[[], bool],
        conversations: StreamSessions,
        expect: int = 1,
        post: Callable[[bytes, Address], object] = lambda _packet, _to: None,
    ) -> None:
        self.seals: Final = seals
        self.expect: Final = expect
        self.nobody: Final = nobody
        self._shared: Final = shared
        self._swim: Final = swim
        self._journal: Final = journal
        self._now_ms: Final = now_ms
        self._step: Final = step
        self._conversations: Final = conversations
        self._post: Final = post
        self._tells_soon = False
        self._seen: dict[str, None] = {}
        self._forgotten: dict[str, None] = {}
        conversations.on(TOPIC, self._hear_hints)

    @property
    def incarnation(self) -> int:
        """How often this life had to speak up."""
        return self._swim.incarnation

    def known(self) -> Sequence[str]:
        """Return the names of all members there is a row of."""
        return [member.name for member in self._swim.members()]

    def carry(self, wish: SpreadRumor | OpenExchanges | DigestIs) -> None:
        """Perform effects of shared state."""
        swim, now_ms = self._swim, self._now_ms()
        match wish:
            case SpreadRumor(kind=kind, key=key, content=content):
                self._step(lambda: swim.say(kind, key, content, now_ms=now_ms))
            case OpenExchanges(why=why, count=count, name=name):
                self._step(lambda: swim.converse(why, count=count, name=name, now_ms=now_ms))
            case DigestIs(digest=digest):
                swim.set_document_digest(digest)

    def happened(self, kind: str, text: str, detail: Mapping[str, str | int]) -> None:
        """Make an event and a line of log of it."""
        event, level = _EVENTS[kind]
        self._journal.add(event, self._swim.name, text, level=level, detail=detail)

    async def take_hints(self, name: str, letter: bytes, *, deadline_s: float) -> bytes:
        """Return what a member answers to hints; NotDeliveredError."""
        member = self._swim.member(name)
        if member is None or member.rank.gone:
            raise NotDeliveredError(f"{name} is no living member")
        try:
            return await self._conversations.ask(
                name, member.address, TOPIC, letter, deadline_s=deadline_s
            )
        except AskError as error:
            raise NotDeliveredError(str(error)) from error

    async def _hear_hints(self, letter: bytes, caller: str) -> bytes:
        try:
            return await self._shared.hints.answer(letter, caller)
        except HintError as error:
            raise AskError("unknown", str(error)) from error

    def members_changed(self) -> None:
        """Tell which members live, soon and once: half a cluster may come in one exchange."""
        if not self._tells_soon:
            self._tells_soon = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._tells_soon = False
        members = self._swim.members()
        living = [(one.name, one.boot) for one in members if one.announced and not one.rank.gone]
        self._shared.set_members(living)
        left = [one.name for one in members if one.rank is Rank.LEFT]
        self._shared.rights.members(
            [Life(*one) for one in sorted(living)], left + self._lost(members)
        )

    def _lost(self, members: Sequence[Member]) -> list[str]:
        """Return the names that this life had rows of and has none any more: they were forgotten."""
        rows = {member.name: None for member in members}
        self._forgotten |= {name: None for name in self._seen if name not in rows}
        self._forgotten = {name: None for name in self._forgotten if name not in rows}
        self._seen = rows
        while len(self._forgotten) > FORGOTTEN_MAX:
            del self._forgotten[next(iter(self._forgotten))]
        return sorted(self._forgotten)

    # ── Letters ──────────────────────────────────────────────────────────────

    def send_letter(self, name: str, content: bytes) -> None:
        """Send a datagram to a member, by its name, or lose it."""
        member = self._swim.member(name)
        if member is None or member.rank is Rank.LEFT:
            return
        self._post(write_letter(self._swim.name, self._swim.boot, content), member.address)

    def letter_came(self, packet: bytes) -> None:
        """Hand a letter to its receiver, if its writer is known."""
        tag, content = read_letter(packet)
        name = self._swim.name_of(tag)
        if name is not None:
            self._shared.rights.hear(content, name)
