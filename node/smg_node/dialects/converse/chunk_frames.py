"""Chunk frames: events of `invoke-with-response-stream`, taken out of their frames as server-sent events. Pure.

Each frame `chunk` holds one event of the model's own API, for Claude of Messages, as base64 in JSON. What Bedrock adds
to one, its own measurements, stays in it.
"""

import base64
import binascii
import re
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.converse.aws_frames import Frame, FrameReader
from smg_node.dialects.converse.frame_errors import error_in
from smg_node.dialects.worker_errors import WorkerError

_CHUNK: Final = "chunk"
_TYPE: Final = re.compile(rb'\{\s*"type"\s*:\s*"([a-z_]{1,64})"')
"""How nearly every event begins."""


class _Chunk(msgspec.Struct, gc=False):
    data: str = msgspec.field(name="bytes", default="")


class _Event(msgspec.Struct, gc=False):
    type: str = ""


_chunk: Final = msgspec.json.Decoder(_Chunk).decode
_event: Final = msgspec.json.Decoder(_Event).decode


class ChunkFrames:
    """Unframer of one stream."""

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._error: SmgError | WorkerError | None = None

    def feed(self, piece: bytes) -> bytes:
        """Return the events of the frames that are whole now.

        UPSTREAM_FAILED for bytes that are no frames, `WorkerError` for a frame that is an error: behind the events
        before it, so by the next call if there are any.
        """
        self._raise()
        told: list[bytes] = []
        try:
            for frame in self._frames.feed(piece):
                event = _told(frame)
                told.append(event)
        except (SmgError, WorkerError) as error:
            self._error = error
            if not any(told):
                raise
        return b"".join(told)

    def finish(self) -> bytes:
        """Return nothing: the stream has come to its end. UPSTREAM_FAILED in the middle of a frame, errors as `feed`."""
        self._raise()
        self._frames.finish()
        return b""

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


def _told(frame: Frame) -> bytes:
    """Return the event of a frame, b"" for a frame without one."""
    error = error_in(frame)
    if error is not None:
        raise error
    if frame.headers.get(":event-type") != _CHUNK:
        return b""
    try:
        data = base64.b64decode(_chunk(frame.payload).data, validate=True)
    except (msgspec.MsgspecError, UnicodeDecodeError, binascii.Error, ValueError) as error:
        raise _broken("a frame of the vendor's stream holds no chunk") from error
    if not data:
        return b""
    if b"\n" in data or b"\r" in data:
        data = _one_line(data)
    return b"event: %b\ndata: %b\n\n" % (_name(data), data)


def _name(data: bytes) -> bytes:
    """Return the name of an event: its type."""
    found = _TYPE.match(data)
    if found is not None:
        return found[1]
    try:
        kind = _event(data).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _broken("a chunk of the vendor's stream is no object of JSON") from error
    return kind.encode() if kind.isidentifier() and kind.isascii() else b"message"


def _one_line(data: bytes) -> bytes:
    """Return JSON without ends of lines, which may stand between its members only."""
    try:
        return msgspec.json.format(data, indent=-1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _broken("a chunk of the vendor's stream is no JSON") from error


def _broken(message: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)
