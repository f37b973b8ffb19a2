"""Pictures made in threads: equal ones once, kept afterwards, and not at all where nobody wants them any more."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from smg_node.core.errors import SmgError, invalid
from smg_node.media.family import PicturePlan
from smg_node.pipeline.media.making.picture_works import PictureWorks
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.telemetry.metrics.declared.media import MEDIA_CACHE
from support.http.raw_http import until
from support.media.plain_pictures import Kept, refusal

PATCHES = np.arange(7, dtype=np.uint8)


@asynccontextmanager
async def _works(threads: int = 2) -> AsyncIterator[tuple[PictureWorks, Kept]]:
    kept = Kept()
    with ThreadPoolExecutor(threads) as executor:
        yield PictureWorks(executor, kept.cache, MediaMeters(kept.cells)), kept


class _Gated:
    """Work that waits until it may go on, and counts how often it was done."""

    plan = PicturePlan(1, 1, 1, 1, 1, (7,), ())

    def __init__(self, result: Any = PATCHES) -> None:
        self.gate = threading.Event()
        self.began = threading.Event()
        self.times = 0
        self.stops = 0
        self._result = result

    def stop(self) -> None:
        self.stops += 1

    def __call__(self) -> Any:
        self.began.set()
        assert self.gate.wait(10)
        self.times += 1
        if isinstance(self._result, SmgError):
            raise self._result
        return self._result


async def test_equal_pictures_are_made_once_and_then_kept() -> None:
    async with _works() as (works, kept):
        make = _Gated()
        first, second = works.begin("d1", make), works.begin("d1", make)
        assert first is second
        assert works.known("d1")
        make.gate.set()
        assert await first.patches("a") is await second.patches("b")
        assert make.times == 1
        await until(lambda: len(works) == 0)
        third = works.begin("d1", make)
        assert await third.patches("c") is PATCHES
        looked = [
            kept.cells.tally(MEDIA_CACHE, outcome).value for outcome in ("miss", "shared", "hit")
        ]
        assert looked == [1, 1, 1]
        assert kept.cache.counts().entries == 1
        for work in (first, second, third):
            work.leave()


async def test_an_error_is_told_to_each_prompt_at_its_own_path_and_nothing_is_kept() -> None:
    async with _works() as (works, kept):
        make = _Gated(invalid("cut off", code="invalid_image"))
        make.gate.set()
        work = works.begin("d1", make)
        works.begin("d1", make)
        for where in ("messages[0].content[1]", "messages[2].content[0]"):
            with pytest.raises(SmgError) as caught:
                await work.patches(where)
            assert refusal(caught.value) == (400, "invalid_image", where)
        assert kept.cache.counts().entries == 0
        await until(lambda: not works.known("d1"))


async def test_work_goes_on_as_long_as_somebody_wants_it() -> None:
    async with _works(1) as (works, _):
        make = _Gated()
        work = works.begin("d1", make)
        works.begin("d1", make)
        work.leave()
        make.gate.set()
        assert await work.patches("a") is PATCHES
        work.leave()


async def test_what_nobody_wants_any_more_does_not_begin() -> None:
    async with _works(1) as (works, kept):
        busy, dropped = _Gated(), _Gated()
        first, second = works.begin("d1", busy), works.begin("d2", dropped)
        await asyncio.to_thread(busy.began.wait, 10)
        second.leave()
        assert not works.known("d2")
        busy.gate.set()
        assert await first.patches("a") is PATCHES
        first.leave()
        await asyncio.sleep(0.02)
        assert not dropped.began.is_set()
        assert kept.cache.counts().entries == 1


async def test_a_waiter_that_is_cancelled_leaves_the_work_to_others() -> None:
    async with _works(1) as (works, _):
        make = _Gated()
        work = works.begin("d1", make)
        async with asyncio.TaskGroup() as group:
            waiter = group.create_task(work.patches("a"))
            await asyncio.to_thread(make.began.wait, 10)
            waiter.cancel()
        assert waiter.cancelled()
        make.gate.set()
        assert await work.patches("b") is PATCHES
        work.leave()
