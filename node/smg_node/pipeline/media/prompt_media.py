"""Prompt media: pictures, videos and sound of one prompt, from their plans to what the chosen engine is handed.

Belongs to one generation, which begins the work, waits for it before a worker is chosen, has the result finished for
each worker that is called, and closes it in the end: then its work stops and its memory is given back.

Patches and tensors are held until each call of the request has said something: its engine has read the message then, and
until then it may have to be sent again. Afterwards only the files are held. A call that breaks in the middle of its
answer goes on with patches that are kept for the next turn of its chat, or are made again; if the memory for that is
taken it waits in line, as its answer cannot be refused any more.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import MediaKind, TokenIds
from smg_node.engines.engine import ModelCard
from smg_node.media.clips import plain_url
from smg_node.media.engine_media import (
    EncodedBatch,
    EngineMedia,
    MediaRange,
    MediaReference,
    ReferenceBatch,
    TensorBatch,
)
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.video.clip import ClipPlan
from smg_node.pipeline.media.making.picture_bytes import (
    at_once,
    patch_bytes,
    tensor_bytes,
)
from smg_node.pipeline.media.making.picture_making import (
    Making,
    MediaWorkshop,
    PlannedPicture,
    bytes_at_work,
    planned,
)
from smg_node.pipeline.media.making.picture_works import PictureWork, PictureWorks
from smg_node.pipeline.media.media_options import Where
from smg_node.pipeline.media.media_ways import Way, count_kinds, known_to, takes, ways_of
from smg_node.pipeline.media.rule_groups import SAME

if TYPE_CHECKING:
    from smg_node.pipeline.media.making.clip_works import ClipMaking
    from smg_node.pipeline.media.media_ways import Maker

_QUICK_BYTES: Final = 16_777_216
"""Of 8-bit values that are put together at once, as they are."""
PATIENCE_S: Final = 30.0
"""How long room is waited for at most: many times as long as any picture is worked on."""


class Handed(msgspec.Struct, frozen=True):
    """What an engine is handed for a prompt with media: ids as it wants them, and the media."""

    ids: TokenIds
    media: EngineMedia
    way: Way


@dataclass(slots=True, eq=False)
class PromptMedia:
    """The media of one prompt, `pictures` of all kinds. Used on the loop.

    `ids` are the prompt's with the places of pictures in it, `plain_ids` those before: one id a picture. Without a
    `family`, as for prompts with media that this node makes no tensors of, both are the same, and only the engine
    knows how many places each has.
    """

    workshop: MediaWorkshop
    family: "Maker | None"
    pictures: Sequence[PlannedPicture]
    ids: TokenIds
    plain_ids: TokenIds
    ranges: tuple[MediaRange, ...]
    where: Where
    makes: bool = True
    """Whether tensors are made before a worker is chosen, because some worker is handed those."""
    handed_on: frozenset[MediaKind] = frozenset()
    """The kinds whose URLs an engine is handed as they were sent."""
    cards: Sequence[ModelCard] = ()
    """Those of the workers that there were when it was taken in."""
    patient_until_s: float = 0.0
    """Until when on the monotonic clock it waits for room, instead of being refused; 0 for not at all."""
    way: Way | None = None
    """How the last engine was handed them; None before."""
    files: frozenset[str] = SAME
    """Of the workers that the family is of (`MediaCard.rules`): others are handed no tensors."""
    _again_until_s: float = 0.0
    """The same for what is made when calls are under way."""
    _unheard: set[int] = field(default_factory=set)
    """Calls that have not said anything yet, by the number of their first answer."""
    _works: list[PictureWork] = field(default_factory=list)
    _makings: "list[Making | ClipMaking]" = field(default_factory=list)
    _makers: dict[str, str] = field(default_factory=dict)
    """Who made patches first, by digest."""
    _taken: int = 0
    _files: int = 0
    """What of it are texts and files, which are held to the end."""
    _scratch: int = 0
    """What of it only the work needs, until it is over."""
    _finished: dict[FinishedFor, TensorBatch | None] = field(default_factory=dict)
    _referred: dict[frozenset[str], ReferenceBatch] = field(default_factory=dict)
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

    def maker(self, each: PlannedPicture) -> str:
        """Return who made the patches of a medium; see `Viewed`."""
        return self._makers.get(each.digest, "")

    @property
    def counts(self) -> dict[MediaKind, int]:
        """How many there are of each kind, in the order in which they first come."""
        return count_kinds([each.part for each in self.pictures])

    def why_not(self, card: ModelCard) -> str:
        """Return why an engine of that card cannot be handed them, "" if it can."""
        return takes(
            card,
            family=known_to(card, self.family, self.files, self.counts),
            where=self.where,
            counts=self.counts,
            tokens_max=max([each.tokens for each in self.ranges], default=0),
        )

    def fits(self, card: ModelCard) -> bool:
        """Whether an engine of that card can be handed them."""
        return not self.why_not(card)

    # ── The work ─────────────────────────────────────────────────────────────

    async def begin(self) -> None:
        """Begin the work on all pictures, if an engine is handed tensors; SmgError where the memory for it cannot be had."""
        assert not self._works, "it is begun once"
        if self.family is not None and self.makes:
            with self.workshop.meters.refusals():
                await self._begin(self.patient_until_s)

    async def _begin(self, until_s: float) -> None:
        scratch, patches = self._needed()
        await self.take(scratch + patches, until_s)
        self._scratch += scratch
        if until_s:
            # What was kept may have gone meanwhile.
            again = self._needed()
            self._add(max(sum(again) - scratch - patches, 0))
            self._scratch += max(again[0] - scratch, 0)
        all_works = self._all_works()
        for each in self.pictures:
            self._makers.setdefault(each.digest, all_works.state(each.digest))
            making = self._making(each)
            self._makings.append(making)
            self._works.append(all_works.begin(each.digest, making))

    def _needed(self) -> tuple[int, int]:
        """Return what the work on those pictures takes that are neither kept nor under way, and what is left of it."""
        known, patches = self._all_works().known, 0
        works: dict[str, int] = {}
        for each in self.pictures:
            if each.digest not in works and not known(each.digest):
                works[each.digest] = bytes_at_work(each)
                patches += patch_bytes(planned(each))
        pictures = self.family is not None and self.family.modality == "image"
        together = self.workshop.threads.count if pictures else len(works)
        return at_once(works.values(), together), patches

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

    async def hold_texts(self, size: int) -> None:
        """Take memory for what stands in the request; SmgError where it cannot be had."""
        await self.take(size, self.patient_until_s)
        self._files += size

    def hold(self, size: int) -> None:
        """Take memory for files; SmgError where it cannot be had.

        Who has waited for room already goes on: nobody can wait in the middle of what an origin sends.
        """
        budget = self.workshop.budget
        if self.patient_until_s:
            budget.check(size, self._taken)
            self._add(size)
        else:
            budget.take(size, self._taken)
            self._taken += size
        self._files += size

    def _add(self, size: int) -> None:
        """Take memory although it may not be there: this request cannot be refused any more, but others can."""
        self.workshop.budget.add(size)
        self._taken += size

    async def take(self, size: int, until_s: float) -> None:
        """Take memory, waiting for it until then, 0 for not at all; SmgError where it cannot be had."""
        budget = self.workshop.budget
        if until_s:
            patience_s = min(until_s - self.workshop.monotonic_s(), PATIENCE_S)
            await budget.take_in_line(size, self._taken, patience_s)
        else:
            budget.take(size, self._taken)
        self._taken += size

    def _all_works(self) -> PictureWorks:
        assert self.family is not None, "tensors are made by a family"
        return (
            self.workshop.works if self.family.modality == "image" else self.workshop.clips().works
        )

    def _making(self, each: PlannedPicture) -> "Making | ClipMaking":
        family, plan = self.family, each.plan
        assert family is not None, "tensors are made by a family"
        if family.modality == "image":
            assert isinstance(plan, PicturePlan), "which has planned them"
            return Making(family, plan, each.sent, self.workshop)
        assert isinstance(plan, ClipPlan), "which has planned them"
        return self.workshop.clips().making(each.sent.data, plan, family)

    # ── For one engine ───────────────────────────────────────────────────────

    async def handed(self, card: ModelCard, ids: TokenIds, done: int = 0, first: int = 0) -> Handed:
        """Return what an engine of that card is handed; `ids` are the call's, of which the last `done` are answer.

        `first` is the number of the call's first answer. INVALID_REQUEST where it cannot be handed these pictures
        together.
        """
        assert not self._closed, "nobody calls an engine afterwards"
        self._unheard.add(first)
        assert card.media is not None, "engines that take none are not chosen"
        counts = self.counts
        family = known_to(card, self.family, self.files, counts)
        for way in ways_of(card.media, family=family, where=self.where, kinds=counts):
            media = await self._as(way, card)
            if media is not None:
                self.way = way
                return Handed(ids if way == "tensors" else self._plain(ids, done), media, way)
        raise unsupported(
            "this model cannot be handed pictures of different sizes in one request",
            self.pictures[0].part.where,
        )

    def calls(self, firsts: Iterable[int], until_s: float) -> None:
        """Note which calls there will be, by the numbers of their first answers, and until when they may take."""
        self._unheard.update(firsts)
        self._again_until_s = until_s

    def sent(self, handed: Handed) -> None:
        """Count what an engine is sent now."""
        self.workshop.meters.handed(handed.way, self.counts)

    def heard(self, first: int) -> None:
        """Note that a call has said something; when all have, patches and tensors are let go of."""
        self._unheard.discard(first)
        if not self._unheard and not self._closed:
            self._let_go()

    async def _as(self, way: Way, card: ModelCard) -> EngineMedia | None:
        if way == "tensors":
            return await self._tensors(card)
        if way == "encoded":
            return EncodedBatch(tuple([each.sent.data for each in self.pictures]))
        assert card.media is not None, "see `handed`"
        schemes = card.media.schemes
        # Answers of one request are called for at the same time.
        async with self._finishing:
            if schemes not in self._referred:
                loop = asyncio.get_running_loop()
                batch = await loop.run_in_executor(self.workshop.threads, self._references, schemes)
                self._referred[schemes] = batch
                self._hold_texts(batch)
            return self._referred[schemes]

    def _references(self, schemes: frozenset[str]) -> ReferenceBatch:
        """Return the media for an engine that reads them itself, and takes URLs of these schemes.

        In a thread, as files become texts. INVALID_REQUEST for one whose file only the engine could have got.
        """
        found = []
        for each in self.pictures:
            part = each.part
            assert part.kind != "file", "what files are was found before"
            if self._goes_as_sent(each, schemes):
                url = plain_url(part.source)
            elif each.sent.data:
                url = each.sent.url(part.kind)
            else:
                raise unsupported("the engines of this model fetch no URL of that kind", part.where)
            found.append(MediaReference(part.kind, url, part.where))
        return ReferenceBatch(tuple(found))

    def _goes_as_sent(self, each: PlannedPicture, schemes: frozenset[str]) -> bool:
        part = each.part
        scheme = part.source.partition(":")[0].lower()
        if self.where == "engine" or part.kind in self.handed_on:
            return scheme in schemes
        return scheme == "data" and scheme in schemes and not each.sent.data

    def _hold_texts(self, batch: ReferenceBatch) -> None:
        """Hold the memory of files that became texts; the prompt cannot be refused any more, but others can."""
        made = sum(
            [
                len(item.url)
                for item, each in zip(batch.items, self.pictures, strict=True)
                if each.sent.data
            ]
        )
        if not self._closed:
            self._add(made)
            self._files += made

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
                    await self._begin(self._again_until_s or self.patient_until_s)
                self._finished[wanted] = await self._finish(wanted)
            return self._finished[wanted]

    async def _finish(self, wanted: FinishedFor) -> TensorBatch | None:
        plans: list[Any] = []
        family, patches = self.family, []
        assert family is not None, "tensors are made by a family"
        for work, each in zip(self._works, self.pictures, strict=True):
            plans.append(planned(each))
            patches.append(await work.patches(each.part.where))
        loop, began_s = asyncio.get_running_loop(), self.workshop.monotonic_s()
        if not wanted.device_normalizes and not self._closed:
            self._add(tensor_bytes(plans, wanted.dtype))
        if wanted.device_normalizes and sum(map(patch_bytes, plans)) <= _QUICK_BYTES:
            # Nothing is computed, and little copied.
            batch = family.batch(plans, patches, self.ranges, wanted)
        else:
            batch = await loop.run_in_executor(
                self.workshop.threads, family.batch, plans, patches, self.ranges, wanted
            )
        self.workshop.meters.took("finish", self.workshop.monotonic_s() - began_s)
        self._made()
        return batch

    def _let_go(self) -> None:
        """Give back all but what files take."""
        for work in self._works:
            work.leave()
        self._works.clear()
        self._finished = {kind: None for kind, batch in self._finished.items() if batch is None}
        self._tell_times()
        self.workshop.budget.give(self._taken - self._files)
        self._taken, self._scratch = self._files, 0

    def close(self) -> None:
        """Stop what is under way, and give the memory back; harmless the second time."""
        self._closed = True
        self._let_go()
        self._finished.clear()
        self._referred.clear()
        self.workshop.budget.give(self._taken)
        self._taken = self._files = 0
