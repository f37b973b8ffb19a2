"""Pending writes: turns spooled on other nodes; their threads are not read before they are written.

While the shared store is unavailable a turn waits on the disk of the node that made it, and was
acknowledged. When the store is back, every other node would find it missing until that node has
written it: an existing response would be "not found", and a conversation would continue without its
last turn. So a node with spooled turns announces that to the others, and they ask it about a thread
before they read the store. Usually there are none, and no node is asked.

A node that died with spooled turns cannot be asked. Then a record that is not found may exist, and
the error says so.

Nor can a node announce anything while it is cut off, and gossip takes its time. So before a client
gets "not found" for a response, all living nodes are asked, and then the store again: that is
expensive, but requests for missing responses are rare. A dead node cannot be asked. It may have the
response if the store was unavailable after the node's last contact and after the response was
begun, or if that contact was only just now; then the answer is that it cannot be known, until that
node is back, has left or is forgotten. The age of a response is read from the time in its id. While
a node is not heard the store is probed each second, so that no outage goes unnoticed on a node
without requests.

A conversation exists also without its last turn, so a missing turn would not be noticed. Before one
of its turns is spooled every other node is told, and continues that conversation only when the turn
is written. Where a node cannot be told because it is dead or cut off, the turn is refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from smg_node.core.errors import SmgError
from smg_node.history.errors import PendingWriteError
from smg_node.history.peers.peer_interface import UNWRITTEN, Peers
from smg_node.history.peers.pending_announcements import PendingAnnouncements
from smg_node.history.peers.pending_announcer import PendingAnnouncer
from smg_node.history.ports import NO_STORE, Kept
from smg_node.history.store.resilient_store import ResilientStore
from smg_storage.errors import StoreError
from smg_storage.ids import made_ms, thread_of
from smg_storage.records import Access, Chain, Turn
from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import Call, StoreWrapper

LOOK_S: Final = 0.25
"""So long what was last heard of the others counts."""
ASK_S: Final = 2.0
LATE_S: Final = 10.0
"""So long after the store answers here another node may still take it for away (a breaker's 5 s, and a look of 2 s), and
its word for what it has on its disk may still be on its way."""
TURN_MAX_MS: Final = 86_400_000
"""No call outlives a day, so between a response's id and its turn there is not more."""
UNHEARD_S: Final = 5.0
"""Who was not heard for so long may be cut off; a node that is well says something about each second."""
GOING_S: Final = 30.0
"""So long after it was heard last a dead node may have had a store away that nobody else missed; if it lives on where it
reaches the store, what it has is written by then."""
WATCH_S: Final = 1.0
WATCH_ANSWER_S: Final = 2.0
ASKED_MAX: Final = 64
"""So many nodes are asked about one response. More who live are believed, but for whom the store may have been away."""
YES: Final = b"\x01"
NO: Final = b"\x00"
_TOLD_MISSING: Final = frozenset({"get_response", "get_response_chain", "delete_response"})
"""Where a client would hear that there is no such response."""

T = TypeVar("T")


class PendingQuery(msgspec.Struct, frozen=True, array_like=True):
    """Whether turns wait that write one of these ids, or anything of the tenant's."""

    tenant: str
    ids: Sequence[str]
    of_all: bool = False


class PendingWrites(StoreWrapper):
    """Keeper over a shared store that respects turns spooled on other nodes."""

    def __init__(
        self,
        keeping: ResilientStore,
        peers: Peers,
        *,
        now_s: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        """Take the time of this process, and Unix time in milliseconds, which ids tell too."""
        super().__init__(keeping)
        self._keeping: Final = keeping
        self._peers: Final = peers
        self._now_s: Final = now_s
        self._now_ms: Final = now_ms
        self._foretelling: Final = PendingAnnouncer(peers)
        self._foretold: Final = PendingAnnouncements(now_s=now_s)
        keeping.foretell = self._foretell
        self._look_s = float("-inf")
        self._others: Mapping[str, str] = {}

    @property
    def store(self) -> HistoryStore:
        """Store for all reads, and for writes that their caller can repeat."""
        return self

    def check_can_keep(self) -> None:
        """Return if a turn made now can be made durable, as far as is known; else UNAVAILABLE."""
        self._keeping.check_can_keep()

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable; the turns before it in its thread were read, and so were written."""
        return await self._keeping.commit(access, turn)

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Write a turn into the store itself."""
        return await self._keeping.write(access, turn)

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        if call.access is None or not (call.ids or call.of_all):
            return await run()
        await self._until_foretold_written(call.access, call.ids)
        others = self._spooling()
        silent = await self._asked(others, call, call.access) if others else ""
        found = await run()
        missing = _missing(call, found) if call.operation in _TOLD_MISSING else ""
        if not missing:
            return found
        unsure = {} if silent else self._unsure(missing, but=others)
        if unsure:
            silent = await self._asked(unsure, call, call.access)
        if silent:
            raise PendingWriteError(silent)
        # Who has nothing on its disk now may have written it since it was looked for.
        return await run() if unsure else found

    def _unsure(self, missing: str, *, but: Collection[str]) -> Mapping[str, str]:
        """Return the nodes that may have spooled this response without an announcement that reached
        this node.
        """
        born_ms = made_ms(missing)
        if born_ms is None or self._keeping.kind == NO_STORE:
            return {}
        born_s = (self._now_ms() - born_ms) / 1_000
        made_s = born_s - TURN_MAX_MS / 1_000
        away_s = self._keeping.failed_s_ago - LATE_S
        # What began when the store was well again never waited for it.
        was_away = born_s >= away_s
        found: dict[str, str] = {}
        heard = self._peers.heard()
        for name, last in sorted(heard.items(), key=lambda row: row[1].s_ago, reverse=True):
            if last.s_ago < made_s or name in but:
                continue
            living = last.state != "dead" and len(found) < ASKED_MAX
            missed = was_away and last.s_ago >= away_s
            if living or missed or (last.state == "dead" and last.s_ago < GOING_S):
                found[name] = last.state
        return found

    # ── Conversations ────────────────────────────────────────────────────────

    async def _foretell(self, access: Access, turn: Turn) -> None:
        """Announce to all others that a turn of a conversation is about to be spooled;
        NotAnnouncedError if one cannot be told.
        """
        conversation = turn.response.conversation_id
        if conversation:
            await self._foretelling.tell(access.tenant, conversation)

    def hear(self, payload: bytes, caller: str) -> bytes:
        """Record which threads are about to be spooled on another node."""
        return self._foretold.hear(payload, caller)

    async def _until_foretold_written(self, access: Access, ids: Sequence[str]) -> None:
        """Return when none of these ids is announced as spooled any more; UNAVAILABLE if one is, or
        may be.
        """
        for name, numbers in self._foretold.of(access.tenant, ids).items():
            payload = msgspec.msgpack.encode(PendingQuery(access.tenant, ids))
            if await self._ask(name, payload, min(ASK_S, access.timeout_s)) != NO:
                raise PendingWriteError(name)
            self._foretold.written(name, numbers)

    async def _look_into_foretold(self) -> None:
        """Drop announcements that are written by now, or whose node is forgotten."""
        known = self._peers.known()
        self._foretold.keep_only(known)
        for name, (tenant, ids, numbers) in self._foretold.due(LATE_S, ASKED_MAX).items():
            payload = msgspec.msgpack.encode(PendingQuery(tenant, ids))
            if known[name] == "alive" and await self._ask(name, payload, ASK_S) == NO:
                self._foretold.written(name, numbers)

    async def watch(self) -> None:
        """Notice store outages while a node is not heard, and which announcements are written;
        until cancelled.
        """
        while self._keeping.kind != NO_STORE:
            await asyncio.sleep(WATCH_S)
            await self._look_into_foretold()
            if any(last.s_ago >= UNHEARD_S for last in self._peers.heard().values()):
                with suppress(StoreError):
                    await self._keeping.ping(timeout_s=WATCH_ANSWER_S)

    def _spooling(self) -> Mapping[str, str]:
        """Return the other nodes that have spooled turns, and their state."""
        now_s = self._now_s()
        if now_s >= self._look_s:
            self._look_s, self._others = now_s + LOOK_S, self._peers.spooling()
        return self._others

    async def _asked(self, others: Mapping[str, str], call: Call, access: Access) -> str:
        """Return a node that may have something and does not answer, "" if all do; UNAVAILABLE if
        one has it.
        """
        silent = next((name for name, state in others.items() if state in ("dead", "left")), "")
        names = [name for name, state in others.items() if state not in ("dead", "left")]
        silent = next(iter(names[ASKED_MAX:]), silent)
        del names[ASKED_MAX:]
        # One id of each thread is enough.
        ids = list({thread_of(each): each for each in call.ids}.values())
        payload = msgspec.msgpack.encode(PendingQuery(access.tenant, ids, call.of_all))
        deadline_s = min(ASK_S, access.timeout_s)
        said = await asyncio.gather(*(self._ask(name, payload, deadline_s) for name in names))
        for name, answer in zip(names, said, strict=True):
            if answer == YES:
                raise PendingWriteError(name)
            if answer != NO:
                silent = name
        return silent

    async def _ask(self, name: str, payload: bytes, deadline_s: float) -> bytes:
        try:
            return await self._peers.ask(name, UNWRITTEN, payload, deadline_s=deadline_s)
        except SmgError:
            return b""


async def answered(keeping: ResilientStore, payload: bytes) -> bytes:
    """Return this node's answer to a `PendingQuery`, once the turns are written, if that is soon."""
    try:
        asked = msgspec.msgpack.decode(payload, type=PendingQuery)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""
    waits = await keeping.unwritten(asked.tenant, asked.ids, any_of_them=asked.of_all)
    return YES if waits else NO


def _missing(call: Call, found: object) -> str:
    """Return the id of the response that was not found, "" if all was."""
    if isinstance(found, Chain):
        return found.missing
    return "" if found else call.ids[0]
