"""Remote store: a HistoryStore on another node, each operation one question over the mesh.

The node that is asked answers from its own store: it never forwards. Payloads too large for one
message go in parts. A busy node says so, and is asked again as long as there is time.

When no answer comes, it is unknown whether the operation was done. Idempotent operations, as most
writes are because of their ids, are repeated until the time is over; a read is repeated once; the
rest are not.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Rng
from smg_node.history.errors import HolderAwayError
from smg_node.history.peers import remote_store_messages as words
from smg_node.history.peers.chunked_messages import PARCEL_BYTES_MAX, PART_BYTES, part, parts_of
from smg_node.history.peers.peer_interface import STORE, Peers
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access
from smg_storage.store import HistoryStore

AT_ONCE_MAX: Final = 8
"""Operations that one node is asked to do at a time; more of them wait here for their turn."""
PAUSE_S: Final = 0.02
PAUSE_MAX_S: Final = 0.25
HOLDERS_SHARE: Final = 0.8
"""Of the time that is left the holder's store has so much: its own words about what is wrong come back in time."""
SILENT_S: Final = 60.0
"""So often it is logged that a node does not answer."""

_AGAIN: Final = frozenset(
    {
        "commit",
        "write",
        "commit_turn",
        "store_response",
        "create_conversation",
        "create_item",
        "link_items",
        "append_items",
        "append_events",
        "renew_run",
        "release_run",
        "request_cancel",
        "reserve_key",
        "release_key",
    }
)
"""Writes that do nothing when they are done again, and answer the same."""
_PATIENT: Final = frozenset({"commit", "write", "append_events"})
"""What was made already and would be lost: it is worth waiting for a node that is started again."""
_READS: Final = frozenset(
    {
        "get_conversation",
        "list_items",
        "newest_items",
        "get_item",
        "find_items",
        "is_item_linked",
        "get_response",
        "get_response_chain",
        "list_identifier_responses",
        "read_events",
        "tenant_figures",
    }
)
_READ_TRIES: Final = 2

_log: Final = logging.getLogger("smg_node.history")


class _BusyError(Exception):
    """The node is busy and has done nothing; it may be asked again."""


class _NoAnswerError(Exception):
    """No answer: the operation may be done, or not."""


