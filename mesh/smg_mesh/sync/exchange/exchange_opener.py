"""Exchange opener: the opening side of an exchange of pieces: compares,
and asks until nothing differs.

    listen to Holdings ──▶ compare ──▶ ask (one Request) ──▶ listen to Updates ──▶ reply (Updates) ──┐
                                        ▲                                                            │
                                        └─────── as long as a piece that differs is left ────────────┘ Done

Each step is a deed about one piece, and `proceed` does the next one.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from smg_mesh.sync.exchange.exchange_frames import (
    BATCH_BYTES_MAX,
    HOLDINGS_MAX,
    REQUEST_PIECES_MAX,
    Asked,
    Declined,
    Done,
    ExchangeError,
    Holdings,
    PieceFrame,
    Request,
    Update,
)
from smg_mesh.sync.exchange.piece_interface import (
    PIECE_DIGEST_BYTES,
    PIECES_MAX,
    REGISTERS,
    PieceState,
)
from smg_mesh.sync.exchange.piece_transfer import Carriage, check_name

AGAIN_MAX: Final = 2
"""A piece whose epoch moves while it is talked about is asked for again so often, then left as it is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A piece that differs, the later epoch of both sides, and what both hold of it."""

    name: str
    epoch: int
    size_bytes: int
    again: int = 0


class ExchangeOpener:
    """Opening side of one exchange of pieces."""

    def __init__(self, carriage: Carriage, *, full: bool) -> None:
        self._carriage: Final = carriage
        self._full: Final = full
        self._deeds: deque[Callable[[], tuple[PieceFrame, ...]]] = deque()
        self._theirs: list[PieceState] = []
        self._listed = False
        self._wanted: deque[Wanted] = deque()
        self._batch: list[tuple[Wanted, Asked]] = []
        self._batch_bytes = 0
        self._pending: deque[tuple[Wanted, Asked]] = deque()
        self._summary = b""
        self._owed: deque[tuple[Wanted, Asked]] = deque()
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
        """Take the answerer's next frame; ExchangeError."""
        match frame:
            case Holdings():
                self._take_holdings(frame)
            case Update():
                self._take_update(frame)
            case Declined():
                self._take_declined(frame)
            case Request() | Done():
                raise ExchangeError("order", "asked, where it is to answer")

    # ── What differs ─────────────────────────────────────────────────────────

    def _take_holdings(self, frame: Holdings) -> None:
        if self._listed:
            raise ExchangeError("order", "lists what it holds twice")
        count = len(frame.pieces)
        if count > HOLDINGS_MAX or len(self._theirs) + count > PIECES_MAX:
            raise ExchangeError("size", f"holds more than {PIECES_MAX} pieces")
        if count == 0 and not frame.last:
            raise ExchangeError("size", "a list of nothing that is not the last")
        for piece in frame.pieces:
            check_name(piece.name, piece.epoch)
            if len(piece.digest) != PIECE_DIGEST_BYTES or piece.size_bytes < 0:
                raise ExchangeError("wire", f"says no digest of {piece.name}")
            if self._theirs and self._theirs[-1].name >= piece.name:
                raise ExchangeError("order", "lists what it holds unsorted")
            self._theirs.append(piece)
        self._listed = frame.last
        if frame.last:
            self._deeds.append(self._compare)

    def _compare(self) -> tuple[PieceFrame, ...]:
        self._wanted.extend(_differing(self._carriage.holdings(), self._theirs))
        if self._full:
            # Last, so that they are fresh when they arrive.
            self._wanted.append(Wanted(REGISTERS, 0, 0))
        self._theirs.clear()
        self._deeds.append(self._ask)
        return ()

    # ── A batch ──────────────────────────────────────────────────────────────

    def _ask(self) -> tuple[PieceFrame, ...]:
        """Put one more piece into the batch; say the batch once it is full, or that all is done."""
        if self._room():
            wanted = self._wanted.popleft()
            epoch = max(wanted.epoch, self._carriage.epoch(wanted.name))
            summary = self._carriage.summary(wanted.name, epoch)
            if summary is not None:
                self._batch.append((wanted, Asked(wanted.name, epoch, summary)))
                self._batch_bytes += wanted.size_bytes + len(summary)
            self._deeds.append(self._ask)
            return ()
        if not self._batch:
            self.over = True
            self.whole = self._carriage.refused is None
            return (Done(refused=not self.whole),)
        self._pending.extend(self._batch)
        self._batch.clear()
        self._batch_bytes = 0
        return (Request(tuple(asked for _, asked in self._pending)),)

    def _room(self) -> bool:
        if not self._wanted or len(self._batch) >= REQUEST_PIECES_MAX:
            return False
        total = self._batch_bytes + self._wanted[0].size_bytes
        return not self._batch or total <= BATCH_BYTES_MAX

    # ── Its answers ──────────────────────────────────────────────────────────

    def _take_update(self, frame: Update) -> None:
        if not self._pending:
            raise ExchangeError("order", "sent what nobody asked for")
        wanted, asked = self._pending[0]
        if (frame.name, frame.epoch) != (asked.name, asked.epoch):
            raise ExchangeError("order", f"sent {frame.name[:64]!r} instead of {asked.name}")
        if self._carriage.empty:
            self._summary = frame.summary
        whole = self._carriage.take(frame)
        if whole is not None:
            self._pending.popleft()
            told = Asked(asked.name, asked.epoch, self._summary)
            self._deeds.append(partial(self._merge, wanted, told, whole))
            self._answered()

    def _take_declined(self, frame: Declined) -> None:
        check_name(frame.name, frame.epoch)
        if not self._pending or not self._carriage.empty:
            raise ExchangeError("order", "declined what nobody asked for")
        wanted, asked = self._pending.popleft()
        if frame.name != asked.name:
            raise ExchangeError("order", f"declined {frame.name} instead of {asked.name}")
        if frame.epoch > asked.epoch:
            self._want_again(wanted, frame.epoch)
        self._answered()

    def _answered(self) -> None:
        if not self._pending:
            self._deeds.append(self._reply)

    def _merge(self, wanted: Wanted, told: Asked, update: bytes) -> tuple[PieceFrame, ...]:
        epoch = self._carriage.epoch(told.name)
        if epoch > told.epoch:
            self._want_again(wanted, epoch)
        elif self._carriage.merge(told.name, told.epoch, update):
            self._owed.append((wanted, told))
        return ()

    def _reply(self) -> tuple[PieceFrame, ...]:
        """Send what the answerer lacks of one piece, then ask for the next batch."""
        if not self._owed:
            self._deeds.append(self._ask)
            return ()
        self._deeds.append(self._reply)
        wanted, told = self._owed.popleft()
        epoch = self._carriage.epoch(told.name)
        if epoch > told.epoch:
            self._want_again(wanted, epoch)
            return ()
        updates = self._carriage.updates(told.name, told.epoch, told.summary) or ()
        return updates if any(update.chunk for update in updates) else ()

    def _want_again(self, wanted: Wanted, epoch: int) -> None:
        if wanted.again < AGAIN_MAX:
            again = Wanted(wanted.name, epoch, wanted.size_bytes, wanted.again + 1)
            self._wanted.append(again)


def _differing(mine: Sequence[PieceState], theirs: Sequence[PieceState]) -> list[Wanted]:
    """Return the pieces that are not the same on both sides, sorted; the registers have no digest."""
    held = {piece.name: piece for piece in mine}
    listed = {piece.name: piece for piece in theirs}
    wanted = []
    for name in sorted({*held, *listed} - {REGISTERS}):
        both = [piece for piece in (held.get(name), listed.get(name)) if piece is not None]
        if len({(piece.epoch, piece.digest) for piece in both}) > 1 or len(both) == 1:
            epoch = max(piece.epoch for piece in both)
            size_bytes = sum(piece.size_bytes for piece in both)
            wanted.append(Wanted(name, epoch, size_bytes))
    return wanted
