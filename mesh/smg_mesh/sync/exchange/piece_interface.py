"""Piece interface: what an exchange needs of replicated state: pieces
that say what they hold and lack.

A *piece* is one replicated thing with a name and a digest of its own: a document (`settings/17`), a shard of
a table (`sticky/3`), the registers. What a piece says it holds (`summary`) and what it sends (`missing`)
are its own words: an exchange carries bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

REGISTERS: Final = "registers"
"""The piece of all ephemeral registers: no part of any digest, told to who wants everything."""
PIECE_NAME_CHARS_MAX: Final = 64
PIECES_MAX: Final = 4096
PIECE_DIGEST_BYTES: Final = 16
UPDATE_BYTES_MAX: Final = 1_048_576
"""Of one piece; a document is refused new keys far below that."""


class PieceError(Exception):
    """A peer's update cannot be taken. `reason` is a word for a counter; nothing was changed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason


@dataclass(frozen=True, slots=True)
class PieceState:
    """State of a piece on one side. Of two epochs the larger one counts; `size_bytes` is a hint."""

    name: str
    epoch: int
    digest: bytes
    size_bytes: int


class Pieces(Protocol):
    """All replicated state of one node; `replica.Replica` fits."""

    def digest(self) -> bytes:
        """Return 8 bytes over all pieces but the registers: equal where the same is held."""
        ...

    @property
    def stale(self) -> bool:
        """This node was away for longer than removals are kept: what it holds may be long removed."""
        ...

    @property
    def history(self) -> bytes:
        """A number that all nodes of one cluster come to share, b"" before this node ever met another.

        Only between nodes of one history is absence a reason to forget: a cluster that slept for weeks
        must not forget itself because a new node was started first.
        """
        ...

    def forget_stale(self) -> None:
        """Drop what is stale; called before anything is listed, when the peer is not stale itself.

        And only if both say the same `history`, and say one.
        """
        ...

    def holdings(self, *, full: bool) -> Sequence[PieceState]:
        """Return every piece that is not empty, sorted by name. Registers are not listed: `full` asks for them."""
        ...

    def summary(self, name: str, epoch: int) -> bytes:
        """Return what this side holds of a piece at that epoch, moving up to the epoch if it is later.

        PieceError for a name that cannot be.
        """
        ...

    def missing(self, name: str, epoch: int, summary: bytes) -> bytes:
        """Return what a side that said `summary` lacks, b"" if nothing; PieceError if it makes no sense."""
        ...

    def merge(self, name: str, epoch: int, update: bytes, *, peer: str) -> None:
        """Take in what a peer sent; PieceError if it is none, and then nothing has changed."""
        ...

    def epoch(self, name: str) -> int:
        """Return the epoch at which this side holds a piece; 0 if it does not."""
        ...
