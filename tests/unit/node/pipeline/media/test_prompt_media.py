"""The pictures of a prompt: begun, waited for, finished for each worker as that wants them, and given back."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart, token_ids
from smg_node.engines.engine import MediaCard
from smg_node.media.engine_media import (
    EncodedBatch,
    MediaRange,
    ReferenceBatch,
    Tensor,
    TensorBatch,
)
from smg_node.media.pixels.arena import Arenas
from smg_node.media.pixels.patch_cache import PatchCache
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.making.picture_making import MediaWorkshop, PlannedPicture
from smg_node.pipeline.media.making.picture_threads import PictureThreads
from smg_node.pipeline.media.making.picture_works import PictureWorks
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.pipeline.media.media_options import Where
from smg_node.pipeline.media.picture_source import SentPicture
from smg_node.pipeline.media.prompt_media import Handed, PromptMedia
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import card
from support.http.raw_http import until
from support.media.plain_pictures import (
    PLACE,
    Kept,
    PlainFamily,
    PlainSource,
    no_clips,
    refusal,
)

FLOATS = card(media=MediaCard(frozenset({"tensors", "references"}), schemes=frozenset({"data"})))
HALVES = card(media=MediaCard(frozenset({"tensors"}), dtype="bfloat16"))
LEVELS = card(media=MediaCard(frozenset({"tensors"}), device_normalizes=True, dtype="bfloat16"))
FILES = card(media=MediaCard(frozenset({"encoded"})))
DEAF = card()


@dataclass
class _World:
    """One prompt of two pictures."""

    source: PlainSource
    family: PlainFamily
    workshop: MediaWorkshop
    kept: PatchCache

    def media(
        self, *files: str, where: Where = "auto", family: bool = True, makes: bool = True
    ) -> PromptMedia:
        pictures, ranges, ids, plain = [], [], [1], [1]
        for number, file in enumerate(files):
            part = MediaPart("image", f"https://x.test/{number}", f"messages[{number}].content[0]")
            data = file.encode()
            header = self.source.header(data, part.where)
            plan = self.family.plan(header.width, header.height)
            digest = self.source.digest(data, self.family.fingerprint, part)
            sent = SentPicture(self.source, data, header)
            pictures.append(
                PlannedPicture(part, sent, plan if family else None, digest if family else "")
            )
            ranges.append(MediaRange(len(ids), plan.tokens, plan.tokens, digest, part.where))
            ids += [PLACE] * plan.tokens
            plain.append(PLACE)
        ids.append(2)
        plain.append(2)
        known = self.family if family else None
        expanded = token_ids(ids if family else plain)
        return PromptMedia(
            self.workshop,
            known,
            pictures,
            expanded,
            token_ids(plain),
            tuple(ranges) if family else (),
            where,
            makes,
        )


@asynccontextmanager
async def _world(most: int = 100_000) -> AsyncIterator[_World]:
    with PictureThreads(2) as threads:
        kept = Kept()
        meters = MediaMeters(kept.cells)
        works = PictureWorks(threads, kept.cache, meters)
        workshop = MediaWorkshop(
            threads,
            works,
            ByteBudget(most),
            meters,
            Arenas(),
            SystemClock().monotonic_s,
            no_clips,
        )
        yield _World(PlainSource({}), PlainFamily(), workshop, kept.cache)
        assert workshop.budget.taken == 0, "all memory comes back"


async def test_tensors_are_finished_for_each_kind_of_worker_once() -> None:
    async with _world() as world:
        media = world.media("30x2:a", "20x2:b")
        await media.begin()
        await media.worked()
        assert media.tokens == 5
        assert [offset for _, offset in media.places] == [1, 4]
        for engine, dtype in ((FLOATS, "float32"), (LEVELS, "uint8"), (HALVES, "bfloat16")):
            for _ in range(2):
                handed = await media.handed(engine, media.ids)
                assert isinstance(handed.media, TensorBatch)
                assert handed.media.pixels.dtype == dtype
                assert handed.ids is media.ids
                assert handed.media.ranges == media.ranges
        assert len(world.family.finished) == 3
        assert world.source.decodes == 2
        media.close()
        media.close()


async def test_answers_that_are_called_for_at_once_share_the_finished_tensors() -> None:
    async with _world() as world:
        media = world.media("30x2:a")
        await media.begin()
        handed = await asyncio.gather(*[media.handed(FLOATS, media.ids) for _ in range(8)])
        assert len({id(each.media) for each in handed}) == 1
        assert len(world.family.finished) == 1
        media.close()


async def test_an_engine_that_decodes_itself_gets_the_files_and_a_prompt_with_one_id_a_picture() -> (
    None
):
    async with _world() as world:
        media = world.media("30x2:a", "20x3:b", makes=False)
        await media.begin()
        await media.worked()
        handed = await media.handed(FILES, media.ids)
        assert handed.media == EncodedBatch((b"30x2:a", b"20x3:b"))
        assert list(handed.ids) == [1, PLACE, PLACE, 2]
        assert world.source.decodes == 0
        media.close()


async def test_an_answer_that_goes_on_keeps_its_ids_behind_either_form_of_the_prompt() -> None:
    async with _world() as world:
        media = world.media("30x2:a")
        await media.begin()
        ids = media.ids + token_ids([40, 41])
        assert (await media.handed(FLOATS, ids, done=2)).ids is ids
        files = await media.handed(FILES, ids, done=2)
        assert list(files.ids) == [1, PLACE, 2, 40, 41]
        media.close()


async def test_pictures_that_cannot_be_one_tensor_go_as_data_where_the_engine_reads_that() -> None:
    async with _world() as world:
        media = world.media("30x2:a", "30x3:b")
        await media.begin()
        handed = await media.handed(FLOATS, media.ids)
        assert isinstance(handed.media, ReferenceBatch)
        assert [each.url for each in handed.media.items] == [
            "data:image/png;base64,MzB4MjphE".rstrip("E"),
            "data:image/png;base64,MzB4MzpiE".rstrip("E"),
        ]
        assert list(handed.ids) == [1, PLACE, PLACE, 2]
        with pytest.raises(SmgError) as caught:
            await media.handed(HALVES, media.ids)
        assert refusal(caught.value) == (400, "unsupported_parameter", "messages[0].content[0]")
        media.close()


async def test_engines_that_are_to_fetch_get_urls_as_sent_where_they_take_such() -> None:
    async with _world() as world:
        media = world.media("30x2:a", where="engine")
        urls = card(media=MediaCard(frozenset({"references"}), schemes=frozenset({"https"})))
        for engine, url in ((urls, "https://x.test/0"), (FLOATS, "data:image/png;base64,MzB4Mjph")):
            handed = await media.handed(engine, media.ids)
            assert isinstance(handed.media, ReferenceBatch)
            assert handed.media.items[0].url == url
        media.close()


async def test_a_broken_picture_is_refused_at_its_path_before_a_worker_is_chosen() -> None:
    async with _world() as world:
        media = world.media("30x2:a", "30x2:b!")
        await media.begin()
        with pytest.raises(SmgError) as caught:
            await media.worked()
        assert refusal(caught.value) == (400, "invalid_image", "messages[1].content[0]")
        media.close()


async def test_memory_is_taken_for_new_pictures_only_and_others_are_told_to_wait() -> None:
    async with _world(most=600) as world:
        first, again, other = world.media("30x2:a"), world.media("30x2:a"), world.media("60x2:b")
        world.source.gate.clear()
        await first.begin()
        taken = world.workshop.budget.taken
        # The file, its pixels, those between and after the passes of resizing, and the patches.
        assert taken == len("30x2:a") + 3 * (30 * 2 + 2 + 1) + 60
        await again.begin()
        assert world.workshop.budget.taken == taken
        with pytest.raises(SmgError) as caught:
            await other.begin()
        assert caught.value.status == 429
        world.source.gate.set()
        await first.worked()
        first.close()
        await other.begin()
        await other.worked()
        for media in (again, other):
            media.close()


async def test_what_only_the_work_needs_is_given_back_before_the_answer_begins() -> None:
    async with _world(most=650) as world:
        media = world.media("30x2:a", "30x2:b")
        media.hold(7)
        await media.begin()
        await media.worked()
        assert world.workshop.budget.taken == 7 + 60 + 60, "files and patches are held"
        other = world.media("60x2:c")
        await other.begin()
        other.close()
        assert world.workshop.budget.taken == 7 + 60 + 60
        media.close()
        media.close()
        assert world.workshop.budget.taken == 0


async def test_workers_that_do_not_take_the_pictures_do_not_fit_and_say_why() -> None:
    async with _world() as world:
        media = world.media("30x2:a", "20x2:b")
        assert media.fits(FLOATS)
        assert media.fits(FILES)
        assert not media.fits(DEAF)
        assert media.why_not(DEAF) == "takes no pictures"
        one = card(media=MediaCard(frozenset({"tensors"}), items_max={"image": 1}))
        assert "at most 1 pictures" in media.why_not(one)
        small = card(media=MediaCard(frozenset({"tensors"}), tokens_max=2))
        assert "at most 2 tokens" in media.why_not(small)
        unknown = world.media("30x2:a", family=False)
        assert not unknown.fits(HALVES)
        assert unknown.fits(FILES)
        for each in (media, unknown):
            each.close()


async def test_what_has_been_said_something_to_lets_go_of_patches_and_tensors() -> None:
    async with _world() as world:
        media = world.media("30x2:a", "30x2:b")
        media.hold(7)
        await media.begin()
        await media.worked()
        first = await media.handed(FLOATS, media.ids)
        piece = _pixels(first).pieces[0]
        media.calls([0, 2], until_s=world.workshop.monotonic_s() + 10)
        held = 7 + 60 + 60 + 4 * 120
        assert world.workshop.budget.taken == held
        assert (await media.handed(FLOATS, media.ids, first=2)).media is first.media
        media.heard(0)
        assert world.workshop.budget.taken == held, "another call may have to be made again"
        media.heard(2)
        assert world.workshop.budget.taken == 7, "the files are held for a call that breaks"
        del first
        gc.collect()
        assert not [each for each in gc.get_referrers(piece) if isinstance(each, tuple)]
        media.close()


async def test_a_call_that_goes_on_has_its_pictures_made_again_and_waits_for_room() -> None:
    async with _world(most=1_000) as world:
        media = world.media("30x2:a")
        await media.begin()
        await media.worked()
        before = _pixels(await media.handed(FLOATS, media.ids)).pieces
        media.calls([0], until_s=world.workshop.monotonic_s() + 10)
        media.heard(0)
        world.kept.resize(0)
        world.workshop.budget.take(900)
        async with asyncio.TaskGroup() as group:
            again = group.create_task(media.handed(FLOATS, media.ids, done=0, first=0))
            await until(lambda: world.workshop.budget.waiting == 1)
            assert world.source.decodes == 1
            world.workshop.budget.give(900)
        assert _pixels(again.result()).pieces == before
        assert world.source.decodes == 2
        assert world.workshop.budget.taken == 60 + 4 * 60
        media.heard(0)
        assert world.workshop.budget.taken == 0
        media.close()


async def test_patches_that_are_kept_anyway_are_not_made_again_for_a_call_that_goes_on() -> None:
    async with _world() as world:
        media = world.media("30x2:a")
        await media.begin()
        await media.worked()
        for _ in range(3):
            await media.handed(LEVELS, media.ids)
            media.heard(0)
        assert world.source.decodes == 1
        media.close()


async def test_a_request_that_is_not_to_be_lost_waits_for_room_and_others_do_not() -> None:
    async with _world(most=700) as world:
        world.workshop.budget.take(690)
        hurried, patient = world.media("30x2:a"), world.media("20x2:b")
        with pytest.raises(SmgError) as caught:
            await hurried.begin()
        assert caught.value.status == 429
        patient.patient_until_s = world.workshop.monotonic_s() + 10
        async with asyncio.TaskGroup() as group:
            group.create_task(patient.begin())
            await until(lambda: world.workshop.budget.waiting == 1)
            world.workshop.budget.give(690)
        await patient.worked()
        # What an origin sends has nowhere to wait; more than a request may have is refused all the same.
        world.workshop.budget.take(600)
        patient.hold(100)
        with pytest.raises(SmgError) as caught:
            patient.hold(700)
        assert caught.value.status == 413
        world.workshop.budget.give(600)
        for each in (hurried, patient):
            each.close()


async def test_of_many_pictures_no_more_work_is_charged_than_is_under_way_at_a_time() -> None:
    async with _world() as world:
        files = [f"30x{high}:a" for high in range(1, 9)]
        media = world.media(*files)
        await media.begin()
        patches = sum(30 * high for high in range(1, 9))
        largest = [len("30x8:a") + 3 * (30 * high + high + 1) for high in (8, 7)]
        assert world.workshop.budget.taken == patches + sum(largest), "there are two threads"
        await media.worked()
        assert world.workshop.budget.taken == patches
        media.close()


def _pixels(handed: Handed) -> Tensor:
    assert isinstance(handed.media, TensorBatch)
    return handed.media.pixels
