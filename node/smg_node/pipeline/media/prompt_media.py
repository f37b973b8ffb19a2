"""Prompt media: the pictures of one prompt, from their plans to what the chosen engine is handed.

Belongs to one generation, which begins the work, waits for it before a worker is chosen, has the result finished for
each worker that is called, and closes it in the end: then its work stops and its memory is given back.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import MediaPart, TokenIds
from smg_node.engines.engine import ModelCard
from smg_node.media.engine_media import (
    EncodedBatch,
    EngineMedia,
    MediaRange,
    MediaReference,
    ReferenceBatch,
    TensorBatch,
)
from smg_node.media.family import Family, FinishedFor, PicturePlan
from smg_node.media.pixels.arena import Arenas, owned
from smg_node.pipeline.media.byte_budget import ByteBudget
from smg_node.pipeline.media.media_meters import MediaMeters, Stage
from smg_node.pipeline.media.media_options import Where
from smg_node.pipeline.media.media_ways import Way, known, takes, ways_of
from smg_node.pipeline.media.picture_source import SentPicture
from smg_node.pipeline.media.picture_works import PictureWork, PictureWorks

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

_CHANNELS = 3
_QUICK_BYTES: Final = 16_777_216
"""Of 8-bit values that are put together at once, as they are."""


class PlannedPicture(msgspec.Struct, frozen=True):
    """A picture of a prompt: its part, its file, and what becomes of it.

    `plan` is None and `digest` "" where the node does not know the model's family.
    """

    part: MediaPart
    sent: SentPicture
    plan: PicturePlan | None
    digest: str


class Handed(msgspec.Struct, frozen=True):
    """What an engine is handed for a prompt with pictures: ids as it wants them, and the pictures."""

    ids: TokenIds
    media: EngineMedia
    way: Way


@dataclass(frozen=True, slots=True)
class MediaWorkshop:
    """What all prompts with pictures share: the threads, the works in them, and the memory they may take."""

    threads: Executor
    works: PictureWorks
    budget: ByteBudget
    meters: MediaMeters
    arenas: Arenas
    monotonic_s: Callable[[], float]


@dataclass(slots=True, eq=False)
class PromptMedia:
    """The pictures of one prompt. Used on the loop.

    `ids` are the prompt's with the places of pictures in it, `plain_ids` those before: one id a picture. Without a
    `family` both are the same, and only the engine knows how many places a picture has.
    """

    workshop: MediaWorkshop
    family: Family | None
    pictures: Sequence[PlannedPicture]
    ids: TokenIds
    plain_ids: TokenIds
    ranges: tuple[MediaRange, ...]
    where: Where
    makes: bool = True
    """Whether tensors are made before a worker is chosen, because some worker is handed those."""
    way: Way | None = None
    """How the last engine was handed them; None before."""
    _works: list[PictureWork] = field(default_factory=list)
    _makings: list["Making"] = field(default_factory=list)
    _taken: int = 0
    _scratch: int = 0
    """What of it only the work needs, until it is over."""
    _finished: dict[FinishedFor, TensorBatch | None] = field(default_factory=dict)
    _finishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _closed: bool = False

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """Digest and first place of each picture in `ids`, for caches of prefixes."""
        return tuple([(each.digest, each.offset) for each in self.ranges])

    @property
    def tokens(self) -> int:
        """How many places of features all pictures have in the prompt; 0 where that is not known."""
        return sum([each.tokens for each in self.ranges])

    def why_not(self, card: ModelCard) -> str:
        """Return why an engine of that card cannot be handed them, "" if it can."""
        return takes(
            card,
            family=known(self.family),
            where=self.where,
            items=len(self.pictures),
            tokens_max=max([each.tokens for each in self.ranges], default=0),
        )

    def fits(self, card: ModelCard) -> bool:
        """Whether an engine of that card can be handed them."""
        return not self.why_not(card)

    # ── The work ─────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Begin the work on all pictures, if an engine is handed tensors; SmgError where the memory for it cannot be had."""
        assert not self._works, "it is begun once"
        if self.family is not None and self.makes:
            with self.workshop.meters.refusals():
                self._begin()

    def _begin(self) -> None:
        works, fresh = self.workshop.works, {}
        for each in self.pictures:
            if not works.known(each.digest):
                fresh[each.digest] = each
        scratch = sum([_scratch_bytes(each) for each in fresh.values()])
        self._take(scratch + sum([_patch_bytes(each) for each in fresh.values()]))
        self._scratch = scratch
        for each in self.pictures:
            making = self._making(each)
            self._makings.append(making)
            self._works.append(works.begin(each.digest, making))

    async def worked(self) -> None:
        """Return when all pictures are made; SmgError with the path of one that cannot be."""
        with self.workshop.meters.refusals():
            for work, each in zip(self._works, self.pictures, strict=False):
                await work.patches(each.part.where)
        self._made()

    def _made(self) -> None:
        """Give back what the work needed, which is over, and tell how long it took."""
        self.workshop.budget.give(self._scratch)
        self._taken -= self._scratch
        self._scratch = 0
        self._tell_times()

    def _tell_times(self) -> None:
        for making in self._makings:
            for stage, seconds in making.times:
                self.workshop.meters.took(stage, seconds)
        self._makings.clear()

    def hold(self, size: int) -> None:
        """Take memory for files that were fetched; SmgError where it cannot be had."""
        self._take(size)

    def _take(self, size: int) -> None:
        self.workshop.budget.take(size, self._taken)
        self._taken += size

    def _making(self, each: PlannedPicture) -> "Making":
        family, plan = self.family, each.plan
        assert family is not None, "tensors are made by a family"
        assert plan is not None, "which has planned them"
        return Making(family, plan, each.sent, self.workshop)

    # ── For one engine ───────────────────────────────────────────────────────

    async def handed(self, card: ModelCard, ids: TokenIds, done: int = 0) -> Handed:
        """Return what an engine of that card is handed; `ids` are the call's, of which the last `done` are answer.

        INVALID_REQUEST where it cannot be handed these pictures together.
        """
        assert not self._closed, "nobody calls an engine afterwards"
        assert card.media is not None, "engines that take none are not chosen"
        for way in ways_of(card.media, family=known(self.family), where=self.where):
            media = await self._as(way, card)
            if media is not None:
                self.way = way
                return Handed(ids if way == "tensors" else self._plain(ids, done), media, way)
        raise unsupported(
            "this model cannot be handed pictures of different sizes in one request",
            self.pictures[0].part.where,
        )

    def sent(self, handed: Handed) -> None:
        """Count what an engine is sent now."""
        self.workshop.meters.handed(handed.way, len(self.pictures))

    async def _as(self, way: Way, card: ModelCard) -> EngineMedia | None:
        if way == "tensors":
            return await self._tensors(card)
        if way == "encoded":
            return EncodedBatch(tuple([each.sent.data for each in self.pictures]))
        assert card.media is not None, "see `handed`"
        as_sent = card.media.schemes if self.where == "engine" else frozenset()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.workshop.threads, self._references, as_sent)

    def _references(self, as_sent: frozenset[str]) -> ReferenceBatch:
        """Return the pictures for an engine that reads them itself, URLs of some schemes as they were sent.

        In a thread, as files become texts. INVALID_REQUEST for one whose file only the engine could have got.
        """
        found = []
        for each in self.pictures:
            part = each.part
            if part.source.partition(":")[0].lower() in as_sent:
                url = part.source
            elif each.sent.data:
                url = each.sent.url()
            else:
                raise unsupported("the engines of this model fetch no URL of that kind", part.where)
            found.append(MediaReference("image", url, part.where))
        return ReferenceBatch(tuple(found))

    def _plain(self, ids: TokenIds, done: int) -> TokenIds:
        """Return the ids of a call for an engine that finds places for pictures itself."""
        return self.plain_ids + ids[len(ids) - done :] if done else self.plain_ids

    async def _tensors(self, card: ModelCard) -> TensorBatch | None:
        """Return the pictures as tensors; None where those of different sizes cannot be in one."""
        assert card.media is not None, "see `handed`"
        wanted = FinishedFor(card.media.dtype, card.media.device_normalizes)
        # Answers of one request are called for at the same time.
        async with self._finishing:
            if wanted not in self._finished:
                if not self._works:
                    self._begin()
                self._finished[wanted] = await self._finish(wanted)
            return self._finished[wanted]

    async def _finish(self, wanted: FinishedFor) -> TensorBatch | None:
        family, plans, patches = self.family, [], []
        assert family is not None, "tensors are made by a family"
        for work, each in zip(self._works, self.pictures, strict=True):
            assert each.plan is not None, "it was planned with the family"
            plans.append(each.plan)
            patches.append(await work.patches(each.part.where))
        loop, began_s = asyncio.get_running_loop(), self.workshop.monotonic_s()
        if (
            wanted.device_normalizes
            and sum([_patch_bytes(each) for each in self.pictures]) <= _QUICK_BYTES
        ):
            # Nothing is computed, and little copied.
            batch = family.batch(plans, patches, self.ranges, wanted)
        else:
            batch = await loop.run_in_executor(
                self.workshop.threads, family.batch, plans, patches, self.ranges, wanted
            )
        self.workshop.meters.took("finish", self.workshop.monotonic_s() - began_s)
        self._made()
        if batch is not None and not wanted.device_normalizes and not self._closed:
            # It cannot be refused any more, but others can.
            self._taken += batch.pixels.size
            self.workshop.budget.add(batch.pixels.size)
        return batch

    def close(self) -> None:
        """Stop what is under way, and give the memory back; harmless the second time."""
        self._closed = True
        for work in self._works:
            work.leave()
        self._works.clear()
        self._finished.clear()
        self.workshop.budget.give(self._taken)
        self._taken = self._scratch = 0


