"""Clip reader: files of video decoded in processes of their own; blocking, for threads that are there for it.

A process takes one file through a pipe and gives back what it holds, or the frames that are asked for. It inherits no
descriptor and none of the node's environment, and is killed when its time is over, when its caller ends early, and by
`ReaderSwitch.stop` from any thread. Nothing that it says is believed beyond what was asked for.
"""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Timer
from typing import IO, TYPE_CHECKING, Final

import msgspec

import smg_node
from smg_node.core.errors import SmgError
from smg_node.media.video.clip import FPS_UNKNOWN, ClipHeader, refused
from smg_node.media.video.decoding.containers import (
    CODECS,
    READERS,
    Container,
    container_of,
    other_kind,
)
from smg_node.media.video.decoding.reader_messages import (
    FRAME,
    LINE_BYTES_MAX,
    TEXT_MAX,
    ReaderAnswer,
    ReaderFound,
    ReaderRefusal,
    ReaderTask,
)

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

ARGUMENTS: Final = ("-m", "smg_node.media.video.decoding.reader_program")
"""The program, for Python."""
FPS_MAX: Final = 1_000.0
"""More frames a second than any clip has: beyond it a header is not believed."""
_PIPE_BYTES: Final = 1 << 20
"""What a pipe holds where the system allows it: a frame is sent in fewer pieces."""
_MARGIN_S: Final = 2
"""Wall time above the seconds of work that a process may take, for its start."""


class ReaderLimits(msgspec.Struct, frozen=True):
    """What one decoding process may take: address space, seconds of work, pixels of a frame and of all frames."""

    memory_bytes: int = 1 << 30
    seconds: int = 60
    frame_pixels_max: int = 40_000_000
    pixels_max: int = 8_000_000_000


