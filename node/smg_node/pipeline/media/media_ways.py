"""Media ways: the form in which an engine is handed pictures, chosen by what its card says. Pure.

The node makes tensors wherever it knows the model's family and the engine takes them; those of a family that no engine
was seen to take yet, only where the engine does nothing itself. An engine that takes none gets
the files of the pictures: as data URLs that it reads itself, or as bytes.
"""

from functools import lru_cache
from typing import Final, Literal, TypeAlias

from smg_node.engines.engine import MediaCard, ModelCard
from smg_node.media.family import Family
from smg_node.pipeline.media.media_options import Where

Way: TypeAlias = Literal["tensors", "references", "encoded"]

Known: TypeAlias = Literal["no", "yes", "unproven"]
"""Whether this node knows how a model's pictures are made; `unproven`: yes, but no engine was seen to take the tensors."""

_BY_ENGINE: Final[tuple[Way, ...]] = ("references", "encoded")
_NAMES_MAX: Final = 64
"""Families that are looked up once."""


def known(family: Family | None) -> Known:
    """Return whether this node knows how a model's pictures are made, by the family that it found for it."""
    return "no" if family is None else _known(family.name)


@lru_cache(_NAMES_MAX)
def _known(name: str) -> Known:
    # The registry was loaded to find it.
    from smg_node.media.families.registry import BY_REFERENCE

    return "unproven" if name in BY_REFERENCE else "yes"


def ways_of(card: MediaCard | None, *, family: Known, where: Where) -> tuple[Way, ...]:
    """Return the ways for an engine of that card, the best first; none where it cannot be handed pictures."""
    if card is None:
        return ()
    made: tuple[Way, ...] = ("tensors",) if family != "no" and "tensors" in card.ways else ()
    if where == "node":
        # An engine that never takes tensors is not meant by this.
        return made or (() if "tensors" in card.ways else _untouched(card, where))
    if where == "engine" or family == "unproven":
        return (*_untouched(card, where), *made)
    return (*made, *_untouched(card, where))


def _untouched(card: MediaCard, where: Where) -> tuple[Way, ...]:
    """Return the ways that leave the work to the engine."""
    found = [way for way in _BY_ENGINE if way in card.ways]
    if where != "engine" and "data" not in card.schemes and "references" in found:
        # What this node was not told to have fetched by engines, it fetches itself, and hands on as data.
        found.remove("references")
    return tuple(found)


def known_to(card: ModelCard, family: Family | None, files: frozenset[str]) -> Known:
    """Return whether this node knows how an engine's pictures are made, by rules for engines that have these `files`."""
    own = card.media is None or card.media.rules in files
    return known(family) if own else "no"


def takes(card: ModelCard, *, family: Known, where: Where, items: int, tokens_max: int) -> str:
    """Return why an engine cannot be handed a prompt's pictures, in words; "" if it can.

    They are `items`, and the largest has `tokens_max` tokens (0: not known).
    """
    media = card.media
    if media is None:
        return "takes no pictures"
    if not ways_of(media, family=family, where=where):
        return "takes pictures in no form that this node can make"
    most = media.items_max.get("image")
    if most is not None and items > most:
        return f"takes at most {most} pictures a request"
    if media.tokens_max is not None and tokens_max > media.tokens_max:
        return f"takes at most {media.tokens_max} tokens a picture"
    return ""
