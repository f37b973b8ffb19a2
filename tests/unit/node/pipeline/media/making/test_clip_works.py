"""Clips in the pipeline: planned by their headers, made once, kept, and killed where nobody waits any more."""

import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart
from smg_node.media.video.clip_family import ClipFamily
from smg_node.media.video.video_registry import UnknownClips, clip_family_of
from smg_node.pipeline.media.making.clip_works import ClipWorks, scratch_bytes
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.pipeline.media.media_options import MediaOptions
from support.house.tree import ROOT
from support.http.raw_http import until
from support.media.checkpoints import Vocabulary
from support.media.drawn_clips import files
from support.media.plain_pictures import Kept

WHERE = "messages[0].content[1].video_url.url"
PART = MediaPart("video", "data:", WHERE)
CLIP = (ROOT / "tests" / "support" / "media" / "clips" / "h264.mp4").read_bytes()
PROGRAM = "smg_node.media.video.decoding.clip_reader.ARGUMENTS"
TOKENS = {"<|video_pad|>": 90, "<|vision_start|>": 91, "<|vision_end|>": 92}


def family(name: str = "qwen3_vl") -> ClipFamily:
    found = clip_family_of(files(name), overrides={}, tokens=Vocabulary(TOKENS))
    assert not isinstance(found, UnknownClips)
    return found


@asynccontextmanager
async def _works(options: MediaOptions | None = None) -> AsyncIterator[tuple[ClipWorks, Kept]]:
    kept, options = Kept(), options or MediaOptions()
    works = ClipWorks(lambda: options, kept.cache, MediaMeters(kept.cells), time.monotonic)
    try:
        yield works, kept
    finally:
        works.close()


async def test_a_clip_is_planned_made_and_kept() -> None:
    async with _works() as (works, kept):
        planned = await works.planned(PART, CLIP, family())
        assert planned.plan.header.frames == 24
        assert planned.plan.grid == (2, 4, 4)
        making = works.making(CLIP, planned.plan, family())
        work = works.works.begin(planned.digest, making)
        patches = await work.patches(WHERE)
        assert patches.shape == planned.plan.shape
        assert [stage for stage, _ in making.times] == ["decode", "patches"]
        work.leave()
        again = works.works.begin(planned.digest, works.making(CLIP, planned.plan, family()))
        assert np.shares_memory(await again.patches(WHERE), patches)
        assert kept.cache.counts().entries == 1
        assert scratch_bytes(CLIP, planned.plan) > len(CLIP)


async def test_a_clip_that_was_seen_needs_no_process_to_be_planned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with _works() as (works, _):
        first = await works.planned(PART, CLIP, family())
        monkeypatch.setattr(PROGRAM, ("-c", "raise SystemExit"))
        assert await works.planned(PART, CLIP, family()) == first
        other = await works.planned(PART, CLIP, family("qwen2_5_vl"))
        named = await works.planned(MediaPart("video", "", WHERE, uuid="mine"), CLIP, family())
        assert len({first.digest, other.digest, named.digest}) == 3
        with pytest.raises(SmgError, match="decoder fails") as caught:
            await works.planned(PART, CLIP + b" ", family())
        assert (caught.value.where, caught.value.code) == (WHERE, "invalid_video")


async def test_what_was_seen_of_a_clip_is_its_tenants_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with _works() as (works, _):
        acme = await works.planned(PART, CLIP, family(), "acme")
        monkeypatch.setattr(PROGRAM, ("-c", "raise SystemExit"))
        assert await works.planned(PART, CLIP, family(), "acme") == acme
        for tenant in ("zoo", ""):
            with pytest.raises(SmgError, match="decoder fails"):
                await works.planned(PART, CLIP, family(), tenant)


async def test_bounds_count_also_for_clips_that_were_seen_before_they_were_set() -> None:
    options = MediaOptions()
    kept = Kept()
    works = ClipWorks(lambda: options, kept.cache, MediaMeters(kept.cells), time.monotonic)
    await works.planned(PART, CLIP, family())
    options = MediaOptions(video_pixels_max=1000)
    with pytest.raises(SmgError, match="video_pixels_max"):
        await works.planned(PART, CLIP, family())
    works.close()


def _endless(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have all decoding processes only write down who they are; the file."""
    told = folder / "processes"
    program = folder / "endless.py"
    program.write_text(
        f"import os, time\nopen({str(told)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "while True: time.sleep(1)\n"
    )
    monkeypatch.setattr(PROGRAM, (str(program),))
    return told


def _gone(told: Path) -> bool:
    return not any(Path(f"/proc/{name}").exists() for name in told.read_text().split())


async def test_a_clip_that_nobody_waits_for_is_not_read_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _works() as (works, _):
        planned = await works.planned(PART, CLIP, family())
        told = _endless(tmp_path, monkeypatch)
        work = works.works.begin(planned.digest, works.making(CLIP, planned.plan, family()))
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(works.planned(PART, CLIP + b" ", family()))
            await until(lambda: told.exists() and len(told.read_text().split()) == 2)
            work.leave()
            waiting.cancel()
        await until(lambda: _gone(told))
        assert waiting.cancelled()
        assert len(works.works) == 0


async def test_a_clip_that_nobody_waits_for_leaves_the_line_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _works(MediaOptions(video_processes=1)) as (works, _):
        planned = await works.planned(PART, CLIP, family())
        told = _endless(tmp_path, monkeypatch)
        slow = works.works.begin(planned.digest, works.making(CLIP, planned.plan, family()))
        await until(lambda: told.exists() and bool(told.read_text()))
        file = CLIP + b" "
        before = sys.getrefcount(file)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(works.planned(PART, file, family()))
            work = works.works.begin("a", works.making(file, planned.plan, family()))
            await asyncio.sleep(0)
            waiting.cancel()
            work.leave()
        del group, waiting, work
        await asyncio.sleep(0)
        gc.collect()
        assert sys.getrefcount(file) == before
        slow.leave()


async def test_no_process_is_left_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _works() as (works, _):
        planned = await works.planned(PART, CLIP, family())
        told = _endless(tmp_path, monkeypatch)
        works.works.begin(planned.digest, works.making(CLIP, planned.plan, family()))
        await until(lambda: told.exists() and bool(told.read_text()))
    await until(lambda: _gone(told))


async def test_more_clips_than_processes_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _endless(tmp_path, monkeypatch)
    async with _works(MediaOptions(video_processes=1, video_seconds_max=1)) as (works, _):
        clips = [works.planned(PART, CLIP + bytes([at]), family()) for at in range(2)]
        refusals = await asyncio.gather(*clips, return_exceptions=True)
        assert all("more than 1 seconds" in str(each) for each in refusals)
    assert len(told.read_text().split()) == 2
    assert os.getpid() not in map(int, told.read_text().split())
