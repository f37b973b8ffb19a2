"""Frames of an exchange as protobuf messages and back: any bytes give a frame or an `ExchangeError`."""

from typing import Final

from google.protobuf.message import DecodeError

from smg_mesh.swim.messages import Claim
from smg_mesh.swim.wire import WireError, decode_claims, encode_claims
from smg_mesh.sync.exchange import ExchangeError, Frame, Novel, Opening, Rows
from smg_proto import mesh_pb2

MESSAGE_BYTES_MAX: Final = 1_048_576
"""One slice of rows has at most 0.7 MB, with the largest name, address and meta in every row."""


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
            return _read(message.opening)
        case "rows":
            return Rows(_claims(message.rows.claims), message.rows.last)
        case _:
            return Novel(message.ignorable)


def _message(frame: Frame) -> mesh_pb2.ExchangeFrame:
    match frame:
        case Opening():
            return mesh_pb2.ExchangeFrame(opening=_written(frame))
        case Rows():
            rows = mesh_pb2.Rows(claims=encode_claims(frame.claims), last=frame.last)
            return mesh_pb2.ExchangeFrame(rows=rows)
        case Novel():
            return mesh_pb2.ExchangeFrame(ignorable=frame.ignorable)


def _written(opening: Opening) -> mesh_pb2.Opening:
    return mesh_pb2.Opening(
        name=opening.name,
        boot=opening.boot,
        label=opening.label,
        digest=opening.digest,
        full=opening.full,
        wire_version=opening.wire_version,
        ring_version=opening.ring_version,
    )


def _read(message: mesh_pb2.Opening) -> Opening:
    return Opening(
        name=message.name,
        boot=message.boot,
        label=message.label,
        digest=message.digest,
        full=message.full,
        wire_version=message.wire_version,
        ring_version=message.ring_version,
    )


def _claims(data: bytes) -> tuple[Claim, ...]:
    try:
        return tuple(decode_claims(data))
    except WireError as error:
        raise ExchangeError("wire", f"sent rows that are none: {error}") from error
