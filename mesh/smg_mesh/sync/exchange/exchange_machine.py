"""Exchange machine: one exchange between two nodes, after which both know what either knew.

Digest first, contents only on a difference. Members come first:

    opener                              answerer
    Opening(name, boot, digest)   ──▶
                                  ◀──   Opening(name, boot, digest)      equal digests: the end
                                  ◀──   Rows(…)                          else: slices, in turn
    Rows(…, last)                 ──▶
                                  ◀──   Rows(…, last)

then pieces of replicated state, if both sides have any and theirs differ, too (`exchange_opener`,
`exchange_answerer`):

                                  ◀──   Holdings(…, last)                name, epoch, digest of each
    Request(some that differ)     ──▶
                                  ◀──   Update(…) each, whole after its last chunk
    Update(…) each, Request(…)    ──▶                                    … until none differs
    Done                          ──▶

The sides take turns, and the side that has heard the other's last slice of rows sends all it still
has. So at no time do both wait to be read, whatever the buffers between them. Rows and pieces
merge, each in one go and in any order: what arrived before a cut is true and stays, what did not
comes with a later exchange, whose digests tell what is left, and there is nothing to undo. An older
node, which says nothing of pieces, is told nothing of them. A `Novel` frame is one that a newer
version sent: skipped if it says that it may be.

The machine knows no transport. Frames come from strangers: whatever they are and in whatever order, the
machine moves on or raises `ExchangeError`, and it never holds more than `ROWS_MAX` rows of its own and one
batch of pieces. What takes time is done piece by piece: after a `Step` that says `more`, `proceed` does
the next one, and nothing is received before there is no more.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from smg_mesh.config import NAME_PATTERN
from smg_mesh.swim.messages import DIGEST_BYTES, Claim
from smg_mesh.sync.exchange.exchange_answerer import ExchangeAnswerer
from smg_mesh.sync.exchange.exchange_frames import (
    HISTORY_BYTES_MAX,
    SLICE_ROWS_MAX,
    WIRE_VERSION,
    ExchangeError,
    Frame,
    Novel,
    Opening,
    PieceFrame,
    Rows,
)
from smg_mesh.sync.exchange.exchange_opener import ExchangeOpener
from smg_mesh.sync.exchange.piece_interface import Pieces
from smg_mesh.sync.exchange.piece_transfer import Carriage

__all__ = [
    "NOVEL_MAX",
    "ROWS_MAX",
    "SLICE_ROWS_MAX",
    "WIRE_VERSION",
    "Exchange",
    "ExchangeError",
    "Frame",
    "Novel",
    "Opening",
    "Rows",
    "Step",
]

ROWS_MAX: Final = 20_000
"""Rows taken from one peer, and sent to one: twice the largest cluster thought of."""
NOVEL_MAX: Final = 64
"""Frames of a newer version that are skipped in one conversation."""
_MEMBERS: Final = slice(0, 8)  # the part of the digest that is about members
_PIECES: Final = slice(8, 16)


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one frame: frames to send in this order, rows to merge now."""

    send: tuple[Frame, ...] = ()
    learned: tuple[Claim, ...] = ()
    peer: Opening | None = None
    """Who is at the other end, once it has said so."""
    done: bool = False
    """Nothing is owed by either side when `send` has been sent."""
    more: bool = False
    """There is work to do, a piece at a time: call `proceed` when `send` has been sent."""


