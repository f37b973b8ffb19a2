"""Exchange answerer: the answering side of an exchange of pieces: lists what
it holds, does as it is asked.

Its turn is first (`Holdings`), then after each `Request`; between them it only listens. Each turn is a row
of deeds, one piece each: `proceed` does the next.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from smg_mesh.sync.exchange.exchange_frames import (
    HOLDINGS_MAX,
    REQUEST_PIECES_MAX,
    SUMMARY_BYTES_MAX,
    Asked,
    Declined,
    Done,
    ExchangeError,
    Holdings,
    PieceFrame,
    Request,
    Update,
)
from smg_mesh.sync.exchange.piece_interface import PIECES_MAX
from smg_mesh.sync.exchange.piece_transfer import Carriage, check_name

_ASKED_MAX: Final = 3 * PIECES_MAX
"""In one conversation: a piece whose epoch moved is asked for again, at most twice."""


class ExchangeAnswerer:
    """Answering side of one exchange of pieces."""

    def __init__(self, carriage: Carriage) -> None:
        self._carriage: Final = carriage
        self._deeds: deque[Callable[[], tuple[PieceFrame, ...]]] = deque([self._list])
        self._answered: deque[tuple[str, int]] = deque()
        self._asked = 0
        self.over = False
        self.whole = False

    @property
    def more(self) -> bool:
        """Whether there is something to do."""
        return bool(self._deeds)

    def proceed(self) -> tuple[PieceFrame, ...]:
        """Do the next deed; return what to send."""
        return self._deeds.popleft()()

    def receive(self, frame: PieceFrame) -> None:
        """Take the opener's next frame; ExchangeError."""
        match frame:
            case Request():
                self._take_request(frame)
            case Update():
                self._take_update(frame)
            case Done():
                self._nothing_half()
                self.over = True
                self.whole = not frame.refused and self._carriage.refused is None
            case Holdings() | Declined():
                raise ExchangeError("order", "answered what it was not asked")

    def _list(self) -> tuple[PieceFrame, ...]:
        pieces = tuple(self._carriage.holdings())
        assert len(pieces) <= PIECES_MAX
        starts = range(0, max(len(pieces), 1), HOLDINGS_MAX)
        return tuple(
            Holdings(pieces[start : start + HOLDINGS_MAX], last=start == starts[-1])
            for start in starts
        )

    def _take_request(self, frame: Request) -> None:
        self._nothing_half()
        count = len(frame.pieces)
        self._asked += count
        if not 1 <= count <= REQUEST_PIECES_MAX or self._asked > _ASKED_MAX:
            raise ExchangeError("size", f"asked for {count} pieces, {self._asked} in all")
        for asked in frame.pieces:
            check_name(asked.name, asked.epoch)
            if len(asked.summary) > SUMMARY_BYTES_MAX:
                raise ExchangeError("size", f"sent a summary of {asked.name} too large")
        if len({asked.name for asked in frame.pieces}) < count:
            raise ExchangeError("order", "asked for one piece twice at once")
        self._answered.clear()
        self._deeds.extend(partial(self._answer, asked) for asked in frame.pieces)

    def _answer(self, asked: Asked) -> tuple[PieceFrame, ...]:
        epoch = self._carriage.epoch(asked.name)
        if epoch > asked.epoch:
            return (Declined(asked.name, epoch),)
        summary = self._carriage.summary(asked.name, asked.epoch)
        if summary is None:
            return (Declined(asked.name, 0),)
        updates = self._carriage.updates(asked.name, asked.epoch, asked.summary, summary=summary)
        if updates is None:
            return (Declined(asked.name, 0),)
        self._answered.append((asked.name, asked.epoch))
        return updates

    def _take_update(self, frame: Update) -> None:
        """Take what this side lacks of a piece that was asked for last; some may be left out."""
        if frame.summary:
            raise ExchangeError("order", "summed up what nobody asked for")
        said = (frame.name, frame.epoch)
        while self._carriage.empty and self._answered and self._answered[0] != said:
            self._answered.popleft()
        if not self._answered or self._answered[0] != said:
            raise ExchangeError("order", f"sent {frame.name[:64]!r} out of turn")
        whole = self._carriage.take(frame)
        if whole is not None:
            self._answered.popleft()
            self._deeds.append(partial(self._merge, *said, whole))

    def _merge(self, name: str, epoch: int, update: bytes) -> tuple[PieceFrame, ...]:
        # What meanwhile moved to a later epoch differs, and comes with the next exchange.
        if self._carriage.epoch(name) <= epoch:
            self._carriage.merge(name, epoch, update)
        return ()

    def _nothing_half(self) -> None:
        if not self._carriage.empty:
            raise ExchangeError("order", "left a piece half sent")
