"""Idempotency keys: a request with a client's key runs once, and repeats get its response.

    reserve ──▶ new: run it ──▶ completed, incomplete: the key is written with the turn, and answers for a day
       │                  └──▶ failed, cancelled: the key is released, so that the request can be retried
       ├──▶ finished already: the stored response again
       ├──▶ in progress: 409 with Retry-After
       └──▶ of another request: 409

A reservation expires soon after its request's time limit: a node that reserved a key and died does
not hold it for a day. A background response has its row, and its key, before its client is
answered; however it ends is the answer to that key.
"""

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.dialects.responses.request.idempotency_key import IdempotencyKey, PriorResult
from smg_node.history.errors import asking_store
from smg_node.history.ports import HistoryOptions, Keeper
from smg_storage.errors import StoreError
from smg_storage.ids import new_id
from smg_storage.records import Access, Idempotency, KeyState, Status, StoredResponse
from smg_storage.store import HistoryStore

MARGIN_S: Final = 60.0
"""So long after its deadline a request may still be on its way into the store."""
RETRY_AFTER_S: Final = 2.0
ANSWERS: Final = (Status.COMPLETED, Status.INCOMPLETE)
"""What is an answer, and stays the one under its key."""
_TRIES: Final = 2
"""A key of something that failed is taken over once; somebody else may have been quicker."""

_log: Final = logging.getLogger("smg_node.history")


class _Flags(msgspec.Struct):
    background: bool = False


_flags: Final = msgspec.json.Decoder(_Flags).decode


class HeldKey:
    """A reserved key, for the response that is about to be made under this id, in this thread."""

    def __init__(
        self,
        asked: IdempotencyKey,
        access: Access,
        response_id: str,
        thread: str,
        *,
        store: HistoryStore,
        over_us: Callable[[], int],
    ) -> None:
        self.response_id: Final = response_id
        self.thread: Final = thread
        self._asked: Final = asked
        self._access: Final = access
        self._store: Final = store
        self._over_us: Final = over_us

    def kept(self) -> Idempotency:
        """Return the key record to be written with the response: the key then answers for a day."""
        return Idempotency(self._asked.key, self._asked.digest, self._over_us())

    async def release(self) -> None:
        """Release the key, as far as the store can be reached; otherwise it expires. Raises
        nothing.
        """
        try:
            await self._store.release_key(self._access, self._asked.key, self.response_id)
        except StoreError as error:
            _log.warning(
                "the key of response %s is not given back: %s", self.response_id, error.message
            )


class IdempotencyService:
    """Reserves idempotency keys."""

    def __init__(self, keeper: Keeper, *, clock: Clock, rng: Rng, options: HistoryOptions) -> None:
        self._store: Final = keeper.store
        self._clock: Final = clock
        self._rng: Final = rng
        self._options: Final = options

    async def reserve(
        self, access: Access, asked: IdempotencyKey, thread: str, *, for_s: float
    ) -> HeldKey | PriorResult:
        """Reserve a key for a response that takes up to `for_s`, or return the earlier result under
        it.

        CONFLICT `idempotency_in_progress` while the first request under it is in progress,
        `idempotency_conflict` if that was another request; OVERLOADED `store_unavailable`: nothing
        can be promised without the store.
        """
        now_ms = self._clock.now_ms()
        response_id = new_id("resp", thread, now_ms=now_ms, chance=self._rng)
        until_us = self._until_us(min(max(for_s, 0.0) + MARGIN_S, self._options.keys_kept_s))
        wanted = Idempotency(asked.key, asked.digest, until_us)
        record: StoredResponse | None = None
        with asking_store():
            for _ in range(_TRIES):
                found = await self._store.reserve_key(
                    access, wanted, response_id, now_us=self._clock.now_ms() * 1_000
                )
                if found.state is KeyState.NEW:
                    return self._held(asked, access, response_id, thread)
                if found.state is KeyState.DIFFERENT:
                    raise _conflict()
                record = await self._answered(access, found.response_id)
                if _answers(record):
                    return PriorResult(record.id)
                await self._store.release_key(access, asked.key, record.id)
        assert record is not None, "it was the same twice"
        return PriorResult(record.id)

    async def _answered(self, access: Access, response_id: str) -> StoredResponse:
        """Return the stored response under a key."""
        record = await self._store.get_response(access, response_id) if response_id else None
        if record is None or not (record.status.is_final or _in_background(record)):
            raise _in_progress()
        return record

    def _held(
        self, asked: IdempotencyKey, access: Access, response_id: str, thread: str
    ) -> HeldKey:
        return HeldKey(
            asked,
            access,
            response_id,
            thread,
            store=self._store,
            over_us=lambda: self._until_us(self._options.keys_kept_s),
        )

    def _until_us(self, after_s: float) -> int:
        return self._clock.now_ms() * 1_000 + round(after_s * 1_000_000)


def _answers(record: StoredResponse) -> bool:
    """Whether the record is the result of its key, and not the remainder of a failed attempt."""
    return record.status in ANSWERS or _in_background(record)


def _in_background(record: StoredResponse) -> bool:
    """Whether the client asked for a background response; the row only says that it was made under
    a lease.
    """
    try:
        return record.background and _flags(record.response).background
    except (msgspec.DecodeError, RecursionError):
        return False


def _in_progress() -> SmgError:
    return SmgError(
        ErrorKind.CONFLICT,
        "a request with this idempotency key is under way; or its response was deleted, and the key is not free yet",
        code="idempotency_in_progress",
        retry_after_s=RETRY_AFTER_S,
    )


def _conflict() -> SmgError:
    return SmgError(
        ErrorKind.CONFLICT,
        "this idempotency key was used for another request",
        code="idempotency_conflict",
    )
