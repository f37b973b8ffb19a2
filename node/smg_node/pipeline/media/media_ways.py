"""Media ways: the form in which an engine is handed pictures, videos and sound, chosen by what its card says. Pure.

All media of a prompt go the same way. The node makes tensors wherever it knows the model's family, makes such of every
kind in the prompt, and the engine takes them; those of a family that no engine was seen to take yet, only where the
engine does nothing itself. An engine that takes none gets
the files of the media: as data URLs that it reads itself, or as bytes.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from smg_node.core.generation.request import MediaKind, MediaPart
from smg_node.engines.engine import MediaCard, ModelCard
from smg_node.media.family import Family
from smg_node.pipeline.media.media_options import Where
from smg_node.prompts.media_forms import NOUNS

if TYPE_CHECKING:
    from smg_node.media.video.clip_family import ClipFamily

    Maker: TypeAlias = Family | ClipFamily

Way: TypeAlias = Literal["tensors", "references", "encoded"]

Known: TypeAlias = Literal["no", "yes", "unproven"]
"""Whether this node knows how a prompt's media are made; `unproven`: yes, but no engine was seen to take the tensors."""

CLIPS: Final[tuple[MediaKind, ...]] = ("video", "audio")
WHO_TAKES_CLIPS: Final = "vLLM takes them by reference (with SMG_VLLM_MM_PROCESSOR=inprocess), HTTP workers and vendors as they are sent"
_IMAGE: Final[tuple[MediaKind, ...]] = ("image",)
_BY_ENGINE: Final[tuple[Way, ...]] = ("references", "encoded")
_NAMES_MAX: Final = 64
"""Families that are looked up once."""


class Unfit(msgspec.Struct, frozen=True):
    """Why an engine cannot be handed a prompt's media, in words, and the kind that it is about."""

    why: str
    kind: MediaKind


def count_kinds(parts: Iterable[MediaPart]) -> dict[MediaKind, int]:
    """Return how many parts there are of each kind, in the order in which they first come."""
    counts: dict[MediaKind, int] = {}
    for part in parts:
        counts[part.kind] = counts.get(part.kind, 0) + 1
    return counts


def known(family: "Maker | None", kinds: Collection[MediaKind] = _IMAGE) -> Known:
    """Return whether this node knows how media of these kinds are made, by the family that it found for their model.

    A family makes tensors of one kind, and engines are sent those of one kind in a request.
    """
    if family is None:
        return "no"
    modality = family.modality
    for kind in kinds:
        if kind != modality:
            return "no"
    return "yes" if modality == "video" else _known(family.name)


@lru_cache(_NAMES_MAX)
def _known(name: str) -> Known:
    # The registry was loaded to find it.
    from smg_node.media.families.registry import BY_REFERENCE

    return "unproven" if name in BY_REFERENCE else "yes"


def ways_of(
    card: MediaCard | None, *, family: Known, where: Where, kinds: Collection[MediaKind] = _IMAGE
) -> tuple[Way, ...]:
    """Return the ways for an engine of that card, the best first; none where it cannot be handed media of these kinds."""
    if card is None:
        return ()
    by_engine = _untouched(card, where, kinds)
    takes_tensors = "tensors" in card.ways and (card.video_tensors or "video" not in kinds)
    made: tuple[Way, ...] = ("tensors",) if family != "no" and takes_tensors else ()
    if where == "node":
        # An engine that never takes tensors is not meant by this.
        return made or (() if "tensors" in card.ways else by_engine)
    if where == "engine" or family == "unproven":
        return (*by_engine, *made)
    return (*made, *by_engine)


def _untouched(card: MediaCard, where: Where, kinds: Collection[MediaKind]) -> tuple[Way, ...]:
    """Return the ways that leave the work to the engine."""
    found = [way for way in _BY_ENGINE if way in card.ways]
    if where != "engine" and "data" not in card.schemes and "references" in found:
        # What this node was not told to have fetched by engines, it fetches itself, and hands on as data.
        found.remove("references")
    if "encoded" in found and any(kind in CLIPS for kind in kinds):
        # Files are those of pictures only.
        found.remove("encoded")
    return tuple(found)


def known_to(
    card: ModelCard,
    family: "Maker | None",
    files: frozenset[str],
    kinds: Collection[MediaKind] = _IMAGE,
) -> Known:
    """Return whether this node knows how an engine's media of these kinds are made, by rules for engines that have these
    `files`.
    """
    own = card.media is None or card.media.rules in files
    return known(family, kinds) if own else "no"


def unfit(
    card: ModelCard,
    *,
    family: Known,
    where: Where,
    counts: Mapping[MediaKind, int],
    tokens_max: int,
) -> Unfit | None:
    """Return why an engine cannot be handed a prompt's media; None if it can.

    `counts` are how many it has of each kind, and the largest picture has `tokens_max` tokens (0: not known).
    """
    media = card.media
    clip = next((kind for kind in CLIPS if kind in counts), None)
    if media is None:
        kind: MediaKind = clip or "image"
        return Unfit(f"takes no {NOUNS[kind][1]}", kind)
    if not ways_of(media, family=family, where=where, kinds=counts):
        return _no_way(where, clip)
    for kind, count in counts.items():
        most = media.items_max.get(kind)
        if most is not None and count > most:
            return Unfit(f"takes at most {most} {_several(kind)} a request", kind)
    if media.tokens_max is not None and tokens_max > media.tokens_max:
        made: MediaKind = "video" if clip == "video" else "image"
        return Unfit(f"takes at most {media.tokens_max} tokens a {NOUNS[made][0]}", made)
    return None


def takes(
    card: ModelCard,
    *,
    family: Known,
    where: Where,
    counts: Mapping[MediaKind, int],
    tokens_max: int,
) -> str:
    """Return why an engine cannot be handed a prompt's media, in words, as `unfit` does; "" if it can."""
    found = unfit(card, family=family, where=where, counts=counts, tokens_max=tokens_max)
    return "" if found is None else found.why


def _no_way(where: Where, clip: MediaKind | None) -> Unfit:
    if clip is None:
        return Unfit("takes pictures in no form that this node can make", "image")
    noun = NOUNS[clip][1]
    if where == "node":
        return Unfit(
            f"takes no {noun}: media.where is `node`, and this node makes no tensors of {noun}",
            clip,
        )
    return Unfit(f"takes no {noun} here: {WHO_TAKES_CLIPS}", clip)


def _several(kind: MediaKind) -> str:
    return "sounds" if kind == "audio" else NOUNS[kind][1]
