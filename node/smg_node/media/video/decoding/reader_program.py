"""Reader program: the decoding process, `python -m` of this module: one file from standard input, frames to output.

It limits itself before a library has seen a byte of the file: memory, seconds of work, no further file descriptor (so
neither files nor sockets can be opened), no file written, no core left. The container's reader is named, not guessed.
Whoever sent the file can make it end, and no more. It imports PyAV, and nothing of the node but messages.
"""

import io
import os
import resource
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from smg_node.media.video.decoding.reader_messages import (
    FRAME,
    LINE_BYTES_MAX,
    REFUSED,
    ReaderFound,
    ReaderRefusal,
    ReaderTask,
)

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_DESCRIPTORS: Final = 3
"""Standard input, output and errors: there are no others, and none can be opened."""
_OPTIONS: Final = {
    # The bytes come from memory; whatever else a file names is not looked for.
    "protocol_whitelist": "none",
    "enable_drefs": "0",
    "use_absolute_path": "0",
}
_QUARTER: Final = 90
_PIXEL: Final = bytes.fromhex(
    "47494638396101000100800000000000ffffff2c00000000010001000002024401003b"
)
"""A GIF of one pixel."""


class UnreadableError(Exception):
    """A file that is not read; the text says why."""


class Answer:
    """What is told about the file, in order: what it holds, then frames, and perhaps why there are no more."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self.found: ReaderFound | None = None

    def tell(self, found: ReaderFound) -> None:
        """Tell what the file holds, before anything else."""
        assert self.found is None
        self.found = found
        self._sink.write(msgspec.json.encode(found) + b"\n")

    def show(self, frame: "VideoFrame") -> None:
        """Write the levels of a frame without the bytes between its lines.

        In this order of colours and with this filter for theirs, because the readers of engines do it so, to the bit.
        """
        plane = frame.reformat(format="bgr24", interpolation="BICUBIC", threads=1).planes[0]
        levels: Any = memoryview(plane)
        width = 3 * frame.width
        self._sink.write(FRAME)
        if plane.line_size == width:
            self._sink.write(levels[: width * frame.height])
            return
        for top in range(0, plane.line_size * frame.height, plane.line_size):
            self._sink.write(levels[top : top + width])

    def refuse(self, why: str) -> None:
        """Tell why nothing comes, or nothing more; it is a line of its own where nothing came before."""
        line = msgspec.json.encode(ReaderRefusal(why)) + b"\n"
        self._sink.write(line if self.found is None else REFUSED + line)

    def end(self) -> None:
        """Have all of it read."""
        self._sink.flush()


def main() -> int:
    """Do the one task that there is; the exit status is 0 also for a refusal, which is told."""
    source, answer = sys.stdin.buffer, Answer(sys.stdout.buffer)
    task = msgspec.json.decode(source.readline(LINE_BYTES_MAX), type=ReaderTask)
    import av

    av.logging.set_level(None)
    _load()
    _limit(task)
    try:
        _read(source.read(), task, answer)
    except UnreadableError as error:
        answer.refuse(str(error))
    except MemoryError:
        answer.refuse(
            f"it takes more than {task.memory_bytes} bytes of memory (media.video_memory_bytes)"
        )
    except av.error.FFmpegError as error:
        answer.refuse(f"it is damaged ({error.strerror})")
    answer.end()
    return 0


def _load() -> None:
    """Have everything imported that PyAV imports at first use: afterwards no file can be opened.

    Kinds of streams are imported when a file has one; the rest is what a picture of one pixel takes.
    """
    for kind in ("audio", "subtitles", "video"):
        import_module(f"av.{kind}.stream")
    warm = Answer(io.BytesIO())
    _read(_PIXEL, ReaderTask("gif", ("gif",), 0, 0, 1, (0,)), warm)
    assert warm.found is not None


def _limit(task: ReaderTask) -> None:
    """Take away what the task does not need; nothing of it can be had back."""
    for kind, most in (
        (resource.RLIMIT_AS, task.memory_bytes),
        (resource.RLIMIT_CPU, task.seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _DESCRIPTORS),
    ):
        resource.setrlimit(kind, (most, most))


def _read(data: bytes, task: ReaderTask, answer: Answer) -> None:
    if task.frames:
        with _opened(data, task) as container:
            _frames(container, task, answer)
        return
    with _opened(data, task) as container:
        packets = _packets(container)
    with _opened(data, task) as container:
        answer.tell(_found(container, packets, task))


def _opened(data: bytes, task: ReaderTask) -> "InputContainer":
    import av

    return av.open(io.BytesIO(data), "r", format=task.reader, options=dict(_OPTIONS))


def _stream(container: "InputContainer", task: ReaderTask) -> "VideoStream":
    """Return the first stream of pictures that move, ready to be decoded."""
    stream = _first(container)
    codec = stream.codec_context.codec.canonical_name
    if codec not in task.codecs:
        raise UnreadableError(f"its codec {codec} is not one of {', '.join(sorted(task.codecs))}")
    if stream.codec_context.width * stream.codec_context.height > task.pixels_max:
        raise UnreadableError(
            f"it is {stream.codec_context.width}x{stream.codec_context.height}: its frames have"
            f" more than {task.pixels_max} pixels"
        )
    stream.codec_context.thread_count = 1
    return stream


def _first(container: "InputContainer") -> "VideoStream":
    if not container.streams.video:
        raise UnreadableError("it has no pictures in it")
    return container.streams.video[0]


def _packets(container: "InputContainer") -> int:
    """Return how many frames a file shows: its packets are counted, for headers may say anything, or nothing."""
    stream = _first(container)
    said, shown, there = stream.frames, 0, 0
    for packet in container.demux(stream):
        if packet.size:
            there += 1
            shown += not packet.is_discard
    if there < said:
        raise UnreadableError(f"it ends after {there} of its {said} frames")
    return shown


def _found(container: "InputContainer", packets: int, task: ReaderTask) -> ReaderFound:
    """Return what is in a file, whose first frame is decoded for it."""
    stream = _stream(container, task)
    first = next(_decoded(container, stream), None)
    if first is None:
        raise UnreadableError("none of its frames can be decoded")
    return ReaderFound(
        width=first.width,
        height=first.height,
        frames=packets,
        fps=float(stream.guessed_rate or stream.average_rate or 0),
        codec=stream.codec_context.codec.canonical_name,
        turns=_turns(first),
    )


def _frames(container: "InputContainer", task: ReaderTask, answer: Answer) -> None:
    """Write the frames that were asked for, all others decoded and thrown away."""
    stream = _stream(container, task)
    wanted = iter(task.frames)
    next_one: int | None = next(wanted)
    for number, frame in enumerate(_decoded(container, stream)):
        if number != next_one:
            continue
        if frame.width * frame.height > task.pixels_max:
            raise UnreadableError(f"a frame has more than {task.pixels_max} pixels")
        if answer.found is None:
            about = (len(task.frames), 0.0, "", _turns(frame))
            answer.tell(ReaderFound(frame.width, frame.height, *about))
        elif (frame.width, frame.height) != (answer.found.width, answer.found.height):
            raise UnreadableError("its frames change their size")
        answer.show(frame)
        next_one = next(wanted, None)
        if next_one is None:
            return
    raise UnreadableError(f"its frame {next_one} cannot be decoded")


def _decoded(container: "InputContainer", stream: "VideoStream") -> "Iterator[VideoFrame]":
    yield from container.decode(stream)


def _turns(frame: "VideoFrame") -> int:
    """Return the quarters by which a frame is to be turned, from its display matrix."""
    return round(frame.rotation / _QUARTER) % 4


if __name__ == "__main__":
    status = main()
    # What libraries do at the end of a process is not waited for.
    os._exit(status)
