"""Media intake: a conversation's pictures, videos and sound, from what was sent to plans and places in the prompt.

What the model and its workers can take is checked before anything is fetched, and so is whether the prompt has a place
for each of them. Then come the files, several at a time, and their sizes; the work on their pixels is begun by the
generation that has them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from smg_node.core.errors import SmgError, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaPart,
    TokenIds,
    token_ids,
)
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.expand import expand
from smg_node.pipeline.media.asked_media import (
    AskedMedia,
    are_clips,
    are_quick,
    asked_of,
    check_workers,
    first_places,
    forms_of,
    is_fetched,
    is_got,
    is_unknown_picture,
    is_web,
    makes_tensors,
    only_pictures,
    same_when_turned,
    weight_of,
)
from smg_node.pipeline.media.making.picture_bytes import text_bytes
from smg_node.pipeline.media.making.picture_making import MediaWorkshop, PlannedPicture
from smg_node.pipeline.media.making.picture_works import error_at
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_ways import count_kinds, known
from smg_node.pipeline.media.picture_source import PictureSource, SentPicture
from smg_node.pipeline.media.prompt_media import PromptMedia
from smg_node.pipeline.media.prompt_places import check_places, placed_media
from smg_node.pipeline.media.rule_groups import (
    ClipMakers,
    RuleGroup,
    clip_makers,
    disagreement,
    group_for,
    groups_of,
    rules_of,
)
from smg_node.prompts.media_forms import check_kinds, not_seen, ordered_media

if TYPE_CHECKING:
    from smg_node.media.video.clip_family import ClipFamily
    from smg_node.pipeline.media.media_ways import Maker

T = TypeVar("T")

_log = logging.getLogger("smg_node.pipeline")

_TOLD_MAX: Final = 64
"""Disagreements of workers that are remembered as told."""


class MediaIntake:
    """Takes the pictures of conversations in."""

    def __init__(
        self,
        options: Callable[[], MediaOptions],
        cards: Callable[[ServedModel], Sequence[ModelCard]],
        source: PictureSource,
        workshop: MediaWorkshop,
        ready: Callable[[ServedModel], Sequence[ModelCard]] | None = None,
    ) -> None:
        """`cards` are those of the workers that serve a model now, `ready` of those that may be given work, if known."""
        self._options = options
        self._cards = cards
        self._source = source
        self._workshop = workshop
        self._ready = ready or cards
        self._told: set[tuple[str, ...]] = set()
        """Models whose workers' rules differ, and how, of which the log was told."""

    async def asked(
        self, prompt: ChatPrompt, model: ServedModel, tenant: str | None = None
    ) -> AskedMedia:
        """Return the media of a conversation; INVALID_REQUEST at the first that the model or its workers do not take.

        Nothing has been fetched then. `tenant` is whose conversation it is, None where that is not known.
        """
        with self._workshop.meters.refusals():
            return await self._asked(prompt, model, tenant)

    async def _asked(
        self, prompt: ChatPrompt, model: ServedModel, tenant: str | None
    ) -> AskedMedia:
        parts = ordered_media(prompt.turns)
        cards, options = self._cards(model), self._options()
        # Models that a worker says see nothing are not looked into.
        group = await self._group(model, cards, parts, options)
        if group is None:
            raise not_seen(parts[0], model.name)
        forms = forms_of(group)
        if forms is None or is_unknown_picture(parts, forms, group):
            raise unsupported(
                f"this node does not know how pictures are shown to {model.name!r}: {group.why_not}",
                parts[0].where,
            )
        check_kinds(parts, forms, model.name)
        maker: Maker | None = group.family
        if are_clips(parts, options):
            found = await self._in_thread(partial(clip_makers, group, model.tokenizer))
            maker, group = found.maker, found.group
        if known(maker, count_kinds(parts)) == "no":
            maker = None
        asked = asked_of(parts, forms, group, maker, model, cards, options, tenant)
        why = group.why_no_clips if parts[0].kind == "video" else group.why_not
        check_workers(asked, model.name, why, tokens_max=0)
        return asked

    async def _group(
        self,
        model: ServedModel,
        cards: Sequence[ModelCard],
        parts: Sequence[MediaPart],
        options: MediaOptions,
    ) -> RuleGroup | None:
        """Return whose rules the pictures of a prompt follow; None where no worker has any."""
        found = rules_of(model, cards)
        if not found:
            return None
        if all(rules.known for rules in found):
            groups = groups_of(found, model.tokenizer)
        else:
            groups = await self._in_thread(partial(groups_of, found, model.tokenizer))
        if len(groups) == 1:
            return groups[0]
        self._tell(model.name, groups)
        clips: dict[str, ClipMakers] = {}
        if are_clips(parts, options):
            for each in groups:
                makers = partial(clip_makers, each, model.tokenizer)
                clips[each.name] = await self._in_thread(makers)
        ready, counts = self._ready(model), count_kinds(parts)
        return group_for(
            groups, parts, lambda group: weight_of(group, clips, ready, options, counts)
        )

    def _tell(self, model: str, groups: Sequence[RuleGroup]) -> None:
        """Say once in the log that workers of a model differ."""
        told = (model, *[group.name for group in groups])
        if told not in self._told:
            if len(self._told) >= _TOLD_MAX:
                self._told.clear()
            self._told.add(told)
            _log.warning(
                "workers of the model %s prepare pictures differently, so each prompt with pictures goes to those"
                " that agree: %s",
                model,
                disagreement(groups),
            )

    async def media(
        self,
        asked: AskedMedia,
        ids: TokenIds,
        model: str,
        patient_until_s: float = 0.0,
        *,
        counted: bool = False,
    ) -> PromptMedia:
        """Return the pictures of a prompt of `ids`, which has one id for each; whoever has them closes them.

        INVALID_REQUEST with the path of a picture that cannot be had or is not taken, or where the prompt has more or
        fewer places than pictures. Their files are charged to the memory of all pictures under way; if that is taken
        it is waited for until `patient_until_s`, where that is not 0. Those that are only `counted` can never be begun:
        of what is fetched for them no more is read than says their sizes.
        """
        media = self._empty(asked, ids)
        media.patient_until_s = patient_until_s
        with self._workshop.meters.refusals():
            await self._fill(media, asked, model, counted=counted)
        return media

    async def _fill(
        self, media: PromptMedia, asked: AskedMedia, model: str, *, counted: bool
    ) -> None:
        """Get the media of a prompt and find their places; closes it where that fails."""
        ids, family = media.ids, asked.family
        check_places(ids, asked.parts, asked.forms, asked.tokens)
        try:
            media.pictures = await self._pictures(asked, media, counted=counted)
            if family is not None:
                anchor = asked.tokens.token_id(family.anchor)
                assert anchor is not None, "a family's anchor is a token of its vocabulary"
                place = partial(placed_media, media.pictures, family, asked.tokens)
                # The prompts of clips are texts, of which a long one has hundreds.
                clips = family.modality == "video"
                placed = await self._in_thread(place) if clips else place()
                media.ids, media.ranges = expand(ids, anchor, placed)
                largest = max(each.tokens for each in media.ranges)
                check_workers(asked, model, "", tokens_max=largest)
        except BaseException:
            media.close()
            raise

    async def shown(
        self,
        model: ServedModel,
        urls: Sequence[str],
        where: str,
        beside: int = 0,
        tenant: str | None = None,
    ) -> list[str]:
        """Return those of some data URLs that are pictures and can be shown to the model now; they are made by then.

        For pictures that no client sent: whoever is not shown one is told of it in words. `where` is what asked for them,
        `beside` how many other pictures its request has, `tenant` whose it is, None where that is not known.
        """
        cards, options = self._cards(model), self._options()
        if not cards or not urls:
            return []
        first = [MediaPart("image", urls[0], where)]
        group = await self._group(model, cards, first, options)
        forms = None if group is None else forms_of(group)
        if group is None or group.family is None or forms is None:
            return []
        found: list[str] = []
        for url in urls:
            parts = [MediaPart("image", url, where)]
            asked = asked_of(parts, forms, group, group.family, model, cards, options, tenant)
            if await self._is_shown(asked, model.name, beside + len(found)):
                found.append(url)
        return found

    async def _is_shown(self, asked: AskedMedia, model: str, beside: int) -> bool:
        media = self._empty(asked, token_ids())
        try:
            media.pictures = await self._pictures(asked, media)
            plan = media.pictures[0].plan
            tokens = 0 if plan is None else plan.tokens
            check_workers(asked, model, "", tokens_max=tokens, beside=beside)
            await media.begin()
            await media.worked()
        except SmgError:
            return False
        finally:
            media.close()
        return True

    def _empty(self, asked: AskedMedia, ids: TokenIds) -> PromptMedia:
        """Return the media of a prompt of `ids` before their files are there."""
        options = asked.options
        handed_on = frozenset(part.kind for part in asked.parts if options.hands_on(part.kind))
        media = PromptMedia(
            self._workshop,
            asked.family,
            (),
            ids,
            ids,
            (),
            options.where,
            makes_tensors(asked),
            handed_on,
            asked.cards,
        )
        media.files = asked.files
        return media

    # ── Files ────────────────────────────────────────────────────────────────

    async def _pictures(
        self, asked: AskedMedia, media: PromptMedia, *, counted: bool = False
    ) -> list[PlannedPicture]:
        """Return all media with their files and plans; those that are sent several times are got once."""
        await media.hold_texts(text_bytes(asked.parts))
        firsts = first_places(asked.parts)
        places = sorted(set(firsts))
        wanted = [at for at in places if is_got(asked.parts[at], asked)]
        await self._look_at([asked.parts[at] for at in places if at not in wanted], asked)
        alike = partial(same_when_turned, asked) if counted and only_pictures(asked) else None
        got = await self._files([asked.parts[at] for at in wanted], media, asked.tenant, alike)
        files = dict(zip(wanted, got, strict=True))
        clips = asked.family is not None and asked.family.modality == "video"
        if not clips and are_quick(got):
            planned: dict[int, PlannedPicture] = {}
            for at in places:
                began_s = self._workshop.monotonic_s()
                planned[at] = self._planned(asked.parts[at], files.get(at), asked)
                self._tell_time(planned[at], began_s)
        else:
            planned = await self._planned_beside(asked, places, files)
        return [
            planned[first] if part is asked.parts[first] else replace(planned[first], part=part)
            for first, part in zip(firsts, asked.parts, strict=True)
        ]

    async def _planned_beside(
        self, asked: AskedMedia, places: Sequence[int], files: Mapping[int, bytes]
    ) -> dict[int, PlannedPicture]:
        """Return what was planned of each picture, in threads."""
        tasks: dict[int, asyncio.Task[PlannedPicture]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for at in places:
                    part, data, family = asked.parts[at], files.get(at), asked.family
                    if data is not None and family is not None and family.modality == "video":
                        coming = self._planned_clip(part, data, family, asked)
                    else:
                        coming = self._planned_in_thread(partial(self._planned, part, data, asked))
                    tasks[at] = group.create_task(coming)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  # its own cause is what tells why
        return {at: task.result() for at, task in tasks.items()}

    async def _look_at(self, parts: Sequence[MediaPart], asked: AskedMedia) -> None:
        """Check media whose source is handed to the engine as it was sent."""
        # What else an engine fetches, such as files, it was told to by its operator.
        other = asked.options.where == "engine"
        urls = [part for part in parts if is_fetched(part) and not (other and not is_web(part))]
        if urls:
            await self._source.check_handed_on(urls)
        for part in parts:
            if not is_fetched(part):
                size = await self._source.check_clip(part)
                self._workshop.meters.got(part.kind, fetched=False, size=size)

    async def _files(
        self,
        parts: Sequence[MediaPart],
        media: PromptMedia,
        tenant: str | None,
        alike: Callable[[int, int], bool] | None,
    ) -> Sequence[bytes]:
        workshop = self._workshop
        began_s = workshop.monotonic_s()
        files = await self._source.files(parts, media.hold, alike, tenant)
        fetched = [is_fetched(part) for part in parts]
        if any(fetched):
            workshop.meters.took("fetch", workshop.monotonic_s() - began_s)
        for part, elsewhere, data in zip(parts, fetched, files, strict=True):
            workshop.meters.got(part.kind, fetched=elsewhere, size=len(data))
        return files

    async def _planned_in_thread(self, work: Callable[[], PlannedPicture]) -> PlannedPicture:
        began_s = self._workshop.monotonic_s()
        planned = await self._in_thread(work)
        self._tell_time(planned, began_s)
        return planned

    async def _planned_clip(
        self, part: MediaPart, data: bytes, family: "ClipFamily", asked: AskedMedia
    ) -> PlannedPicture:
        began_s = self._workshop.monotonic_s()
        made = await self._workshop.clips().planned(part, data, family, asked.tenant or "")
        planned = PlannedPicture(
            part, SentPicture(self._source, data, None), made.plan, made.digest
        )
        self._tell_time(planned, began_s)
        return planned

    def _tell_time(self, planned: PlannedPicture, began_s: float) -> None:
        if planned.plan is not None:
            self._workshop.meters.took("plan", self._workshop.monotonic_s() - began_s)

    def _planned(self, part: MediaPart, data: bytes | None, asked: AskedMedia) -> PlannedPicture:
        """Look at a file and plan what becomes of it; in a thread where that may take a while."""
        source, family = self._source, asked.family
        if data is None or family is None:
            return PlannedPicture(part, SentPicture(source, data or b"", None), None, "")
        assert family.modality == "image", "see `_planned_clip`"
        header = source.header(data, part.where)
        low = asked.options.low_pixels if part.detail == "low" else None
        try:
            plan = family.plan(header.width, header.height, area_max=low)
        except SmgError as error:
            raise error_at(error, part.where) from error
        digest = source.digest(data, family.fingerprint, part, low, asked.tenant or "")
        return PlannedPicture(part, SentPicture(source, data, header), plan, digest)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workshop.threads, work)
