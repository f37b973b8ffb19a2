"""What a response takes before it begins, and gives back when it is over: its client's key, and room to be kept in."""

from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.history.turns.idempotency import ANSWERS, HeldKey
from smg_node.history.turns.quotas import Place
from smg_storage.records import Idempotency, Status, Turn


class ResponseReservation:
    """The two of one response; `over` may be called again after an interruption."""

    __slots__ = ("_bound", "_key", "_place")

    def __init__(self, key: HeldKey | None = None, place: Place | None = None) -> None:
        self._key = key
        self._place = place
        self._bound = False

    @property
    def response_id(self) -> str:
        """Under which id it is made, if that is known already."""
        return "" if self._key is None else self._key.response_id

    @property
    def thread(self) -> str:
        """In which thread, if that is known already."""
        return "" if self._key is None else self._key.thread

    def take(self, place: Place) -> None:
        """Have room, too."""
        self._place = place

    def key_for(self, ended: FinalStatus) -> Idempotency | None:
        """Return the key to be written with what it came to; None where it is no answer that a key could stand for."""
        return self._kept() if Status(ended.status) in ANSWERS else None

    def key_at_once(self) -> Idempotency | None:
        """Return the key to be written with its first row, whatever it comes to."""
        return self._kept()

    def bound(self) -> None:
        """Know that the key was written with its first row, and stays."""
        self._bound = True

    async def over(self, kept: Turn | None) -> None:
        """Give back what is of no more use: `kept` is what there is of it in the store, None for nothing."""
        if self._place is not None and kept is not None:
            self._place.kept(len(kept.response.input) + len(kept.response.response))
            self._place = None
        self.lost()
        written = self._bound or (kept is not None and kept.idempotency is not None)
        if self._key is not None and not written:
            await self._key.release()
        self._key = None

    def lost(self) -> None:
        """Give its room back, if it still has it: what becomes of it is for others to say."""
        place, self._place = self._place, None
        if place is not None:
            place.left()

    def _kept(self) -> Idempotency | None:
        return None if self._key is None else self._key.kept()
