"""Lag of an event loop while large pictures are worked on beside it; pytest's `-s` shows the figures.

A loop that shares its cores with other threads is late in any case. What pictures add is what they keep the
interpreter for, so the same loop beside threads that never do so is the measure.
"""

import asyncio
import base64
import hashlib
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from typing import Any, Final, cast

import numpy as np
from PIL import Image

from smg_node.core.generation.request import MediaPart, token_ids
from smg_node.engines.engine import MediaCard
from smg_node.pipeline.media.asked_media import AskedMedia
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_service import MediaService
from smg_node.prompts.media_forms import MediaForms
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared.media import MEDIA_METRICS
from support.engines.fake_engine import card
from support.media.checkpoints import family, vocabulary

PICTURES: Final = 8
WIDTH, HEIGHT = 4000, 3000
THREADS: Final = 2
TICK_S: Final = 0.002
ADDED_S_MAX: Final = 0.015
"""Three times what text streams may wait for pictures, as other work shares the machine."""
TRIES: Final = 3


def phone_picture() -> bytes:
    """Return a JPEG of 12 million pixels with as much in it as a photograph."""
    rng = np.random.default_rng(1)
    rough = rng.integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), dtype=np.uint8)
    picture = Image.fromarray(rough).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    out = BytesIO()
    picture.save(out, "JPEG", quality=90)
    return out.getvalue()


async def lag_beside(work: Callable[[], Awaitable[None]]) -> float:
    """Return how late the loop is while `work` is done: the time that 99 of 100 ticks are not later than."""
    loop, late, over = asyncio.get_running_loop(), list[float](), asyncio.Event()

    async def ticks() -> None:
        while not over.is_set():
            due_s = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            late.append(loop.time() - due_s)

    async with asyncio.TaskGroup() as group:
        group.create_task(ticks())
        await work()
        over.set()
    return statistics.quantiles(late, n=100)[98]


async def pictures_worked_on(service: MediaService, urls: list[str]) -> None:
    """Work on pictures from data URLs to tensors of half the precision."""
    known = family("qwen3_vl")
    parts = [MediaPart("image", url, f"messages[0].content[{at}]") for at, url in enumerate(urls)]
    engine = card(media=MediaCard(frozenset({"tensors"}), dtype="bfloat16"))
    asked = AskedMedia(
        parts,
        MediaForms(known.anchor),
        known,
        cast("Any", vocabulary("qwen3_vl")),
        [engine],
        service.options,
    )
    ids = token_ids([known.placeholder] * len(parts))
    media = await service.intake.media(asked, ids, "m")
    try:
        await media.begin()
        await media.worked()
        await media.handed(engine, media.ids)
    finally:
        media.close()


async def hashed_beside(threads: ThreadPoolExecutor, seconds: float) -> None:
    """Keep all threads busy with what leaves the interpreter alone."""
    block, until_s = bytes(1 << 24), time.monotonic() + seconds

    def hashing() -> None:
        while time.monotonic() < until_s:
            hashlib.sha256(block)

    loop = asyncio.get_running_loop()
    await asyncio.gather(*[loop.run_in_executor(threads, hashing) for _ in range(THREADS)])


async def test_large_pictures_do_not_hold_up_the_streams_of_others() -> None:
    data, added = phone_picture(), []
    options = MediaOptions(threads=THREADS, inflight_bytes=1 << 31, cache_bytes=0)
    for number in range(TRIES):
        cells = Cells(MEDIA_METRICS, before=lambda: None)
        service = MediaService(
            options, lambda _: [], cast("Any", None), cells=cells, monotonic_s=time.monotonic
        )
        # Each has something of its own behind its end, which decoders do not look at.
        urls = [
            "data:;base64," + base64.b64encode(data + bytes([number, at])).decode()
            for at in range(PICTURES)
        ]
        began_s = time.monotonic()
        try:
            with_pictures = await lag_beside(partial(pictures_worked_on, service, urls))
        finally:
            service.close()
        took_s = time.monotonic() - began_s
        with ThreadPoolExecutor(THREADS) as threads:
            without = await lag_beside(partial(hashed_beside, threads, min(took_s, 3.0)))
        added.append(with_pictures - without)
        sys.stdout.write(
            f"8 x 12 MP in {took_s:.2f} s: p99 lag {with_pictures * 1e3:.1f} ms,"
            f" {without * 1e3:.1f} ms beside other work\n"
        )
    assert min(added) <= ADDED_S_MAX
