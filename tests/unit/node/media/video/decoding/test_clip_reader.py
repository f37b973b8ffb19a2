"""Clips decoded in processes of their own: to the bit as OpenCV reads them, within limits, and whatever the bytes are."""

import json
import os
import random
import re
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.media.video.clip import INVALID_VIDEO, ClipHeader
from smg_node.media.video.decoding.clip_reader import (
    ReaderLimits,
    ReaderSwitch,
    read_clip_frames,
    read_clip_header,
)
from support.house.tree import ROOT

CLIPS: Final = ROOT / "tests" / "support" / "media" / "clips"
JUDGED: Final[dict[str, list[Any]]] = json.loads((CLIPS / "judged.json").read_text())
LIMITS: Final = ReaderLimits()


def clip(name: str) -> bytes:
    return (CLIPS / name).read_bytes()


def header(data: bytes, limits: ReaderLimits = LIMITS) -> ClipHeader:
    return read_clip_header(data, limits, ReaderSwitch())


def refusal(data: bytes, limits: ReaderLimits = LIMITS) -> str:
    """Return why a file is refused; it is, as a client's mistake."""
    with pytest.raises(SmgError) as refused:
        header(data, limits)
    assert refused.value.code == INVALID_VIDEO
    assert refused.value.kind is ErrorKind.INVALID_REQUEST
    return refused.value.message


@pytest.mark.parametrize("name", JUDGED)
def test_clips_are_read_as_opencv_reads_them(name: str) -> None:
    frames, fps, shape, digest = JUDGED[name]
    data = clip(name)
    found = header(data)
    assert (found.frames, found.height, found.width) == (frames, *shape[:2])
    assert found.fps == pytest.approx(fps, rel=1e-12)
    levels = sha256()
    for frame in read_clip_frames(data, found, range(frames), LIMITS, ReaderSwitch()):
        assert frame.shape == tuple(shape)
        assert frame.flags.c_contiguous
        levels.update(frame.tobytes())
    assert levels.hexdigest() == digest


def test_av1_is_read() -> None:
    found = header(clip("av1.mp4"))
    assert (found.frames, found.fps, found.width, found.height) == (8, 20.0, 64, 64)
    assert found.codec == "av1"
    assert len(list(read_clip_frames(clip("av1.mp4"), found, [0, 7], LIMITS, ReaderSwitch()))) == 2


