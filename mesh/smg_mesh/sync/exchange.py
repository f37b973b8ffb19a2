"""One conversation between two nodes, after which both know what either knew about members.

Digest first, contents only on a difference:

    opener                              answerer
    Opening(name, boot, digest)   ──▶
                                  ◀──   Opening(name, boot, digest)      equal digests: the end
                                  ◀──   Rows(…)                          else: slices, in turn
    Rows(…, last)                 ──▶
                                  ◀──   Rows(…, last)

The sides take turns, one slice each; who has heard the other's last slice sends all it still has. So at
no time do both wait to be read, whatever the buffers between them. Every row is a claim and merging is a
join: what arrived before a cut is true and stays, what did not comes with a later exchange, and there is
nothing to undo. A `Novel` frame is one that a newer version sent: skipped if it says that it may be.

The machine knows no transport. Frames come from strangers: whatever they are and in whatever order, the
machine moves on or raises `ExchangeError`, and it never holds more than `ROWS_MAX` rows of its own.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from smg_mesh.config import NAME_PATTERN
from smg_mesh.swim.messages import DIGEST_BYTES, Claim
from smg_mesh.swim.wire import CLAIMS_MAX

WIRE_VERSION: Final = 1
"""Raised only when older nodes could not follow at all; all else is a new field or a `Novel` frame."""
SLICE_ROWS_MAX: Final = CLAIMS_MAX
"""At most 0.7 MB with the largest meta: one message."""
ROWS_MAX: Final = 20_000
"""Rows taken from one peer, and sent to one: twice the largest cluster thought of."""
NOVEL_MAX: Final = 64
"""Frames of a newer version that are skipped in one conversation."""
_MEMBERS: Final = slice(0, 8)  # the part of the digest that is about members


class ExchangeError(Exception):
    """The peer said what it may not say; the conversation is over. `reason` is a word for a counter."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason


@dataclass(frozen=True, slots=True)
class Opening:
    """Who speaks, and what it holds: 8 bytes of digest over its members and 8 over its documents."""

    name: str
    boot: int
    label: str
    digest: bytes
    full: bool
    """Wants rows to be sent although the digests may be equal."""
    wire_version: int = WIRE_VERSION
    ring_version: int = 0
    """How often its keyring was changed by command; nothing to the exchange, told for those who run it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """At most `SLICE_ROWS_MAX` rows of the sender's member table; `last`: that was all."""

    claims: tuple[Claim, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Novel:
    """A frame of a kind that this version does not know."""

    ignorable: bool


Frame: TypeAlias = Opening | Rows | Novel


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from one frame: frames to send in this order, rows to merge now."""

    send: tuple[Frame, ...] = ()
    learned: tuple[Claim, ...] = ()
    peer: Opening | None = None
    """Who is at the other end, once it has said so."""
    done: bool = False
    """Nothing is owed by either side when `send` has been sent."""


class Exchange:
    """One side of one conversation.

    `mine` is what this side says of itself, `rows` what it knows when it is asked to send it.
    """

    def __init__(self, mine: Opening, rows: Callable[[], Sequence[Claim]], *, opener: bool) -> None:
        assert len(mine.digest) == DIGEST_BYTES
        self._mine: Final = mine
        self._rows: Final = rows
        self._opener: Final = opener
        self._peer: Opening | None = None
        self._waiting: list[Rows] | None = None
        self._heard_rows = 0
        self._heard_last = False
        self._novel = 0
        self._over = False
        self._failed = False

    @property
    def peer(self) -> Opening | None:
        """Who is at the other end, once it has said so."""
        return self._peer

    @property
    def done(self) -> bool:
        """Whether the conversation came to its end, and not to an error."""
        return self._over and not self._failed

    def begin(self) -> list[Frame]:
        """Return what to send before anything was received."""
        return [self._mine] if self._opener else []

    def receive(self, frame: Frame) -> Step:
        """Take the peer's next frame; return what follows. `ExchangeError` ends the conversation."""
        if self._over:
            self._fail("order", "a frame after the end")
        match frame:
            case Opening():
                return self._opened(frame)
            case Rows():
                return self._told(frame)
            case Novel():
                return self._skipped(frame)

    def _opened(self, frame: Opening) -> Step:
        if self._peer is not None:
            self._fail("order", "opened twice")
        self._check(frame)
        self._peer = frame
        greeting: tuple[Frame, ...] = () if self._opener else (self._mine,)
        if not self._worth(frame):
            self._over = True
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
        if len(frame.digest) != DIGEST_BYTES:
            self._fail("wire", "says no digest")

    def _worth(self, peer: Opening) -> bool:
        """Whether rows are sent: not to ourselves, and not where both hold the same."""
        mine = self._mine
        if (peer.name, peer.boot) == (mine.name, mine.boot):
            return False
        return mine.full or peer.full or peer.digest[_MEMBERS] != mine.digest[_MEMBERS]

    def _told(self, frame: Rows) -> Step:
        if self._peer is None or self._heard_last:
            self._fail("order", "rows out of turn")
        count = len(frame.claims)
        self._heard_rows += count
        if count > SLICE_ROWS_MAX or self._heard_rows > ROWS_MAX:
            self._fail("size", f"more than {ROWS_MAX} rows, or {SLICE_ROWS_MAX} at once")
        if count == 0 and not frame.last:
            self._fail("size", "a slice of nothing that is not the last")
        self._heard_last = frame.last
        send = self._turn()
        self._over = self._heard_last and not self._waiting
        return self._step(send, frame.claims)

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
        return Step(send, learned, self._peer, self._over)

    def _fail(self, reason: str, message: str) -> NoReturn:
        self._over = self._failed = True
        raise ExchangeError(reason, message)


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
