"""Asked media: the media of a conversation, whose rules they follow, and whether workers can be handed them. Pure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from smg_node.core.errors import SmgError, unsupported
from smg_node.core.generation.request import MediaKind, MediaPart
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.picture_rules import TokenTexts
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.clips import FRAMES
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_ways import CLIPS, Unfit, count_kinds, known_to, unfit, ways_of
from smg_node.pipeline.media.rule_groups import SAME, ClipMakers, RuleGroup
from smg_node.prompts.media_forms import MediaForms

if TYPE_CHECKING:
    from smg_node.pipeline.media.media_ways import Maker


_END_CHARACTERS: Final = 256
"""The end of a source by which equal ones are looked for: hashing all of a data URL takes milliseconds."""
_QUICK_BYTES: Final = 262_144
"""Of files whose identity is found at once: hashing so many bytes takes 0.13 ms, as handing them over does."""
_JPEG: Final = b"\xff\xd8\xff"


class AskedMedia(msgspec.Struct, frozen=True):
    """The media of a conversation, whose model and workers take such; `forms` is how its template writes them.

    `family` is None where this node does not make the tensors of all of them.
    """

    parts: Sequence[MediaPart]
    forms: MediaForms
    family: "Maker | None"
    tokens: TokenTexts
    cards: Sequence[ModelCard]
    options: MediaOptions
    files: frozenset[str] = SAME
    """Of the workers that the family is of; see `PromptMedia.files`."""
    tenant: str | None = ""
    """Whose pictures and fetched files they are in caches, "" where all share them; None: nobody's, nothing is kept."""


def forms_of(group: RuleGroup) -> MediaForms | None:
    """Return how the models of a group see media; None where nothing is known of it."""
    family = group.family
    anchor = group.anchor if family is None else family.anchor
    pictures: tuple[MediaKind, ...] = ("image",) if anchor else ()
    kinds = (*pictures, *[mark.kind for mark in group.clips])
    if not kinds:
        return None
    order = "as_sent" if family is None else family.order
    return MediaForms(anchor, order, kinds, clips=group.clips)


def is_unknown_picture(parts: Sequence[MediaPart], forms: MediaForms, group: RuleGroup) -> bool:
    """Whether the first part is a picture, of a model that sees such in a way that is not known."""
    return parts[0].kind == "image" and not forms.anchor and group.sees


def are_clips(parts: Sequence[MediaPart], options: MediaOptions) -> bool:
    """Whether all parts are files of videos that this node may look into: no list of frames, none for the engine."""
    engines = options.clip_urls == "handed_on"
    return all(
        part.kind == "video"
        and part.source[: len(FRAMES)].lower() != FRAMES
        and not (engines and is_fetched(part))
        for part in parts
    )


def asked_of(
    parts: Sequence[MediaPart],
    forms: MediaForms,
    group: RuleGroup,
    maker: "Maker | None",
    model: ServedModel,
    cards: Sequence[ModelCard],
    options: MediaOptions,
    tenant: str | None,
) -> AskedMedia:
    """Return the media of a prompt of `tenant` (None: not known whose), made by `maker` for a group of workers."""
    whose = tenant if options.tenants_apart else ""
    # Any rules will do: they are looked up in the model's vocabulary, and once.
    rules, tokenizer = model.pictures, model.tokenizer
    tokens = TokenTexts(tokenizer) if rules is None else rules.tokens(tokenizer)
    return AskedMedia(parts, forms, maker, tokens, cards, options, group.files, whose)


def makes_tensors(asked: AskedMedia) -> bool:
    """Whether some worker that may be chosen is handed tensors first."""
    counts, where = count_kinds(asked.parts), asked.options.where
    first = [
        ways_of(
            card.media,
            family=known_to(card, asked.family, asked.files, counts),
            where=where,
            kinds=counts,
        )[:1]
        for card in asked.cards
    ]
    return not any(first) or ("tensors",) in first


