"""Memory of prompts' pictures: all of it comes back, whatever calls do, fail or are cancelled, and in whatever order."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart, token_ids
from smg_node.engines.engine import MediaCard
from smg_node.media.engine_media import MediaRange
from smg_node.media.pixels.arena import Arenas
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.making.picture_making import MediaWorkshop, PlannedPicture
from smg_node.pipeline.media.making.picture_threads import PictureThreads
from smg_node.pipeline.media.making.picture_works import PictureWorks
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.pipeline.media.picture_source import SentPicture
from smg_node.pipeline.media.prompt_media import PromptMedia
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import card
from support.media.plain_pictures import PLACE, Kept, PlainFamily, PlainSource, no_clips

TENSORS = frozenset({"tensors"})
CARDS = (
    card(media=MediaCard(TENSORS)),
    card(media=MediaCard(TENSORS, dtype="bfloat16")),
    card(media=MediaCard(TENSORS, device_normalizes=True)),
    card(media=MediaCard(frozenset({"references"}), schemes=frozenset({"data"}))),
    card(media=MediaCard(frozenset({"encoded"}))),
)
PROMPTS, CALLS, STEPS = 6, 3, 8


class _Prompt:
    """One prompt of a few pictures, as a generation goes about it, at whatever pace chance wants."""

    def __init__(self, chance: random.Random, workshop: MediaWorkshop) -> None:
        self.chance = chance
        self.source, self.family = PlainSource({}), PlainFamily()
        until_s = workshop.monotonic_s() + 0.3 if chance.random() < 0.5 else 0.0
        pictures, ranges, ids = [], [], [1]
        for number in range(chance.randint(1, 3)):
            part = MediaPart("image", f"https://x/{number}", f"messages[{number}]")
            data = f"{chance.choice((20, 30))}x4:{chance.randint(0, 9)}".encode()
            if chance.random() < 0.05:
                data += b"!"
            header = self.source.header(data, part.where)
            plan = self.family.plan(header.width, header.height)
            digest = self.source.digest(data, self.family.fingerprint, part)
            pictures.append(
                PlannedPicture(part, SentPicture(self.source, data, header), plan, digest)
            )
            ranges.append(MediaRange(len(ids), plan.tokens, plan.tokens, digest, part.where))
            ids += [PLACE] * plan.tokens
        self.media = PromptMedia(
            workshop,
            self.family,
            pictures,
            token_ids(ids),
            token_ids([1, *[PLACE] * len(pictures)]),
            tuple(ranges),
            "auto",
            patient_until_s=until_s,
        )

    async def run(self) -> None:
        media, chance = self.media, self.chance
        try:
            await media.hold_texts(chance.randint(0, 40))
            media.hold(sum(len(each.sent.data) for each in media.pictures))
            await media.begin()
            await media.worked()
            calls = range(chance.randint(1, CALLS))
            await media.handed(chance.choice(CARDS), media.ids)
            media.calls(calls, media.patient_until_s)
            async with asyncio.TaskGroup() as group:
                for first in calls:
                    group.create_task(self._call(first))
        finally:
            media.close()
            media.close()

    async def _call(self, first: int) -> None:
        media, chance = self.media, self.chance
        for _ in range(chance.randint(1, 3)):
            handed = await media.handed(chance.choice(CARDS), media.ids, 0, first)
            media.sent(handed)
            await asyncio.sleep(chance.random() / 500)
            if chance.random() < 0.7:
                media.heard(first)
            if chance.random() < 0.1:
                raise RuntimeError("the answer broke")


async def _cut(work: Callable[[], Awaitable[None]], after_s: float | None) -> None:
    # A refusal, a call that broke, or a client that left.
    with suppress(SmgError, TimeoutError, BaseExceptionGroup):
        async with asyncio.timeout(after_s):
            await work()


@pytest.mark.parametrize("seed", range(24))
async def test_all_memory_comes_back_in_whatever_order_calls_end(seed: int) -> None:
    chance, kept = random.Random(seed), Kept()
    meters = MediaMeters(kept.cells)
    if seed % 2:
        kept.cache.resize(0)
    with PictureThreads(2) as threads:
        works = PictureWorks(threads, kept.cache, meters)
        budget = ByteBudget(chance.choice((400, 1500, 100_000)))
        workshop = MediaWorkshop(
            threads, works, budget, meters, Arenas(), SystemClock().monotonic_s, no_clips
        )
        for _ in range(STEPS):
            async with asyncio.TaskGroup() as group:
                for _ in range(PROMPTS):
                    prompt = _Prompt(chance, workshop)
                    after_s = chance.random() / 50 if chance.random() < 0.5 else None
                    group.create_task(_cut(prompt.run, after_s))
            assert (budget.taken, budget.waiting) == (0, 0)
        await asyncio.sleep(0)
        assert len(works) == 0, "nobody waits for any of them"