class Exchange:
    """One side of one conversation.

    `mine` is what this side says of itself, `rows` what it knows when it is asked to send it, `pieces` its
    replicated state; without them the conversation is about members only.
    """

    def __init__(
        self,
        mine: Opening,
        rows: Callable[[], Sequence[Claim]],
        *,
        opener: bool,
        pieces: Pieces | None = None,
    ) -> None:
        assert len(mine.digest) == DIGEST_BYTES
        if pieces is not None:
            mine = replace(mine, pieces=True, stale=pieces.stale, history=pieces.history)
        self._mine: Final = mine
        self._rows: Final = rows
        self._pieces: Final = pieces
        self._opener: Final = opener
        self._peer: Opening | None = None
        self._waiting: list[Rows] | None = None
        self._heard_rows = 0
        self._heard_last = False
        self._carriage: Carriage | None = None
        self._second: ExchangeOpener | ExchangeAnswerer | None = None
        self._novel = 0
        self._over = False
        self._failed = False

    @property
    def peer(self) -> Opening | None:
        """Who is at the other end, once it has said so."""
        return self._peer

    @property
    def done(self) -> bool:
        """Whether the conversation came to its end, and not to an error; see `refused`."""
        return self._over and not self._failed

    @property
    def full(self) -> bool:
        """Whether the sides are done, and have the same state in everything: one of them wanted that."""
        return self.done and self._wants_all and self._second is not None and self._second.whole

    @property
    def refused(self) -> ExchangeError | None:
        """Which piece could not be taken or sent, while all else was: what the end is, if not good."""
        return None if self._carriage is None else self._carriage.refused

    def begin(self) -> list[Frame]:
        """Return what to send before anything was received."""
        return [self._mine] if self._opener else []

    def receive(self, frame: Frame) -> Step:
        """Take the peer's next frame; return what follows. `ExchangeError` ends the conversation."""
        if self._over:
            self._fail("order", "a frame after the end")
        assert not self._more, "what there is to do is done before the next frame is taken"
        match frame:
            case Opening():
                return self._opened(frame)
            case Rows():
                return self._told(frame)
            case Novel():
                return self._skipped(frame)
            case _:
                return self._carried(frame)

    def proceed(self) -> Step:
        """Do the next piece of work; return what follows."""
        assert self._second is not None
        send = self._second.proceed()
        self._over = self._second.over
        return self._step(send)

    def _opened(self, frame: Opening) -> Step:
        if self._peer is not None:
            self._fail("order", "opened twice")
        self._check(frame)
        self._peer = frame
        greeting: tuple[Frame, ...] = () if self._opener else (self._mine,)
        if not self._worth(frame):
            self._end_rows(frame)
            return self._step(greeting)
        # The answerer's turn is first: it knows by now that rows are wanted.
        turn = () if self._opener else self._turn()
        return self._step((*greeting, *turn))

    def _check(self, frame: Opening) -> None:
        if frame.wire_version != self._mine.wire_version:
            versions = f"{frame.wire_version}, we {self._mine.wire_version}"
            self._fail("version", f"speaks wire version {versions}")
        if frame.label != self._mine.label:
            self._fail("label", f"is of the mesh {frame.label!r:.80}, we of {self._mine.label!r}")
        if not re.fullmatch(NAME_PATTERN, frame.name) or not 0 <= frame.boot < 1 << 64:
            self._fail("wire", "says no name and boot")
        if len(frame.digest) != DIGEST_BYTES or len(frame.history) > HISTORY_BYTES_MAX:
            self._fail("wire", "says no digest, or no history")

    @property
    def _wants_all(self) -> bool:
        return self._mine.full or (self._peer is not None and self._peer.full)

    def _worth(self, peer: Opening) -> bool:
        """Whether rows are sent: not to ourselves, and not where both hold the same."""
        if self._is_me(peer):
            return False
        return self._wants_all or peer.digest[_MEMBERS] != self._mine.digest[_MEMBERS]

    def _worth_pieces(self, peer: Opening) -> bool:
        """Whether pieces are compared. Both sides come to the same answer."""
        mine = self._mine
        if self._is_me(peer) or not (mine.pieces and peer.pieces):
            return False
        differ = peer.digest[_PIECES] != mine.digest[_PIECES]
        return self._wants_all or differ or _yields(mine, peer) or _yields(peer, mine)

    def _is_me(self, peer: Opening) -> bool:
        return (peer.name, peer.boot) == (self._mine.name, self._mine.boot)

    def _told(self, frame: Rows) -> Step:
        peer = self._peer
        if peer is None or self._heard_last or self._second is not None:
            self._fail("order", "rows out of turn")
        count = len(frame.claims)
        self._heard_rows += count
        if count > SLICE_ROWS_MAX or self._heard_rows > ROWS_MAX:
            self._fail("size", f"more than {ROWS_MAX} rows, or {SLICE_ROWS_MAX} at once")
        if count == 0 and not frame.last:
            self._fail("size", "a slice of nothing that is not the last")
        self._heard_last = frame.last
        send = self._turn()
        if self._heard_last and not self._waiting:
            self._end_rows(peer)
        return self._step(send, frame.claims)

    def _end_rows(self, peer: Opening) -> None:
        """Go on with pieces, or end."""
        if self._pieces is None or not self._worth_pieces(peer):
            self._over = True
            return
        full = self._wants_all
        forget = _yields(self._mine, peer)
        carriage = self._carriage = Carriage(self._pieces, peer.name, forget=forget, full=full)
        self._second = (
            ExchangeOpener(carriage, full=full) if self._opener else ExchangeAnswerer(carriage)
        )

    def _carried(self, frame: PieceFrame) -> Step:
        if self._second is None:
            self._fail("order", "speaks of pieces out of turn")
        try:
            self._second.receive(frame)
        except ExchangeError:
            self._over = self._failed = True
            raise
        self._over = self._second.over
        return self._step(())

    @property
    def _more(self) -> bool:
        return self._second is not None and self._second.more

    def _skipped(self, frame: Novel) -> Step:
        self._novel += 1
        if not frame.ignorable:
            self._fail("version", "sent a frame that only a newer version knows")
        if self._novel > NOVEL_MAX:
            self._fail("size", f"more than {NOVEL_MAX} frames of a newer version")
        return self._step(())

    def _turn(self) -> tuple[Frame, ...]:
        """Take out of the waiting slices what to send now."""
        if self._waiting is None:
            self._waiting = _slices(self._rows())
        count = len(self._waiting) if self._heard_last else 1
        turn, self._waiting = self._waiting[:count], self._waiting[count:]
        return tuple(turn)

    def _step(self, send: tuple[Frame, ...], learned: tuple[Claim, ...] = ()) -> Step:
        return Step(send, learned, self._peer, self._over, self._more)

    def _fail(self, reason: str, message: str) -> NoReturn:
        self._over = self._failed = True
        raise ExchangeError(reason, message)


def _yields(one: Opening, other: Opening) -> bool:
    """Whether one side drops what it holds before the other: it slept through the other's removals."""
    return one.stale and not other.stale and one.history == other.history != b""


def _slices(rows: Sequence[Claim]) -> list[Rows]:
    """Return all rows in slices, of which exactly the last one says so.

    Above `ROWS_MAX` the gone are left out first: the living will be missed sooner.
    """
    if len(rows) > ROWS_MAX:
        rows = sorted(rows, key=lambda claim: claim.rank.gone)[:ROWS_MAX]
    starts = range(0, max(len(rows), 1), SLICE_ROWS_MAX)
    return [
        Rows(tuple(rows[start : start + SLICE_ROWS_MAX]), last=start == starts[-1])
        for start in starts
    ]
