"""Remote store server: answers other nodes' operations on this node's store; never forwards them.

Only members of the mesh get here. Their tenant is trusted: they have checked the client's key, as
this node would have.
"""

from collections.abc import Callable
from typing import Final

from smg_node.core.ports import Rng
from smg_node.history.peers import remote_store_messages as words
from smg_node.history.peers.chunked_messages import (
    PARCEL_BYTES_MAX,
    ChunkedMessages,
    ChunkError,
    NoRoomError,
    part,
    parts_of,
)
from smg_node.history.ports import Keeper
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access

AT_ONCE_MAX: Final = 24
"""Operations for other nodes at a time; the mesh answers 32 questions, and some have to be left for other topics."""
TIMEOUT_S: Final = 60.0
"""The longest that an operation may take, whatever a node says."""
_TIMEOUT_MIN_S: Final = 0.05


class RemoteStoreServer:
    """Answers for `keeper`, this node's own one."""

    def __init__(self, keeper: Keeper, *, now_s: Callable[[], float], rng: Rng) -> None:
        self._keeper: Final = keeper
        self._rng: Final = rng
        self._parcels: Final = ChunkedMessages(now_s)
        self._at_once = 0

    async def answer(self, payload: bytes, caller: str) -> bytes:
        """Return the message that answers a message of `caller`."""
        try:
            question = words.read_question(payload)
            if question.count == 0:
                return words.write(self._further(question, caller))
            # Who has brought all parts but one is not sent away with the last.
            if question.index == 0 and self._at_once >= AT_ONCE_MAX:
                return words.write(words.Answer(busy=True))
            content = self._whole(question, caller)
        except (words.MessageError, ChunkError):
            return words.write(words.Answer(_NOT_UNDERSTOOD))
        except NoRoomError:
            return words.write(words.Answer(busy=True))
        if content is None:
            return words.write(words.Answer())
        self._at_once += 1
        try:
            said = await self._said(content)
        finally:
            self._at_once -= 1
        return words.write(self._first(said, caller))

    def _whole(self, question: words.Question, caller: str) -> bytes | None:
        """Return the whole request, None while parts of it are missing."""
        if question.count == 1:
            return question.content
        key = (caller, question.parcel[: words.PARCEL_BYTES])
        return self._parcels.take_in(key, question.index, question.count, question.content)

    def _further(self, question: words.Question, caller: str) -> words.Answer:
        key = (caller, question.parcel[: words.PARCEL_BYTES])
        return words.Answer(self._parcels.give_out(key, question.index))

    def _first(self, said: bytes, caller: str) -> words.Answer:
        """Return an answer, or the first part of one whose others are kept to be fetched."""
        count = parts_of(said)
        if count == 1:
            return words.Answer(said)
        if len(said) > PARCEL_BYTES_MAX:
            return words.Answer(_TOO_LARGE)
        parcel = self._rng.getrandbits(8 * words.PARCEL_BYTES).to_bytes(words.PARCEL_BYTES, "big")
        try:
            self._parcels.keep((caller, parcel), said)
        except NoRoomError:
            # It is done, so that it must not be asked again as if nothing had been.
            return words.Answer(_NO_ROOM)
        return words.Answer(part(said, 0), parcel, count)

    async def _said(self, content: bytes) -> bytes:
        """Run the operation, and return its reply."""
        try:
            asked, arguments = words.read_request(content)
        except words.MessageError:
            return _NOT_UNDERSTOOD
        access = Access(
            tenant=asked.tenant,
            timeout_s=min(max(asked.timeout_s, _TIMEOUT_MIN_S), TIMEOUT_S),
            request_id=asked.request_id,
        )
        of = self._keeper if asked.operation in words.OF_KEEPERS else self._keeper.store
        try:
            return words.write_result(await getattr(of, asked.operation)(access, **arguments))
        except StoreError as error:
            return words.write_failure(error)


def _failure(kind: StoreErrorKind, message: str) -> bytes:
    return words.write_failure(StoreError(kind, message))


_NOT_UNDERSTOOD: Final = _failure(
    StoreErrorKind.UNAVAILABLE, "the node that holds it does not understand the question"
)
_NO_ROOM: Final = _failure(
    StoreErrorKind.UNAVAILABLE, "the node that holds it has no room for an answer of this size"
)
_TOO_LARGE: Final = _failure(
    StoreErrorKind.TOO_LARGE, f"an answer has at most {PARCEL_BYTES_MAX} bytes between nodes"
)
