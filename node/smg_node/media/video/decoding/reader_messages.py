"""Reader messages: what the decoding process is told and tells, between it and the node; pure.

    node to process:    one line of JSON (`ReaderTask`), then the file to the end of the stream
    process to node:    one line of JSON (`ReaderFound` or `ReaderRefusal`); for frames, after it, for each that was
                        asked for FRAME and its levels (blue, green, red, line by line), or REFUSED and a `ReaderRefusal`

The process is not believed more than the file that it has read: lines and numbers are bounded by who reads them.
"""

from typing import Final

import msgspec

FRAME: Final = b"F"
REFUSED: Final = b"E"
LINE_BYTES_MAX: Final = 65_536
"""Longest line of JSON: a task names up to 768 frames."""
TEXT_MAX: Final = 200
"""Longest reason of a refusal that is passed on."""


class ReaderTask(msgspec.Struct, frozen=True, tag="task"):
    """What is to be read: the header only where `frames` is empty, else these frames, ascending.

    `reader` is FFmpeg's name of the container's demuxer. `memory_bytes` and `seconds` are what it may take; a frame
    has at most `pixels_max` pixels.
    """

    reader: str
    codecs: tuple[str, ...]
    memory_bytes: int
    seconds: int
    pixels_max: int
    frames: tuple[int, ...] = ()


class ReaderFound(msgspec.Struct, frozen=True, tag="found"):
    """What a file holds: `frames` of `width` by `height` as they are stored, to be turned by `turns` quarters.

    Quarters are counter-clockwise. `fps` is 0 where the file does not say.
    """

    width: int
    height: int
    frames: int
    fps: float
    codec: str
    turns: int = 0


class ReaderRefusal(msgspec.Struct, frozen=True, tag="refused"):
    """Why a file cannot be read, in words for whoever sent it."""

    why: str


ReaderAnswer = ReaderFound | ReaderRefusal