def check_workers(
    asked: AskedMedia, model: str, why: str, *, tokens_max: int, beside: int = 0
) -> None:
    """Raise INVALID_REQUEST at the first part where no worker that there is takes these media, and pictures `beside`."""
    if not asked.cards:
        # Who takes them is seen when one is there.
        return
    counts = count_kinds(asked.parts)
    if beside:
        counts["image"] = beside + counts.get("image", 0)
    reasons: list[Unfit] = []
    for card in asked.cards:
        found = _unfit(card, asked.family, asked.files, asked.options, counts, tokens_max)
        if found is None:
            return
        reasons.append(found)
    # Where workers differ, the best of them is told of.
    told = next((each for each in reasons if "at most" in each.why), reasons[0])
    kinds = ("image", "video")
    more = f" ({why})" if why and told.kind in kinds and "at most" not in told.why else ""
    at = next((part for part in asked.parts if part.kind == told.kind), asked.parts[0])
    raise unsupported(f"the model {model!r} {told.why}{more}", at.where)


def why_not(
    card: ModelCard,
    family: "Maker | None",
    files: frozenset[str],
    options: MediaOptions,
    counts: Mapping[MediaKind, int],
) -> str:
    """Return why an engine of that card cannot be handed so many media made for engines with `files`; "" if it can."""
    found = _unfit(card, family, files, options, counts, 0)
    return "" if found is None else found.why


def weight_of(
    group: RuleGroup,
    clips: Mapping[str, ClipMakers],
    ready: Sequence[ModelCard],
    options: MediaOptions,
    counts: Mapping[MediaKind, int],
) -> int:
    """Return how many of the workers that are ready take so many media as they are made for a group.

    `clips` are the makers of videos by the names of groups, where all media are such.
    """
    made = clips.get(group.name)
    maker = group.family if made is None or made.maker is None else made.maker
    files = group.files if made is None else made.group.files
    own = [card for card in ready if card.media is not None and card.media.rules in files]
    return sum([not why_not(card, maker, files, options, counts) for card in own])


def _unfit(
    card: ModelCard,
    family: "Maker | None",
    files: frozenset[str],
    options: MediaOptions,
    counts: Mapping[MediaKind, int],
    tokens_max: int,
) -> Unfit | None:
    of_card = known_to(card, family, files, counts)
    return unfit(card, family=of_card, where=options.where, counts=counts, tokens_max=tokens_max)


def is_fetched(part: MediaPart) -> bool:
    """Whether the source of a part is an address."""
    return part.source[:5].lower() != "data:"


def is_web(part: MediaPart) -> bool:
    """Whether it is one of http or https."""
    return part.source[:8].lower().startswith(("http://", "https://"))


def is_got(part: MediaPart, asked: AskedMedia) -> bool:
    """Whether this node needs the file of a part; others are handed on as they were sent.

    These are URLs that the engine is to fetch where it alone knows the family, and videos and sound in the request
    itself that this node makes no tensors of.
    """
    if part.kind in CLIPS and not is_fetched(part):
        return asked.family is not None
    return not (asked.options.hands_on(part.kind) and asked.family is None and is_fetched(part))


def only_pictures(asked: AskedMedia) -> bool:
    """Whether all parts are pictures, whose files say early how large they are."""
    return all(part.kind == "image" for part in asked.parts)


def same_when_turned(asked: AskedMedia, width: int, height: int) -> bool:
    """Whether a picture has as many tokens when it is turned; where nobody here knows its tokens it has one place."""
    family = asked.family
    if family is None or family.modality == "video":
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


def are_quick(files: Sequence[bytes]) -> bool:
    """Whether looking at all of them takes no longer than handing one to a thread: the size is at the front of a JPEG."""
    return sum(map(len, files)) <= _QUICK_BYTES and all(
        file.startswith(_JPEG) or not file for file in files
    )


def first_places(parts: Sequence[MediaPart]) -> list[int]:
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
