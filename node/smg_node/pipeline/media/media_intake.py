"""Media intake: a conversation's pictures, videos and sound, from what was sent to plans and places in the prompt.

What the model and its workers can take is checked before anything is fetched, and so is whether the prompt has a place
for each of them. Then come the files, several at a time, and their sizes; the work on their pixels is begun by the
generation that has them.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from smg_node.core.errors import SmgError, invalid, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaKind,
    MediaPart,
    TokenIds,
    token_ids,
)
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.picture_rules import PictureRules, TokenTexts
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.expand import PlacedPicture, expand
from smg_node.media.family import Family
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_ways import CLIPS, Unfit, known, unfit, ways_of
from smg_node.pipeline.media.picture_source import PictureSource, SentPicture
from smg_node.pipeline.media.picture_works import error_at
from smg_node.pipeline.media.prompt_media import (
    MediaWorkshop,
    PlannedPicture,
    PromptMedia,
    count_kinds,
)
from smg_node.prompts.media_forms import (
    NOUNS,
    MediaForms,
    check_kinds,
    not_seen,
    ordered_media,
)

T = TypeVar("T")

_END_CHARACTERS: Final = 256
"""The end of a source by which equal ones are looked for: hashing all of a data URL takes milliseconds."""


class AskedMedia(msgspec.Struct, frozen=True):
    """The media of a conversation, whose model and workers take such; `forms` is how its template writes them.

    `family` is None where this node does not make the tensors of all of them.
    """

    parts: Sequence[MediaPart]
    forms: MediaForms
    family: Family | None
    tokens: TokenTexts
    cards: Sequence[ModelCard]
    options: MediaOptions


class MediaIntake:
    """Takes the pictures of conversations in."""

    def __init__(
        self,
        options: Callable[[], MediaOptions],
        cards: Callable[[ServedModel], Sequence[ModelCard]],
        source: PictureSource,
        workshop: MediaWorkshop,
    ) -> None:
        """`cards` are those of the workers that serve a model now."""
        self._options = options
        self._cards = cards
        self._source = source
        self._workshop = workshop

    async def asked(self, prompt: ChatPrompt, model: ServedModel) -> AskedMedia:
        """Return the media of a conversation; INVALID_REQUEST at the first that the model or its workers do not take.

        Nothing has been fetched then.
        """
        with self._workshop.meters.refusals():
            return await self._asked(prompt, model)

    async def _asked(self, prompt: ChatPrompt, model: ServedModel) -> AskedMedia:
        parts = ordered_media(prompt.turns)
        cards, options = self._cards(model), self._options()
        rules = model.pictures
        # Models that a worker says see nothing are not looked into.
        if rules is None or (cards and not any(card.media is not None for card in cards)):
            raise not_seen(parts[0], model.name)
        family = await self._in_thread(partial(rules.family, model.tokenizer))
        forms = _forms(family, rules)
        if forms is None or _is_unknown_picture(parts, forms, rules):
            raise unsupported(
                f"this node does not know how pictures are shown to {model.name!r}: {rules.why_not}",
                parts[0].where,
            )
        check_kinds(parts, forms, model.name)
        if known(family, count_kinds(parts)) == "no":
            family = None
        asked = AskedMedia(parts, forms, family, TokenTexts(model.tokenizer), cards, options)
        _check_workers(asked, model.name, rules.why_not, tokens_max=0)
        return asked

    async def media(self, asked: AskedMedia, ids: TokenIds, model: str) -> PromptMedia:
        """Return the pictures of a prompt of `ids`, which has one id for each; whoever has them closes them.

        INVALID_REQUEST with the path of a picture that cannot be had or is not taken, or where the prompt has more or
        fewer places than pictures. Their files are charged to the memory of all pictures under way.
        """
        with self._workshop.meters.refusals():
            return await self._media(asked, ids, model)

    async def _media(self, asked: AskedMedia, ids: TokenIds, model: str) -> PromptMedia:
        family = asked.family
        _check_places(ids, asked)
        media = self._prompt_media(asked, ids)
        try:
            media.pictures = await self._pictures(asked, media)
            if family is not None:
                anchor = asked.tokens.token_id(asked.forms.anchor)
                assert anchor is not None, "a family's anchor is a token of its vocabulary"
                placed = [_placed(each, family, asked.tokens) for each in media.pictures]
                media.ids, media.ranges = expand(ids, anchor, placed)
                largest = max(each.tokens for each in media.ranges)
                _check_workers(asked, model, "", tokens_max=largest)
        except BaseException:
            media.close()
            raise
        return media

    async def shown(
        self, model: ServedModel, urls: Sequence[str], where: str, beside: int = 0
    ) -> list[str]:
        """Return those of some data URLs that are pictures and can be shown to the model now; they are made by then.

        For pictures that no client sent: whoever is not shown one is told of it in words. `where` is what asked for them,
        `beside` how many other pictures its request has.
        """
        cards, options, rules = self._cards(model), self._options(), model.pictures
        if rules is None or not any(card.media is not None for card in cards):
            return []
        family = await self._in_thread(partial(rules.family, model.tokenizer))
        forms = _forms(family, rules)
        if family is None or forms is None:
            return []
        found: list[str] = []
        for url in urls:
            parts = [MediaPart("image", url, where)]
            asked = AskedMedia(parts, forms, family, TokenTexts(model.tokenizer), cards, options)
            if await self._is_shown(asked, model.name, beside + len(found)):
                found.append(url)
        return found

    async def _is_shown(self, asked: AskedMedia, model: str, beside: int) -> bool:
        media = self._prompt_media(asked, token_ids())
        try:
            media.pictures = await self._pictures(asked, media)
            plan = media.pictures[0].plan
            tokens = 0 if plan is None else plan.tokens
            _check_workers(asked, model, "", tokens_max=tokens, beside=beside)
            media.begin()
            await media.worked()
        except SmgError:
            return False
        finally:
            media.close()
        return True

    def _prompt_media(self, asked: AskedMedia, ids: TokenIds) -> PromptMedia:
        options = asked.options
        handed_on = frozenset(part.kind for part in asked.parts if options.hands_on(part.kind))
        return PromptMedia(
            self._workshop,
            asked.family,
            (),
            ids,
            ids,
            (),
            options.where,
            _makes(asked),
            handed_on,
        )

    # ── Files ────────────────────────────────────────────────────────────────

    async def _pictures(self, asked: AskedMedia, media: PromptMedia) -> list[PlannedPicture]:
        """Return all media with their files and plans; those that are sent several times are got once."""
        firsts = _firsts(asked.parts)
        places = sorted(set(firsts))
        wanted = [at for at in places if _is_got(asked.parts[at], asked)]
        await self._look_at([asked.parts[at] for at in places if at not in wanted], asked, media)
        got = await self._files([asked.parts[at] for at in wanted], media)
        files = dict(zip(wanted, got, strict=True))
        planned: dict[int, asyncio.Task[PlannedPicture]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for at in places:
                    work = self._planned(asked.parts[at], files.get(at), asked)
                    planned[at] = group.create_task(work)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  # its own cause is what tells why
        return [
            replace(planned[first].result(), part=part)
            for first, part in zip(firsts, asked.parts, strict=True)
        ]

    async def _look_at(
        self, parts: Sequence[MediaPart], asked: AskedMedia, media: PromptMedia
    ) -> None:
        """Check media whose source is handed to the engine as it was sent."""
        # What else an engine fetches, such as files, it was told to by its operator.
        other = asked.options.where == "engine"
        urls = [part for part in parts if _is_fetched(part) and not (other and not _is_web(part))]
        if urls:
            await self._source.check_handed_on(urls)
        for part in parts:
            if not _is_fetched(part):
                size = await self._source.check_clip(part)
                media.hold(len(part.source))
                self._workshop.meters.got(part.kind, fetched=False, size=size)

    async def _files(self, parts: Sequence[MediaPart], media: PromptMedia) -> Sequence[bytes]:
        workshop = self._workshop
        began_s = workshop.monotonic_s()
        files = await self._source.files(parts, media.hold)
        fetched = [_is_fetched(part) for part in parts]
        if any(fetched):
            workshop.meters.took("fetch", workshop.monotonic_s() - began_s)
        for part, elsewhere, data in zip(parts, fetched, files, strict=True):
            workshop.meters.got(part.kind, fetched=elsewhere, size=len(data))
        return files

    async def _planned(
        self, part: MediaPart, data: bytes | None, asked: AskedMedia
    ) -> PlannedPicture:
        if data is None or asked.family is None:
            return PlannedPicture(part, SentPicture(self._source, data or b"", None), None, "")
        workshop = self._workshop
        began_s = workshop.monotonic_s()
        planned = await self._in_thread(
            partial(self._plan, part, data, asked.family, asked.options)
        )
        workshop.meters.took("plan", workshop.monotonic_s() - began_s)
        return planned

    def _plan(
        self, part: MediaPart, data: bytes, family: Family, options: MediaOptions
    ) -> PlannedPicture:
        """Look at a file and plan what becomes of it; in a thread."""
        source = self._source
        header = source.header(data, part.where)
        low = options.low_pixels if part.detail == "low" else None
        try:
            plan = family.plan(header.width, header.height, area_max=low)
        except SmgError as error:
            raise error_at(error, part.where) from error
        digest = source.digest(data, family.fingerprint, part, low)
        return PlannedPicture(part, SentPicture(source, data, header), plan, digest)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workshop.threads, work)


def _forms(family: Family | None, rules: PictureRules) -> MediaForms | None:
    """Return how the model sees media; None where nothing is known of it."""
    anchor = rules.anchor if family is None else family.anchor
    pictures: tuple[MediaKind, ...] = ("image",) if anchor else ()
    kinds = (*pictures, *[mark.kind for mark in rules.clips])
    if not kinds:
        return None
    order = "as_sent" if family is None else family.order
    return MediaForms(anchor, order, kinds, clips=rules.clips)


def _is_unknown_picture(parts: Sequence[MediaPart], forms: MediaForms, rules: PictureRules) -> bool:
    """Whether the first part is a picture, of a model that sees such in a way that is not known."""
    return parts[0].kind == "image" and not forms.anchor and rules.sees


def _makes(asked: AskedMedia) -> bool:
    """Whether some worker that may be chosen is handed tensors first."""
    counts, where = count_kinds(asked.parts), asked.options.where
    family = known(asked.family, counts)
    first = [
        ways_of(card.media, family=family, where=where, kinds=counts)[:1] for card in asked.cards
    ]
    return not any(first) or ("tensors",) in first


def _check_workers(
    asked: AskedMedia, model: str, why: str, *, tokens_max: int, beside: int = 0
) -> None:
    """Raise INVALID_REQUEST at the first part where no worker that there is takes these pictures, and others `beside`."""
    if not asked.cards:
        # Who takes them is seen when one is there.
        return
    counts = count_kinds(asked.parts)
    if beside:
        counts["image"] = beside + counts.get("image", 0)
    family = known(asked.family, counts)
    reasons: list[Unfit] = []
    for card in asked.cards:
        found = unfit(
            card,
            family=family,
            where=asked.options.where,
            counts=counts,
            tokens_max=tokens_max,
        )
        if found is None:
            return
        reasons.append(found)
    # Where workers differ, the best of them is told of.
    told = next((each for each in reasons if "at most" in each.why), reasons[0])
    more = f" ({why})" if why and told.kind == "image" and "at most" not in told.why else ""
    at = next((part for part in asked.parts if part.kind == told.kind), asked.parts[0])
    raise unsupported(f"the model {model!r} {told.why}{more}", at.where)


def _check_places(ids: TokenIds, asked: AskedMedia) -> None:
    """Raise INVALID_REQUEST where the prompt has more or fewer places than media of a kind, before any is fetched."""
    for kind in asked.forms.kinds:
        anchor = asked.tokens.token_id(asked.forms.anchor_of(kind))
        parts = [part for part in asked.parts if part.kind == kind]
        found = 0 if anchor is None else ids.count(anchor)
        if anchor is not None and found != len(parts):
            one, many = NOUNS[kind]
            raise invalid(
                f"the prompt has {found} places for {len(parts)} {many}: a text must not contain what stands for a"
                f" {one}, and the chat template has to show each",
                (parts or asked.parts)[0].where,
            )


def _placed(each: PlannedPicture, family: Family, tokens: TokenTexts) -> PlacedPicture:
    assert each.plan is not None, "it was planned with the family"
    layout = family.layout(each.plan, tokens)
    return PlacedPicture(layout, each.plan.tokens, each.digest, each.part.where)


def _is_fetched(part: MediaPart) -> bool:
    return part.source[:5].lower() != "data:"


def _is_web(part: MediaPart) -> bool:
    return part.source[:8].lower().startswith(("http://", "https://"))


def _is_got(part: MediaPart, asked: AskedMedia) -> bool:
    """Whether this node needs the file of a part; others are handed on as they were sent.

    These are URLs that the engine is to fetch where it alone knows the family, and videos and sound in the request
    itself, which nobody here looks into.
    """
    if part.kind in CLIPS and not _is_fetched(part):
        return False
    return not (asked.options.hands_on(part.kind) and asked.family is None and _is_fetched(part))


def _firsts(parts: Sequence[MediaPart]) -> list[int]:
    """Return for each part the place of the first one that is the same: kind, source, detail and the client's name."""
    alike: dict[tuple[object, ...], list[int]] = {}
    firsts = []
    for at, part in enumerate(parts):
        source = part.source
        key = part.kind, len(source), source[-_END_CHARACTERS:], part.detail, part.uuid
        known = alike.setdefault(key, [])
        first = next((one for one in known if parts[one].source == source), at)
        if first == at:
            known.append(at)
        firsts.append(first)
    return firsts
