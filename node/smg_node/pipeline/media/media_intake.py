"""Media intake: a conversation's pictures, from what its client sent to plans and places in the prompt.

What the model and its workers can take is checked before anything is fetched, and so is whether the prompt has a place
for each picture. Then come the files, several at a time, and their sizes; the work on their pixels is begun by the
generation that has them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

from smg_node.core.errors import SmgError, invalid, unsupported
from smg_node.core.generation.request import ChatPrompt, MediaPart, TokenIds, token_ids
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.picture_rules import TokenTexts
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.expand import PlacedPicture, expand
from smg_node.media.family import Family
from smg_node.pipeline.media.asked_media import (
    AskedMedia,
    asked_of,
    check_workers,
    forms_of,
    makes_tensors,
    why_not,
)
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.picture_bytes import text_bytes
from smg_node.pipeline.media.picture_source import PictureSource, SentPicture
from smg_node.pipeline.media.picture_works import error_at
from smg_node.pipeline.media.prompt_media import MediaWorkshop, PlannedPicture, PromptMedia
from smg_node.pipeline.media.rule_groups import (
    RuleGroup,
    disagreement,
    group_for,
    groups_of,
    rules_of,
)
from smg_node.prompts.media_forms import check_kinds, not_seen, ordered_media

T = TypeVar("T")

_log = logging.getLogger("smg_node.pipeline")

_QUICK_BYTES: Final = 262_144
"""Of files whose identity is found at once: hashing so many bytes takes 0.13 ms, as handing them over does."""
_JPEG: Final = b"\xff\xd8\xff"
_TOLD_MAX: Final = 64
"""Disagreements of workers that are remembered as told."""
_END_CHARACTERS: Final = 256
"""The end of a source by which equal ones are looked for: hashing all of a data URL takes milliseconds."""


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
        forms = forms_of(group.family, group.anchor)
        check_kinds(parts, forms, model.name)
        if forms is None:
            raise unsupported(
                f"this node does not know how pictures are shown to {model.name!r}: {group.why_not}",
                parts[0].where,
            )
        asked = asked_of(parts, forms, group, model, cards, options, tenant)
        check_workers(asked, model.name, group.why_not, tokens_max=0)
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
        ready, items = self._ready(model), len(parts)

        def weight(group: RuleGroup) -> int:
            own = [
                card for card in ready if card.media is not None and card.media.rules in group.files
            ]
            return sum(
                [not why_not(card, group.family, group.files, options, items) for card in own]
            )

        return group_for(groups, parts, weight)

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
        """Get the pictures of a prompt and find their places; closes it where that fails."""
        ids = media.ids
        family, anchor = asked.family, asked.tokens.token_id(asked.forms.anchor)
        if anchor is not None:
            _check_places(ids, anchor, asked.parts)
        try:
            media.pictures = await self._pictures(asked, media, counted=counted)
            if family is not None:
                assert anchor is not None, "a family's anchor is a token of its vocabulary"
                placed = [_placed(each, family, asked.tokens) for each in media.pictures]
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
        forms = None if group is None else forms_of(group.family, group.anchor)
        if group is None or group.family is None or forms is None:
            return []
        found: list[str] = []
        for url in urls:
            parts = [MediaPart("image", url, where)]
            asked = asked_of(parts, forms, group, model, cards, options, tenant)
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
        media = PromptMedia(
            self._workshop,
            asked.family,
            (),
            ids,
            ids,
            (),
            asked.options.where,
            makes_tensors(asked),
            asked.cards,
        )
        media.files = asked.files
        return media

    # ── Files ────────────────────────────────────────────────────────────────

    async def _pictures(
        self, asked: AskedMedia, media: PromptMedia, *, counted: bool = False
    ) -> list[PlannedPicture]:
        """Return all pictures with their files and plans; those that are sent several times are got once."""
        await media.hold_texts(text_bytes(asked.parts))
        firsts = _firsts(asked.parts)
        places = sorted(set(firsts))
        wanted = [at for at in places if _is_got(asked.parts[at], asked)]
        alike = partial(_alike, asked) if counted else None
        got = await self._files([asked.parts[at] for at in wanted], media, asked.tenant, alike)
        files = dict(zip(wanted, got, strict=True))
        if _are_quick(got):
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
                    work = partial(self._planned, asked.parts[at], files.get(at), asked)
                    tasks[at] = group.create_task(self._planned_in_thread(work))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  # its own cause is what tells why
        return {at: task.result() for at, task in tasks.items()}

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
        fetched = [_is_fetched(part) for part in parts]
        if any(fetched):
            workshop.meters.took("fetch", workshop.monotonic_s() - began_s)
        for elsewhere, data in zip(fetched, files, strict=True):
            workshop.meters.got(fetched=elsewhere, size=len(data))
        return files

    async def _planned_in_thread(self, work: Callable[[], PlannedPicture]) -> PlannedPicture:
        began_s = self._workshop.monotonic_s()
        planned = await self._in_thread(work)
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


def _alike(asked: AskedMedia, width: int, height: int) -> bool:
    """Whether a picture has as many tokens when it is turned; where nobody here knows its tokens it has one place."""
    family = asked.family
    if family is None:
        return True
    try:
        return all(
            family.plan(width, height, area_max=area).tokens
            == family.plan(height, width, area_max=area).tokens
            for area in (None, asked.options.low_pixels)
        )
    except SmgError:
        # It is refused either way.
        return True


def _check_places(ids: TokenIds, anchor: int, parts: Sequence[MediaPart]) -> None:
    """Raise INVALID_REQUEST where the prompt has more or fewer places than pictures, before any is fetched."""
    found = ids.count(anchor)
    if found != len(parts):
        raise invalid(
            f"the prompt has {found} places for {len(parts)} pictures: a text must not contain what stands for a"
            " picture, and the chat template has to show each",
            parts[0].where,
        )


def _placed(each: PlannedPicture, family: Family, tokens: TokenTexts) -> PlacedPicture:
    assert each.plan is not None, "it was planned with the family"
    layout = family.layout(each.plan, tokens)
    return PlacedPicture(layout, each.plan.tokens, each.digest, each.part.where)


def _are_quick(files: Sequence[bytes]) -> bool:
    """Whether looking at all of them takes no longer than handing one to a thread: the size is at the front of a JPEG."""
    return sum(map(len, files)) <= _QUICK_BYTES and all(
        file.startswith(_JPEG) or not file for file in files
    )


def _is_fetched(part: MediaPart) -> bool:
    return part.source[:5].lower() != "data:"


def _is_got(part: MediaPart, asked: AskedMedia) -> bool:
    """Whether this node needs the file of a part: engines that are to fetch, and know the family alone, get the URL."""
    return not (asked.options.where == "engine" and asked.family is None and _is_fetched(part))


def _firsts(parts: Sequence[MediaPart]) -> list[int]:
    """Return for each part the place of the first one that is the same picture: source, detail and the client's name."""
    alike: dict[tuple[object, ...], list[int]] = {}
    firsts = []
    for at, part in enumerate(parts):
        source = part.source
        key = len(source), source[-_END_CHARACTERS:], part.detail, part.uuid
        known = alike.setdefault(key, [])
        first = next((one for one in known if parts[one].source == source), at)
        if first == at:
            known.append(at)
        firsts.append(first)
    return firsts