class ReaderSwitch:
    """Ends the process that works for it now (`process`), and all that would come later; from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def stop(self) -> None:
        """Kill what works, and let nothing begin any more."""
        with self._lock:
            self.stopped = True
            self._kill()

    def take(self, process: "subprocess.Popen[bytes] | None") -> None:
        """Work is this process now, or none; one that comes after the stop is killed."""
        with self._lock:
            self.process = process
            # It has not been waited for, so that the number is still its own.
            if self.stopped:
                self._kill()

    def kill(self) -> None:
        """Kill what works now."""
        with self._lock:
            self._kill()

    def _kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()


def read_clip_header(data: bytes, limits: ReaderLimits, switch: ReaderSwitch) -> ClipHeader:
    """Return what a file of video holds; SmgError `invalid_video` without a path for one that cannot be shown.

    All of its packets are looked at and its first frame is decoded, so that header and file agree.
    """
    task = _task(data, limits, ())
    with _working(task, data, switch) as output:
        found = _found(output)
    if not found.width > 0 < found.height or found.turns not in range(4):
        raise refused("the video has no pixels")
    wide, high = (found.width, found.height)[:: -1 if found.turns % 2 else 1]
    fps = found.fps if 0 < found.fps <= FPS_MAX else FPS_UNKNOWN
    header = ClipHeader(wide, high, max(found.frames, 0), fps, _kind(data), found.codec)
    check_limits(header, limits)
    return header


def check_limits(header: ClipHeader, limits: ReaderLimits) -> None:
    """Return if a clip may be decoded within the limits; SmgError `invalid_video` without a path if not."""
    wide, high = header.width, header.height
    if header.pixels > limits.frame_pixels_max:
        raise refused(
            f"the video is {wide}x{high}: more than {limits.frame_pixels_max} pixels"
            " (media.image_pixels_max)"
        )
    if header.pixels * header.frames > limits.pixels_max:
        raise refused(
            f"the video has {header.frames} frames of {wide}x{high}: more than"
            f" {limits.pixels_max} pixels to decode (media.video_pixels_max)"
        )


def read_clip_frames(
    data: bytes,
    header: ClipHeader,
    frames: Sequence[int],
    limits: ReaderLimits,
    switch: ReaderSwitch,
) -> "Generator[Pixels, None, None]":
    """Go through some frames of a file, ascending: [height, width, 3] each, RGB, as they are shown.

    SmgError `invalid_video` where one cannot be decoded. The process ends with the iterator, whenever that is closed.
    """
    import numpy as np  # it comes with the first clip

    task = _task(data, limits, frames)
    with _working(task, data, switch) as output:
        found = _found(output)
        shape = (found.height, found.width, 3)
        if sorted(shape[:2]) != sorted((header.height, header.width)):
            raise refused("the video's frames change their size")
        for _ in frames:
            mark = output.read(1)
            if mark != FRAME:
                _refuse(output)
            levels: Pixels = np.empty(shape, dtype=np.uint8)
            _fill(output, levels.reshape(-1).data)
            turned = np.rot90(levels, found.turns) if found.turns else levels
            if turned.shape != (header.height, header.width, 3):
                raise refused("the video's frames change their size")
            yield np.ascontiguousarray(turned[:, :, ::-1])


def _task(data: bytes, limits: ReaderLimits, frames: Sequence[int]) -> ReaderTask:
    return ReaderTask(
        reader=READERS[_kind(data)],
        codecs=tuple(sorted(CODECS)),
        memory_bytes=limits.memory_bytes,
        seconds=limits.seconds,
        pixels_max=limits.frame_pixels_max,
        frames=tuple(frames),
    )


def _kind(data: bytes) -> Container:
    kind = container_of(data)
    if kind is None:
        known = ", ".join(("MP4", "WebM", "Matroska", "AVI", "GIF"))
        raise refused(f"{other_kind(data)} is not a video that models see ({known})")
    return kind


@contextmanager
def _working(task: ReaderTask, data: bytes, switch: ReaderSwitch) -> Iterator[IO[bytes]]:
    """Have a process work on a file; its output, until the block ends. Then there is no process any more.

    SmgError `invalid_video` where it ends by itself before it has told enough.
    """
    with subprocess.Popen(
        [sys.executable, "-P", *ARGUMENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        cwd="/",
        start_new_session=True,
    ) as process:
        late = Timer(task.seconds + _MARGIN_S, switch.kill)
        late.daemon = True
        try:
            switch.take(process)
            late.start()
            assert process.stdin is not None
            assert process.stdout is not None
            _widen(process.stdin)
            _widen(process.stdout)
            _send(process.stdin, msgspec.json.encode(task) + b"\n", data)
            yield process.stdout
        except EOFError as end:
            raise _ended(process, task, switch) from end
        finally:
            late.cancel()
            process.kill()
            process.wait()
            switch.take(None)


def _environment() -> dict[str, str]:
    """Return all that the process knows of the node's environment: where Python's own code is."""
    found = {
        "PYTHONPATH": str(Path(smg_node.__file__).parents[1]),
        # One arena: each further one would take address space for nothing.
        "MALLOC_ARENA_MAX": "1",
        "LC_ALL": "C.UTF-8",
    }
    libraries = os.environ.get("LD_LIBRARY_PATH")
    return found | ({"LD_LIBRARY_PATH": libraries} if libraries else {})


def _widen(pipe: IO[bytes]) -> None:
    """Let a pipe hold more; where the system does not like it, it works with less."""
    try:
        fcntl.fcntl(pipe.fileno(), getattr(fcntl, "F_SETPIPE_SZ", 1031), _PIPE_BYTES)
    except OSError:
        return


def _send(pipe: IO[bytes], line: bytes, data: bytes) -> None:
    """Write the task and the file; a process that has enough of them says why in its answer."""
    try:
        pipe.write(line)
        pipe.write(data)
        pipe.close()
    except BrokenPipeError:
        return


def _found(output: IO[bytes]) -> ReaderFound:
    """Return the first line of an answer."""
    line = output.readline(LINE_BYTES_MAX)
    if not line.endswith(b"\n"):
        raise EOFError
    answer = _decoded(line)
    if isinstance(answer, ReaderRefusal):
        raise _refusal(answer)
    return answer


def _refuse(output: IO[bytes]) -> None:
    """Raise what came instead of a frame."""
    line = output.readline(LINE_BYTES_MAX)
    answer = _decoded(line) if line.endswith(b"\n") else None
    if not isinstance(answer, ReaderRefusal):
        raise EOFError
    raise _refusal(answer)


def _decoded(line: bytes) -> ReaderAnswer:
    try:
        found: ReaderAnswer = msgspec.json.decode(line, type=ReaderFound | ReaderRefusal)
        return found
    except msgspec.DecodeError as error:
        raise EOFError from error


def _fill(output: IO[bytes], levels: memoryview) -> None:
    """Read exactly as many bytes; EOFError where there are fewer."""
    at = 0
    while at < len(levels):
        read = output.readinto(levels[at:])  # type: ignore[attr-defined]  # it is a buffered reader
        if not read:
            raise EOFError
        at += read


def _refusal(answer: ReaderRefusal) -> SmgError:
    return refused(f"the video cannot be decoded: {answer.why[:TEXT_MAX]}")


def _ended(process: "subprocess.Popen[bytes]", task: ReaderTask, switch: ReaderSwitch) -> SmgError:
    """Return why a process ended before it has told what was asked."""
    if switch.stopped:
        return refused("the video is not wanted any more")
    try:
        status = process.wait(_MARGIN_S)
    except subprocess.TimeoutExpired:
        return refused("the video cannot be decoded: its decoder said something else")
    if status in (-signal.SIGKILL, -signal.SIGXCPU):
        return refused(
            f"the video takes more than {task.seconds} seconds to decode (media.video_seconds_max)"
        )
    return refused("the video cannot be decoded: it is damaged so that its decoder fails")
