"""Frames of an exchange as protobuf messages and back: any bytes give
a frame or an `ExchangeError`.
"""

from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from smg_mesh.io.streams.compression import pack, unpack
from smg_mesh.swim.messages import Claim
from smg_mesh.swim.wire import WireError, decode_claims, encode_claims
from smg_mesh.sync.exchange.exchange_frames import (
    CHUNK_BYTES_MAX,
    REQUEST_PIECES_MAX,
    SUMMARY_BYTES_MAX,
    Asked,
    Declined,
    Done,
    ExchangeError,
    Frame,
    Holdings,
    Novel,
    Opening,
    Request,
    Rows,
    Update,
)
from smg_mesh.sync.exchange.piece_interface import PieceState
from smg_proto import mesh_pb2

MESSAGE_BYTES_MAX: Final = 1_048_576
"""One slice of rows has at most 0.7 MB, with the largest name, address and meta in every row."""
HOLDINGS_BYTES_MAX: Final = 131_072
"""A list of 1,000 pieces with the longest names has 105 KB."""


class _Piece(msgspec.Struct, frozen=True, array_like=True):
    """A `PieceState` on the wire; a newer version may say more of it."""

    name: str
    epoch: int
    digest: bytes
    size_bytes: int


_pieces_encoder: Final = msgspec.msgpack.Encoder()
_pieces_decoder: Final = msgspec.msgpack.Decoder(list[_Piece])


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame of ours."""
    written = _message(frame).SerializeToString()
    assert len(written) <= MESSAGE_BYTES_MAX
    return written


def decode_frame(data: bytes) -> Frame:
    """Return the frame; ExchangeError if these bytes are none."""
    try:
        message = mesh_pb2.ExchangeFrame.FromString(data)
    except DecodeError as error:
        raise ExchangeError("wire", "sent what is no frame") from error
    match message.WhichOneof("kind"):
        case "opening":
            return _read_opening(message.opening)
        case "rows":
            return Rows(_claims(message.rows.claims), message.rows.last)
        case "holdings":
            return Holdings(_pieces(message.holdings.pieces), message.holdings.last)
        case "request":
            return _read_request(message.request)
        case "update":
            return _read_update(message.update)
        case "declined":
            return Declined(message.declined.name, message.declined.epoch)
        case "done":
            return Done(message.done.refused)
        case _:
            return Novel(message.ignorable)


def _message(frame: Frame) -> mesh_pb2.ExchangeFrame:
    match frame:
        case Opening():
            return mesh_pb2.ExchangeFrame(opening=_opening(frame))
        case Rows():
            rows = mesh_pb2.Rows(claims=encode_claims(frame.claims), last=frame.last)
            return mesh_pb2.ExchangeFrame(rows=rows)
        case Holdings():
            return mesh_pb2.ExchangeFrame(holdings=_holdings(frame))
        case Request():
            asked = mesh_pb2.Request(pieces=[_asked(piece) for piece in frame.pieces])
            return mesh_pb2.ExchangeFrame(request=asked)
        case Update():
            return mesh_pb2.ExchangeFrame(update=_update(frame))
        case Declined():
            declined = mesh_pb2.Declined(name=frame.name, epoch=frame.epoch)
            return mesh_pb2.ExchangeFrame(declined=declined)
        case Done():
            return mesh_pb2.ExchangeFrame(done=mesh_pb2.Done(refused=frame.refused))
        case Novel():
            return mesh_pb2.ExchangeFrame(ignorable=frame.ignorable)


# ── Members ──────────────────────────────────────────────────────────────────


def _opening(opening: Opening) -> mesh_pb2.Opening:
    return mesh_pb2.Opening(
        name=opening.name,
        boot=opening.boot,
        label=opening.label,
        digest=opening.digest,
        full=opening.full,
        wire_version=opening.wire_version,
        ring_version=opening.ring_version,
        pieces=opening.pieces,
        stale=opening.stale,
        history=opening.history,
        joining=not opening.held,
    )


def _read_opening(message: mesh_pb2.Opening) -> Opening:
    return Opening(
        name=message.name,
        boot=message.boot,
        label=message.label,
        digest=message.digest,
        full=message.full,
        wire_version=message.wire_version,
        ring_version=message.ring_version,
        pieces=message.pieces,
        stale=message.stale,
        history=message.history,
        held=not message.joining,
    )


def _claims(data: bytes) -> tuple[Claim, ...]:
    try:
        return tuple(decode_claims(data))
    except WireError as error:
        raise ExchangeError("wire", f"sent rows that are none: {error}") from error


# ── Pieces ───────────────────────────────────────────────────────────────────


def _holdings(frame: Holdings) -> mesh_pb2.Holdings:
    listed = [(one.name, one.epoch, one.digest, one.size_bytes) for one in frame.pieces]
    return mesh_pb2.Holdings(pieces=_pieces_encoder.encode(listed), last=frame.last)


def _pieces(data: bytes) -> tuple[PieceState, ...]:
    if len(data) > HOLDINGS_BYTES_MAX:
        raise ExchangeError("size", f"sent a list of pieces of {len(data)} bytes")
    try:
        listed = _pieces_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ExchangeError("wire", f"sent a list of pieces that is none: {error}") from error
    return tuple(PieceState(one.name, one.epoch, one.digest, one.size_bytes) for one in listed)


def _asked(piece: Asked) -> mesh_pb2.Asked:
    return mesh_pb2.Asked(name=piece.name, epoch=piece.epoch, summary=pack(piece.summary))


def _read_request(message: mesh_pb2.Request) -> Request:
    if len(message.pieces) > REQUEST_PIECES_MAX:
        raise ExchangeError("size", f"asked for {len(message.pieces)} pieces at once")
    return Request(
        tuple(
            Asked(one.name, one.epoch, unpack(one.summary, bytes_max=SUMMARY_BYTES_MAX))
            for one in message.pieces
        )
    )


def _update(frame: Update) -> mesh_pb2.Update:
    return mesh_pb2.Update(
        name=frame.name,
        epoch=frame.epoch,
        summary=pack(frame.summary),
        chunk=pack(frame.chunk),
        last=frame.last,
    )


def _read_update(message: mesh_pb2.Update) -> Update:
    return Update(
        message.name,
        message.epoch,
        unpack(message.summary, bytes_max=SUMMARY_BYTES_MAX),
        unpack(message.chunk, bytes_max=CHUNK_BYTES_MAX),
        message.last,
    )