class RemoteStores:
    """Stores of other nodes. `observe` gets each operation, its outcome, and its seconds."""

    def __init__(
        self,
        peers: Peers,
        *,
        now_s: Callable[[], float],
        rng: Rng,
        observe: Callable[[str, str, float], None],
    ) -> None:
        self._peers: Final = peers
        self._now_s: Final = now_s
        self._rng: Final = rng
        self._observe: Final = observe
        self._stores: Final[dict[str, HistoryStore]] = {}
        self._turns: Final[dict[str, asyncio.Semaphore]] = {}
        self._quiet_until_s: Final[dict[str, float]] = {}

    def store(self, node: str) -> HistoryStore:
        """Return another node's store: HolderAwayError while that node does not answer."""
        found = self._stores.get(node)
        if found is None:
            found = self._stores[node] = cast(HistoryStore, RemoteStore(self, node))
        return found

    async def ask(
        self, node: str, operation: str, access: Access, arguments: Mapping[str, Any]
    ) -> Any:
        """Return the result of an operation on another node; its StoreError, or HolderAwayError."""
        began_s = self._now_s()
        outcome = "cancelled"
        try:
            async with asyncio.timeout(access.timeout_s):
                async with self._turn(node):
                    result = await self._until_answered(node, operation, access, arguments)
            outcome = "ok"
        except TimeoutError:
            outcome = "unavailable"
            raise self._away(node, "does not answer in time") from None
        except StoreError as error:
            outcome = error.kind.value
            raise
        finally:
            self._observe(operation, outcome, self._now_s() - began_s)
        return result

    def _turn(self, node: str) -> asyncio.Semaphore:
        return self._turns.setdefault(node, asyncio.Semaphore(AT_ONCE_MAX))

    def _away(self, node: str, why: str) -> HolderAwayError:
        now_s = self._now_s()
        if now_s >= self._quiet_until_s.get(node, now_s):
            self._quiet_until_s[node] = now_s + SILENT_S
            _log.warning("history: %s, which holds a thread, %s", node, why)
        return HolderAwayError(node, why)

    # ── Again and again ──────────────────────────────────────────────────────

    async def _until_answered(
        self, node: str, operation: str, access: Access, arguments: Mapping[str, Any]
    ) -> Any:
        """Ask until there is an answer, as often as the operation allows; the caller's time ends
        it.
        """
        until_s = self._now_s() + access.timeout_s
        pause_s, tries = PAUSE_S, 0
        while True:
            left_s = until_s - self._now_s()
            try:
                return await self._once(node, operation, access, arguments, left_s)
            except _BusyError:
                pass
            except _NoAnswerError as error:
                tries += 1
                if not self._again(node, operation, tries):
                    raise self._away(node, str(error)) from error
            await asyncio.sleep(pause_s * (0.5 + self._rng.random()))
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _again(self, node: str, operation: str, tries: int) -> bool:
        """Whether to ask again although it is unknown whether the operation was done."""
        if self._peers.known().get(node, "left") in ("dead", "left"):
            return operation in _PATIENT
        return operation in _AGAIN or (operation in _READS and tries < _READ_TRIES)

    # ── Once ─────────────────────────────────────────────────────────────────

    async def _once(
        self,
        node: str,
        operation: str,
        access: Access,
        arguments: Mapping[str, Any],
        left_s: float,
    ) -> Any:
        asked = words.write_request(
            operation,
            arguments,
            tenant=access.tenant,
            timeout_s=HOLDERS_SHARE * left_s,
            request_id=access.request_id,
        )
        if len(asked) > PARCEL_BYTES_MAX:
            message = f"more than {PARCEL_BYTES_MAX} bytes cannot be given to the node that holds the thread"
            raise StoreError(StoreErrorKind.TOO_LARGE, message)
        until_s = self._now_s() + left_s
        try:
            answer = await self._send(node, asked, until_s)
            said = await self._fetch(node, answer, until_s)
            return words.read_reply(said, operation)
        except words.MessageError as error:
            raise _NoAnswerError(f"says what is not understood: {error}") from error

    async def _send(self, node: str, content: bytes, until_s: float) -> words.Answer:
        """Send a question in its parts and return the answer to the last one."""
        count = parts_of(content)
        if count == 1:
            return await self._message(node, words.Question(content), until_s)
        parcel = self._rng.getrandbits(8 * words.PARCEL_BYTES).to_bytes(words.PARCEL_BYTES, "big")
        for index in range(count - 1):
            one = words.Question(part(content, index), parcel, index, count)
            await self._message(node, one, until_s)
        last = words.Question(part(content, count - 1), parcel, count - 1, count)
        return await self._message(node, last, until_s)

    async def _fetch(self, node: str, answer: words.Answer, until_s: float) -> bytes:
        """Return all of an answer."""
        if answer.count <= 1:
            return answer.content
        if answer.count > PARCEL_BYTES_MAX // PART_BYTES + 1:
            raise words.MessageError("the answer has too many parts")
        parts = [answer.content]
        for index in range(1, answer.count):
            wish = words.Question(b"", answer.parcel, index, 0)
            parts.append((await self._message(node, wish, until_s)).content)
        return b"".join(parts)

    async def _message(self, node: str, message: words.Question, until_s: float) -> words.Answer:
        left_s = max(until_s - self._now_s(), 0.001)
        try:
            payload = await self._peers.ask(node, STORE, words.write(message), deadline_s=left_s)
        except SmgError as error:
            if getattr(error.__cause__, "code", "") == "busy":
                raise _BusyError from error
            raise _NoAnswerError(_why(error, node)) from error
        answer = words.read_answer(payload)
        if answer.busy:
            raise _BusyError
        return answer


class RemoteStore:
    """Store on another node: every operation of the protocol of stores that takes an access, with
    its arguments.
    """

    def __init__(self, elsewhere: RemoteStores, node: str) -> None:
        self._elsewhere: Final = elsewhere
        self._node: Final = node

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return an operation that runs on that node."""
        known = words.operations().get(name)
        if known is None:
            raise AttributeError(name)

        async def ask(access: Access, *given: Any, **named: Any) -> Any:
            return await self._elsewhere.ask(self._node, name, access, known.bound(given, named))

        return ask


def _why(error: SmgError, node: str) -> str:
    """Return why there is no answer, after the node's name."""
    if error.kind is ErrorKind.NOT_FOUND:
        return "is no member any more"
    return f"does not answer ({error.message.removeprefix(f'{node}: ')})"
