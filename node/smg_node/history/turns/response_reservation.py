"""Reservation for one response, held until it is over: idempotency key and quota room."""

from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.history.turns.idempotency import ANSWERS, HeldKey
from smg_node.history.turns.quotas import Place
from smg_storage.records import Idempotency, Status, Turn


class ResponseReservation:
    """Key and quota room of one response; `over` may be called again after an interruption."""

    __slots__ = ("_bound", "_key", "_place")

    def __init__(self, key: HeldKey | None = None, place: Place | None = None) -> None:
        self._key = key
        self._place = place
        self._bound = False

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

    def lost(self) -> None:
        """Release the quota room, if it is still held: another owner decides how the response ends."""
        place, self._place = self._place, None
        if place is not None:
            place.left()

    def _kept(self) -> Idempotency | None:
        return None if self._key is None else self._key.kept()
