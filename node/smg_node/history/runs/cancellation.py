"""Cancellation of a background response, from any node: its owner ends it, the caller waits.

    run on this node ──▶ cancelled directly
    on another node ───▶ a flag in the store, which the owner reads when it renews its lease (or the
                         node that recovers the run), and a message to the owner, to be quick
    then ──────────────▶ the row is read until it is final, or time is up

The owner is also told when a response is deleted while it is made, so that no engine goes on with
it.

No lock is needed and nothing is undone: a row has one end, whichever comes first, and every node
reads it there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal, Protocol

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_node.history.errors import asking_store, corrupt, response_not_found
from smg_node.history.peers.peer_interface import Peers
from smg_node.history.ports import Keeper
from smg_node.history.runs.predecessors import node_of
from smg_storage.ids import is_id
from smg_storage.records import Access, StoredResponse

TOPIC: Final = "history.cancel"
WAIT_S: Final = 8.0
"""So long somebody who cancels waits for the end; it comes later all the same."""
ASK_S: Final = 3.0
FORGET_S: Final = 1.0
"""Who deletes waits less: the owner notices when it writes the next time, or renews its lease."""
ASKED_WAIT_S: Final = 2.5
"""So long a node that was told to end a run lets who told it wait; the end is in the store then."""
LOOK_FIRST_S: Final = 0.05
LOOK_MOST_S: Final = 0.5
_QUESTION_BYTES_MAX: Final = 1_024


class CancellableRun(Protocol):
    """A response that this process makes."""

    def body(self) -> bytes:
        """Return its object as it is now."""
        ...

    def cancel(self) -> None:
        """Let it end; does nothing the second time."""
        ...

    def forget(self) -> None:
        """Stop it: its response was deleted."""
        ...

    async def ended(self) -> None:
        """Return when its end is durable, or it has another owner."""
        ...


class _Question(msgspec.Struct):
    tenant: str
    response_id: str
    word: Literal["cancel", "forget"] = "cancel"


class _Kind(msgspec.Struct):
    background: bool | None = None


_question: Final = msgspec.msgpack.Decoder(_Question).decode
_kind: Final = msgspec.json.Decoder(_Kind).decode


class Cancelling:
    """Cancels responses. `find` looks up this process's runs by tenant and id; `show` returns the
    object of a row.
    """

    def __init__(
        self,
        keeper: Keeper,
        find: Callable[[str, str], CancellableRun | None],
        *,
        show: Callable[[Access, StoredResponse], Awaitable[bytes]],
        peers: Peers,
        now_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._keeper: Final = keeper
        self._find: Final = find
        self._show: Final = show
        self._peers: Final = peers
        self._now_s: Final = now_s
        self._sleep: Final = sleep
        peers.answer(TOPIC, self._asked)

    async def cancel(self, access: Access, response_id: str, *, foreground: bool = False) -> bytes:
        """Return the object of a response that is cancelled or over now, or about to be.

        NOT_FOUND; INVALID_REQUEST `cannot_cancel` for one that was not asked for in the background, unless
        `foreground` ones may be cancelled too; OVERLOADED `store_unavailable`.
        """
        until_s = self._now_s() + WAIT_S
        run = self._find(access.tenant, response_id)
        if run is not None:
            if not foreground:
                _check_background(response_id, run.body())
            run.cancel()
            await _ended(run, WAIT_S)
        elif not is_id(response_id):
            raise response_not_found(response_id)
        else:
            record = await self._row(access, response_id)
            if not foreground:
                _check_background(response_id, record.response)
            if record.status.is_final:
                return record.response
            await self._have_it_ended(access, record)
        return await self._end_of(access, response_id, until_s)

    # ── Deleted ──────────────────────────────────────────────────────────────

    async def maker(self, access: Access, response_id: str) -> str:
        """Return the name of the other node that makes it; "" if none does."""
        if self._find(access.tenant, response_id) is not None or not is_id(response_id):
            return ""
        with asking_store():
            record = await self._keeper.store.get_response(access, response_id)
        return "" if record is None or record.status.is_final else node_of(record.owner)

    async def forget(self, access: Access, response_id: str, node: str) -> None:
        """Have its run stopped, here or on the other node: the response was deleted."""
        run = self._find(access.tenant, response_id)
        if run is not None:
            run.forget()
        elif node:
            question = _Question(access.tenant, response_id, "forget")
            await self._tell(node, question, deadline_s=FORGET_S)

    # ── Elsewhere ────────────────────────────────────────────────────────────

    async def _have_it_ended(self, access: Access, record: StoredResponse) -> None:
        """Set the flag in the store, and tell the owner's node."""
        with asking_store():
            noted = await self._keeper.store.request_cancel(access, record.id)
        node = node_of(record.owner)
        if noted is None or noted.status.is_final or not node:
            return
        await self._tell(node, _Question(access.tenant, record.id), deadline_s=ASK_S)

    async def _tell(self, node: str, question: _Question, *, deadline_s: float) -> None:
        """Tell a node, so that it is done at once; if the message is lost, the flag still does it."""
        with suppress(SmgError):
            payload = msgspec.msgpack.encode(question)
            await self._peers.ask(node, TOPIC, payload, deadline_s=deadline_s)

    async def _asked(self, payload: bytes, _caller: str) -> bytes:
        """End or forget a run of this process on behalf of another node, and answer whether that is
        done.
        """
        if len(payload) > _QUESTION_BYTES_MAX:
            return b"no"
        try:
            asked = _question(payload)
        except msgspec.DecodeError:
            return b"no"
        run = self._find(asked.tenant, asked.response_id)
        if run is None:
            return b"no"
        if asked.word == "forget":
            run.forget()
            return b"yes"
        run.cancel()
        return b"yes" if await _ended(run, ASKED_WAIT_S) else b"soon"

    # ── Its end ──────────────────────────────────────────────────────────────

    async def _end_of(self, access: Access, response_id: str, until_s: float) -> bytes:
        """Return the object once it is final, or as it is when time is up."""
        wait_s = LOOK_FIRST_S
        while True:
            record = await self._row(access, response_id)
            if record.status.is_final:
                return record.response
            if self._now_s() + wait_s > until_s:
                return await self._show(access, record)
            await self._sleep(wait_s)
            wait_s = min(2 * wait_s, LOOK_MOST_S)

    async def _row(self, access: Access, response_id: str) -> StoredResponse:
        with asking_store():
            record = await self._keeper.store.get_response(access, response_id)
        if record is None:
            raise response_not_found(response_id)
        return record


async def _ended(run: CancellableRun, wait_s: float) -> bool:
    """Wait for a run to end; return whether it has."""
    try:
        async with asyncio.timeout(wait_s):
            await run.ended()
    except TimeoutError:
        return False
    return True


def _check_background(response_id: str, response: bytes) -> None:
    try:
        background = _kind(response).background
    except msgspec.DecodeError as error:
        raise corrupt(f"object of response {response_id}") from error
    if not background:
        raise not_cancellable(response_id)


def not_cancellable(response_id: str) -> SmgError:
    """Return the error for a foreground response: its client cancels it by disconnecting."""
    return invalid(
        f"{quoted(response_id)} was not made in the background; only such a response can be cancelled",
        None,
        "cannot_cancel",
    )
