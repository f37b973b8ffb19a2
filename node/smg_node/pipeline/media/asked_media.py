"""Asked media: the pictures of a conversation, whose rules they follow, and whether workers can be handed them. Pure."""

from collections.abc import Sequence

import msgspec

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import MediaPart
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.picture_rules import TokenTexts
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.family import Family
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_ways import known_to, takes, ways_of
from smg_node.pipeline.media.rule_groups import SAME, RuleGroup
from smg_node.prompts.media_forms import MediaForms


class AskedMedia(msgspec.Struct, frozen=True):
    """The media of a conversation, whose model and workers take such; `forms` is how its template writes them."""

    parts: Sequence[MediaPart]
    forms: MediaForms
    family: Family | None
    tokens: TokenTexts
    cards: Sequence[ModelCard]
    options: MediaOptions
    files: frozenset[str] = SAME
    """Of the workers that the family is of; see `PromptMedia.files`."""
    tenant: str | None = ""
    """Whose pictures and fetched files they are in caches, "" where all share them; None: nobody's, nothing is kept."""


def forms_of(family: Family | None, anchor: str) -> MediaForms | None:
    """Return how a template writes pictures of a family, or those that it writes `anchor` for; None if neither is known."""
    if family is not None:
        return MediaForms(family.anchor, family.order)
    return MediaForms(anchor) if anchor else None


def asked_of(
    parts: Sequence[MediaPart],
    forms: MediaForms,
    group: RuleGroup,
    model: ServedModel,
    cards: Sequence[ModelCard],
    options: MediaOptions,
    tenant: str | None,
) -> AskedMedia:
    """Return the pictures of a prompt of `tenant` (None: not known whose), by the rules of a group of workers."""
    whose = tenant if options.tenants_apart else ""
    # Any rules will do: they are looked up in the model's vocabulary, and once.
    rules, tokenizer = model.pictures, model.tokenizer
    tokens = TokenTexts(tokenizer) if rules is None else rules.tokens(tokenizer)
    return AskedMedia(parts, forms, group.family, tokens, cards, options, group.files, whose)


def makes_tensors(asked: AskedMedia) -> bool:
    """Whether some worker that may be chosen is handed tensors first."""
    where = asked.options.where
    first = [
        ways_of(card.media, family=known_to(card, asked.family, asked.files), where=where)[:1]
        for card in asked.cards
    ]
    return not any(first) or ("tensors",) in first


def check_workers(
    asked: AskedMedia, model: str, why: str, *, tokens_max: int, beside: int = 0
) -> None:
    """Raise INVALID_REQUEST at the first part where no worker that there is takes these pictures, and others `beside`."""
    if not asked.cards:
        # Who takes them is seen when one is there.
        return
    items = beside + len(asked.parts)
    reasons = [
        why_not(card, asked.family, asked.files, asked.options, items, tokens_max)
        for card in asked.cards
    ]
    if all(reasons):
        # Where workers differ, the best of them is told of.
        told = next((each for each in reasons if "at most" in each), reasons[0])
        more = f" ({why})" if why and "at most" not in told else ""
        raise unsupported(f"the model {model!r} {told}{more}", asked.parts[0].where)


def why_not(
    card: ModelCard,
    family: Family | None,
    files: frozenset[str],
    options: MediaOptions,
    items: int,
    tokens_max: int = 0,
) -> str:
    """Return why an engine of that card cannot be handed so many pictures made for engines with `files`; "" if it can."""
    of_card = known_to(card, family, files)
    return takes(card, family=of_card, where=options.where, items=items, tokens_max=tokens_max)
