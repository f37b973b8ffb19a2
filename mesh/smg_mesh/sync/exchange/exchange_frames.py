"""Exchange frames: what the two sides of an exchange may say, one frame
at a time, and how much of it.

`Opening` and `Rows` are about members; `Holdings`, `Request`, `Update`, `Declined` and `Done` about pieces of
replicated state. A `Novel` frame is one that a newer version sent: skipped if it says that it may be.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from smg_mesh.swim.messages import Claim
from smg_mesh.swim.wire import CLAIMS_MAX
from smg_mesh.sync.exchange.piece_interface import PieceState

WIRE_VERSION: Final = 1
"""Raised only when older nodes could not follow at all; all else is a new field or a `Novel` frame."""
SLICE_ROWS_MAX: Final = CLAIMS_MAX
"""At most 0.7 MB with the largest meta: one message."""
HOLDINGS_MAX: Final = 1_000
"""Pieces in one frame: a tenth of a megabyte."""
REQUEST_PIECES_MAX: Final = 16
"""Asked for in one breath: so much is sent again at most after a cut."""
BATCH_BYTES_MAX: Final = 131_072
"""Of what both sides said they hold of the pieces of one request; a single larger piece goes alone."""
CHUNK_BYTES_MAX: Final = 65_536
"""Of one update in one frame, unpacked; every chunk but the last has exactly that."""
SUMMARY_BYTES_MAX: Final = 131_072
"""What a side says it holds of one piece: a shard of 4,000 rows, a document of 10,000 writers."""
HISTORY_BYTES_MAX: Final = 64
EPOCH_MAX: Final = (1 << 32) - 1


class ExchangeError(Exception):
    """A peer said what it may not say; the exchange is over. `reason` is a word for a counter."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason


@dataclass(frozen=True, slots=True)
class Opening:
    """First frame: the sender, and 8 bytes of digest over its members and 8 over its pieces."""

    name: str
    boot: int
    label: str
    digest: bytes
    full: bool
    """Wants rows and pieces to be sent although the digests may be equal."""
    wire_version: int = WIRE_VERSION
    ring_version: int = 0
    """How often its keyring was changed by command; nothing to the exchange, told for those who run it."""
    pieces: bool = False
    """It converses about pieces; older nodes only about rows."""
    stale: bool = False
    """It was away for longer than removals are kept."""
    history: bytes = b""
    """What all nodes of one cluster come to share, nothing before it ever met another."""
    held: bool = True
    """It holds the cluster's state; not so while it is joining. Nothing to the exchange either."""


@dataclass(frozen=True, slots=True)
class Rows:
    """At most `SLICE_ROWS_MAX` rows of the sender's member table; `last`: that was all."""

    claims: tuple[Claim, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Holdings:
    """At most `HOLDINGS_MAX` pieces that the answerer holds, sorted by name; `last`: that was all."""

    pieces: tuple[PieceState, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A piece, the epoch at which it is to be talked about, and what the opener holds of it then."""

    name: str
    epoch: int
    summary: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """The opener wants what it lacks of these, in this order, and hears what the answerer holds."""

    pieces: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A chunk of what the other side lacks of a piece; `last`: the piece is whole and may be merged.

    `summary` is what the answerer holds of it, in the first chunk; the opener says none.
    """

    name: str
    epoch: int
    summary: bytes
    chunk: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Declined:
    """Instead of an update: the answerer holds it at that later epoch, or has no such piece (not later)."""

    name: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Done:
    """The opener has nothing more to ask or to send; `refused`: it could not take some piece."""

    refused: bool = False


@dataclass(frozen=True, slots=True)
class Novel:
    """A frame of a kind that this version does not know."""

    ignorable: bool


PieceFrame: TypeAlias = Holdings | Request | Update | Declined | Done
Frame: TypeAlias = Opening | Rows | PieceFrame | Novel