class Making(msgspec.Struct):
    """The work on one picture: decoded, resized and put in the model's order, in a thread. `times` are its stages'."""

    family: Family
    plan: PicturePlan
    sent: SentPicture
    workshop: MediaWorkshop
    times: list[tuple[Stage, float]] = msgspec.field(default_factory=list)

    def __call__(self) -> "Pixels":
        """Return the patches; INVALID_REQUEST for a file that cannot be decoded."""
        monotonic_s = self.workshop.monotonic_s
        began_s = monotonic_s()
        with self.workshop.arenas.working(began_s):
            picture = self.sent.decoded()
            decoded_s = monotonic_s()
            patches = owned(self.family.patches(picture, self.plan))
        self.times = [("decode", decoded_s - began_s), ("patches", monotonic_s() - decoded_s)]
        return patches


def _scratch_bytes(each: PlannedPicture) -> int:
    """Return what only the work on a picture takes: its file as it is read, its pixels, and what is resized and cut away.

    Where a family cuts most of what it has resized away, a needle that was enlarged is more than its patches.
    """
    plan = each.plan
    assert plan is not None, "it was planned with the family"
    resized = _CHANNELS * plan.columns * plan.rows
    cut_away = max(resized - _patch_bytes(each), 0)
    return len(each.sent.data) + _CHANNELS * plan.width * plan.height + cut_away


def _patch_bytes(each: PlannedPicture) -> int:
    """Return what the patches of a picture take, for as long as it may have to be handed to an engine."""
    plan = each.plan
    assert plan is not None, "it was planned with the family"
    patches = 1
    for length in plan.shape:
        patches *= length
    return patches
