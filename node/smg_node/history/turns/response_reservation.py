"""Reservation for one response, held until it is over: idempotency key, quota room, answers to approvals."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smg_node.core.generation.events import Event
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.history.ports import NO_STORE
from smg_node.history.turns.idempotency import ANSWERS, HeldKey
from smg_node.history.turns.quotas import Place
from smg_storage.records import Access, Idempotency, Status, Turn
from smg_storage.store import HistoryStore

if TYPE_CHECKING:
    # Loaded with the first answer to an approval.
    from smg_node.history.turns.approval_answers import HeldAnswers


class ResponseReservation:
    """Key, quota room and answers of one response; `over` may be called again after an interruption."""

    __slots__ = ("_answers", "_bound", "_key", "_place")

    def __init__(self, key: HeldKey | None = None, place: Place | None = None) -> None:
        self._key = key
        self._place = place
        self._bound = False
        self._answers: HeldAnswers | None = None

    @property
    def response_id(self) -> str:
        """Id under which the response is made, if that is known already."""
        return "" if self._key is None else self._key.response_id

    @property
    def thread(self) -> str:
        """Thread in which the response is made, if that is known already."""
        return "" if self._key is None else self._key.thread

    def take(self, place: Place) -> None:
        """Take over reserved quota room."""
        self._place = place

    async def answer(
        self,
        store: HistoryStore,
        access: Access,
        wish: GenerateRequest,
        said: Sequence[ItemDoc],
        response_id: str,
        now_ms: Callable[[], int],
    ) -> GenerateRequest:
        """Reserve the answers to approvals that a request brings, where anything is stored; `said` is its input.

        Returned is the request, which says of its approved calls whether stored responses ask for them. Errors as
        `ApprovalAnswers.reserve` has them.
        """
        serving = wish.serving
        if serving is None or not serving.answered or store.kind == NO_STORE:
            return wish
        from smg_node.history.turns.approval_answers import ApprovalAnswers
        from smg_node.history.turns.kept_requests import with_kept_requests

        known = await with_kept_requests(store, access, wish)
        answers = ApprovalAnswers(store, now_ms=now_ms)
        self._answers = await answers.reserve(access, serving.answered, said, response_id)
        return known

    def start(self) -> None:
        """Take that the generation starts."""
        if self._answers is not None:
            self._answers.start()

    def watch(self, events: Sequence[Event]) -> None:
        """Take the next events of the generation."""
        if self._answers is not None:
            self._answers.watch(events)

    def ended(self, ended: FinalStatus) -> None:
        """Take how the response ended, before it is stored."""
        if self._answers is not None and Status(ended.status) in ANSWERS:
            self._answers.keep()

    def key_for(self, ended: FinalStatus) -> Idempotency | None:
        """Return the key to be written with this final status; None where a key may not map to it."""
        return self._kept() if Status(ended.status) in ANSWERS else None

    def key_at_once(self) -> Idempotency | None:
        """Return the key to be written with the response's first row, however the response ends."""
        return self._kept()

    def bound(self) -> None:
        """Record that the key was written with the first row, and stays."""
        self._bound = True

    async def over(self, kept: Turn | None) -> None:
        """Release what is not needed any more: `kept` is what the store has of it, None for
        nothing.
        """
        if self._place is not None and kept is not None:
            self._place.kept(len(kept.response.input) + len(kept.response.response))
            self._place = None
        self.lost()
        written = self._bound or (kept is not None and kept.idempotency is not None)
        if self._key is not None and not written:
            await self._key.release()
        self._key = None
        if self._answers is not None:
            await self._answers.over()
            self._answers = None

    def lost(self) -> None:
        """Release the quota room, if it is still held: another owner decides how the response ends."""
        place, self._place = self._place, None
        if place is not None:
            place.left()

    def _kept(self) -> Idempotency | None:
        return None if self._key is None else self._key.kept()
