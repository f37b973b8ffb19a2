"""What other nodes have on their disks for a store that all share: a thread of theirs is not read before it is written.

While the store is away a turn waits on the disk of the node that made it, and was acknowledged. When the store is
back, every other node would find it missing until that node has written it: a response that there is would be denied,
and a conversation would go on without its last turn. So a node with such turns says so to the others, and they ask it
about a thread before they ask the store. Usually nobody has any, and nobody is asked.

A node that died with turns on its disk cannot be asked. Then what is not found may be there, which is said.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from smg_node.core.errors import SmgError
from smg_node.history.keeping import Keeping
from smg_node.history.peers import UNWRITTEN, Peers
from smg_node.history.ports import Kept
from smg_storage.around import AroundStore, Call
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import thread_of
from smg_storage.records import Access, Chain, Turn
from smg_storage.store import HistoryStore

LOOK_S: Final = 0.25
"""So long what was last heard of the others counts."""
ASK_S: Final = 2.0
YES: Final = b"\x01"
NO: Final = b"\x00"
_TOLD_MISSING: Final = frozenset({"get_response", "get_response_chain"})
"""Where a client would hear that there is no such response."""

T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """Whether turns wait that write one of these ids, or anything of the tenant's."""

    tenant: str
    ids: Sequence[str]
    of_all: bool = False


class Unwritten(AroundStore):
    """What keeps history in a store that is shared, careful of what others still have to write."""

    def __init__(self, keeping: Keeping, peers: Peers, *, now_s: Callable[[], float]) -> None:
        super().__init__(keeping)
        self._keeping: Final = keeping
        self._peers: Final = peers
        self._now_s: Final = now_s
        self._look_s = float("-inf")
        self._others: Mapping[str, str] = {}

    @property
    def store(self) -> HistoryStore:
        """Where everything is read, and written that can be written again by whoever asked."""
        return self

    def check_can_keep(self) -> None:
        """Return if a turn that is made now can be made durable, as far as is known; else UNAVAILABLE."""
        self._keeping.check_can_keep()

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable; what came before it in its thread was read, and so was written."""
        return await self._keeping.commit(access, turn)

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Write a turn into the store itself."""
        return await self._keeping.write(access, turn)

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        others = self._spooling()
        if not others or call.access is None or not (call.ids or call.of_all):
            return await run()
        silent = await self._asked(others, call, call.access)
        found = await run()
        if silent and call.operation in _TOLD_MISSING and _is_missing(found):
            raise _waits(silent)
        return found

    def _spooling(self) -> Mapping[str, str]:
        """Return the other nodes that have turns on their disks, and what they are."""
        now_s = self._now_s()
        if now_s >= self._look_s:
            self._look_s, self._others = now_s + LOOK_S, self._peers.spooling()
        return self._others

    async def _asked(self, others: Mapping[str, str], call: Call, access: Access) -> str:
        """Return a node that may have something and does not answer, "" if all do; UNAVAILABLE if one has."""
        silent = next((name for name, state in others.items() if state in ("dead", "left")), "")
        names = [name for name, state in others.items() if state not in ("dead", "left")]
        # One id of each thread is enough.
        ids = list({thread_of(each): each for each in call.ids}.values())
        payload = msgspec.msgpack.encode(Asked(access.tenant, ids, call.of_all))
        deadline_s = min(ASK_S, access.timeout_s)
        said = await asyncio.gather(*(self._ask(name, payload, deadline_s) for name in names))
        for name, answer in zip(names, said, strict=True):
            if answer == YES:
                raise _waits(name)
            if answer != NO:
                silent = name
        return silent

    async def _ask(self, name: str, payload: bytes, deadline_s: float) -> bytes:
        try:
            return await self._peers.ask(name, UNWRITTEN, payload, deadline_s=deadline_s)
        except SmgError:
            return b""


async def answered(keeping: Keeping, payload: bytes) -> bytes:
    """Return the answer of a node that is asked what it has on its disk, when that is written, if it is soon."""
    try:
        asked = msgspec.msgpack.decode(payload, type=Asked)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""
    waits = await keeping.unwritten(asked.tenant, asked.ids, any_of_them=asked.of_all)
    return YES if waits else NO


def _is_missing(found: object) -> bool:
    return found is None or (isinstance(found, Chain) and bool(found.missing))


def _waits(name: str) -> StoreError:
    message = f"turns of this thread may wait on the disk of {name}"
    return StoreError(StoreErrorKind.UNAVAILABLE, message)