def test_only_the_frames_that_are_asked_for_come() -> None:
    data = clip("h264.mp4")
    found = header(data)
    everything = list(read_clip_frames(data, found, range(24), LIMITS, ReaderSwitch()))
    some = list(read_clip_frames(data, found, [1, 5, 23], LIMITS, ReaderSwitch()))
    assert all(
        np.array_equal(one, everything[at]) for one, at in zip(some, [1, 5, 23], strict=True)
    )
    with pytest.raises(SmgError, match="frame 24 cannot be decoded"):
        list(read_clip_frames(data, found, [3, 24], LIMITS, ReaderSwitch()))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "an empty file"),
        (b"#EXTM3U\nhttp://127.0.0.1/a.ts\n", "a playlist"),
        (b"ffconcat version 1.0\nfile '/etc/passwd'\n", "a playlist"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "a PNG picture"),
        (b"\x00\x00\x00\x20ftypavif" + bytes(40), "a picture"),
        (b"OggS" + bytes(40), "Ogg"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a web page"),
        (b"\x01" * 64, "a file of unknown kind"),
    ],
)
def test_other_files_are_named_before_any_process_is_begun(data: bytes, what: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("subprocess.Popen", None)
        assert what in refusal(data)


def test_a_clip_that_ends_early_is_refused() -> None:
    assert "damaged" in refusal(clip("h264.mp4")[:1800])
    whole = clip("mpeg4.avi")
    assert "cannot be decoded" in refusal(whole[: len(whole) // 2])


def test_a_file_of_sound_is_no_video() -> None:
    data = clip("h264.mp4").replace(b"vide", b"soun")
    assert "cannot be decoded" in refusal(data)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (ReaderLimits(frame_pixels_max=1000), "more than 1000 pixels"),
        (ReaderLimits(pixels_max=50_000), "media.video_pixels_max"),
        (ReaderLimits(memory_bytes=1 << 20), "memory|damaged"),
    ],
)
def test_limits_are_told(limits: ReaderLimits, why: str) -> None:
    assert re.search(why, refusal(clip("h264.mp4"), limits))


def test_a_file_that_its_process_has_no_memory_for_is_not_called_damaged() -> None:
    data = clip("h264.mp4") + bytes(150 << 20)
    assert "media.video_memory_bytes" in refusal(data, ReaderLimits(memory_bytes=192 << 20))


def test_a_process_that_works_too_long_is_killed_and_so_is_one_that_sleeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "endless.py"
    for body in ("while True: pass", "import time\nwhile True: time.sleep(1)"):
        program.write_text(body)
        monkeypatch.setattr("smg_node.media.video.decoding.clip_reader.ARGUMENTS", (str(program),))
        assert "more than 1 seconds" in refusal(clip("h264.mp4"), ReaderLimits(seconds=1))


def test_a_stop_ends_the_process_and_all_that_would_come_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "endless.py"
    program.write_text("import time\nwhile True: time.sleep(1)")
    switch = ReaderSwitch()
    with monkeypatch.context() as patch:
        patch.setattr("smg_node.media.video.decoding.clip_reader.ARGUMENTS", (str(program),))
        threading.Timer(0.5, switch.stop).start()
        with pytest.raises(SmgError, match="not wanted"):
            read_clip_header(clip("h264.mp4"), LIMITS, switch)
    assert switch.process is None
    with pytest.raises(SmgError, match="not wanted"):
        read_clip_header(clip("h264.mp4"), LIMITS, switch)


def test_an_iterator_that_is_closed_early_leaves_no_process() -> None:
    data, switch = clip("h264.mp4"), ReaderSwitch()
    frames = read_clip_frames(data, header(data), range(24), LIMITS, switch)
    next(frames)
    process = switch.process
    assert process is not None
    frames.close()
    assert process.returncode is not None


def test_the_process_knows_nothing_of_the_node_and_can_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "look.py"
    program.write_text(
        "import os, json\n"
        "fds = sorted(int(each) for each in os.listdir('/proc/self/fd'))\n"
        f"open({str(seen)!r}, 'w').write(json.dumps([dict(os.environ), fds[:-1], os.getcwd()]))\n"
    )
    monkeypatch.setenv("SMG_SECRET", "hush")
    monkeypatch.setattr("smg_node.media.video.decoding.clip_reader.ARGUMENTS", (str(program),))
    extra = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(extra, True)
    try:
        refusal(clip("h264.mp4"))
    finally:
        os.close(extra)
    environment, descriptors, folder = json.loads(seen.read_text())
    assert set(environment) <= {
        "PYTHONPATH",
        "MALLOC_ARENA_MAX",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
    }
    assert descriptors == [0, 1, 2]
    assert folder == "/"


@pytest.mark.parametrize("name", ["h264.mp4", "vp9.webm", "mpeg4.avi", "small.gif"])
def test_mutated_files_are_read_or_refused(name: str) -> None:
    """Some only, as each is a process; more of them, and of more kinds, are in the long tests."""
    rng, whole = random.Random(name), clip(name)
    for _ in range(6):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 12)):
            data[rng.randrange(16, len(data))] = rng.randrange(256)
        outcome = _outcome(bytes(data))
        assert outcome in ("", INVALID_VIDEO)


def _outcome(data: bytes) -> str:
    """Return the code of the error that a file is refused with, "" where it is read."""
    try:
        found = header(data)
        last = max(found.frames - 1, 0)
        list(read_clip_frames(data, found, [0, last][: last + 1], LIMITS, ReaderSwitch()))
    except SmgError as error:
        return error.code
    return ""
