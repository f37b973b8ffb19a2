"""Piece transfer: asks for pieces, sends them in chunks, and merges each when it is whole.

One `Carriage` serves one side of one conversation. A piece that cannot be taken is passed over: the
others still go through, so that one damaged document holds up no other, and the first is named in
the end (`refused`).
"""

import re
from collections.abc import Sequence
from typing import Final

from smg_mesh.sync.exchange.exchange_frames import (
    CHUNK_BYTES_MAX,
    EPOCH_MAX,
    SUMMARY_BYTES_MAX,
    ExchangeError,
    Update,
)
from smg_mesh.sync.exchange.piece_interface import (
    PIECE_NAME_CHARS_MAX,
    UPDATE_BYTES_MAX,
    PieceError,
    Pieces,
    PieceState,
)

_NAME: Final = rf"[!-~]{{1,{PIECE_NAME_CHARS_MAX}}}"


class Carriage:
    """One side's pieces, as the conversation with `peer` uses them."""

    def __init__(self, pieces: Pieces, peer: str, *, forget: bool, full: bool) -> None:
        self._pieces: Final = pieces
        self._peer: Final = peer
        self._forget: Final = forget
        self._full: Final = full
        self.refused: ExchangeError | None = None
        """The first thing that was wrong with a piece: reason "state"."""
        self._chunks: list[bytes] = []

    @property
    def empty(self) -> bool:
        """Whether no piece is half here."""
        return not self._chunks

    def holdings(self) -> Sequence[PieceState]:
        """Return what this side holds, after it has dropped what is stale beside the peer's."""
        if self._forget and self._pieces.stale:
            self._pieces.forget_stale()
        return self._pieces.holdings(full=self._full)

    def epoch(self, name: str) -> int:
        """Return the epoch at which this side holds a piece."""
        return self._pieces.epoch(name)

    def summary(self, name: str, epoch: int) -> bytes | None:
        """Return what this side holds of a piece; None if it has no such piece: a newer version may."""
        try:
            summary = self._pieces.summary(name, epoch)
        except PieceError:
            return None
        if len(summary) > SUMMARY_BYTES_MAX:
            self._refuse(f"asks about {name}, whose summary has {len(summary)} bytes", None)
            return None
        return summary

    def updates(
        self, name: str, epoch: int, said: bytes, *, summary: bytes = b""
    ) -> tuple[Update, ...] | None:
        """Return what a side that `said` what it holds lacks, in chunks; None if it cannot be sent."""
        try:
            content = self._pieces.missing(name, epoch, said)
        except PieceError as error:
            self._refuse(f"says it holds of {name} what cannot be", error)
            return None
        if len(content) > UPDATE_BYTES_MAX:
            self._refuse(f"lacks {len(content)} bytes of {name}, too many to be sent", None)
            return None
        starts = range(0, max(len(content), 1), CHUNK_BYTES_MAX)
        return tuple(
            Update(
                name,
                epoch,
                b"" if start else summary,
                content[start : start + CHUNK_BYTES_MAX],
                last=start == starts[-1],
            )
            for start in starts
        )

    def take(self, frame: Update) -> bytes | None:
        """Return the whole update with its last chunk, None before; ExchangeError."""
        if self._chunks and frame.summary:
            raise ExchangeError("order", f"summed {frame.name} up in the middle of it")
        if not frame.last and len(frame.chunk) != CHUNK_BYTES_MAX:
            raise ExchangeError("size", f"sent a chunk of {len(frame.chunk)} bytes")
        if max(len(frame.chunk) - CHUNK_BYTES_MAX, len(frame.summary) - SUMMARY_BYTES_MAX) > 0:
            raise ExchangeError("size", f"sent a chunk or a summary of {frame.name} too large")
        if (len(self._chunks)) * CHUNK_BYTES_MAX + len(frame.chunk) > UPDATE_BYTES_MAX:
            raise ExchangeError("size", f"sent more than {UPDATE_BYTES_MAX} bytes of {frame.name}")
        self._chunks.append(frame.chunk)
        if not frame.last:
            return None
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)

    def merge(self, name: str, epoch: int, update: bytes) -> bool:
        """Take a whole update in; return whether it made sense."""
        try:
            if update:
                self._pieces.merge(name, epoch, update, peer=self._peer)
        except PieceError as error:
            self._refuse(f"sent {name}, which cannot be taken", error)
            return False
        return True

    def _refuse(self, message: str, error: PieceError | None) -> None:
        if self.refused is None:
            why = "" if error is None else f" ({error.reason}: {error})"
            self.refused = ExchangeError("state", message + why)
            self.refused.__cause__ = error


def check_name(name: str, epoch: int) -> None:
    """Check that a piece can be called that and have that epoch; ExchangeError."""
    if not re.fullmatch(_NAME, name) or not 0 <= epoch <= EPOCH_MAX:
        raise ExchangeError("wire", f"speaks of a piece {name[:PIECE_NAME_CHARS_MAX]!r}@{epoch}")
