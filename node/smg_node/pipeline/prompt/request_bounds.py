"""Request bounds: limits of all requests to one model on one kind of engine, computed once. Pure.

Bounds, digest and end tokens follow from the model, its settings and the engine's card, and only
change with them. So they are computed at the first request for a card, and cached with the model.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from smg_node.core.generation.request import Sampling
from smg_node.engines.engine import Abilities, ModelCard
from smg_node.fleet.models.served_model import ServedModel
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.stream.end_tokens import Ends, ends_of
from smg_node.tokens.tokenizer import Tokenizer

CARDS_MAX: Final = 256
"""Cards kept per model; more workers than that only cost them being worked out again (6 us)."""
_PLAIN: Final = Sampling()
VERY_LONG: Final = 2**31 - 1
"""Ids of a prompt where nobody says how long one may be."""
DRAWN_MAX: Final = 64
"""Samplings kept per terms. Those of plain bodies are few objects that come again and again; others are seen once."""


class SamplingBounds(msgspec.Struct, frozen=True):
    """Everything about answers drawn as `wished` on engines of some `abilities` that does not
    depend on a prompt.

    `sampling` is what they are drawn with, `asked` what their engine is sent, and `ignored` names
    the parameters it cannot honour. It holds for one answer to a prompt of at most `longest` ids:
    behind a longer one there is less room.
    """

    terms: "RequestBounds"
    wished: Sampling
    abilities: Abilities
    sampling: Sampling
    asked: Sampling
    ends: Ends
    reads: bool
    """Whether a parser reads it."""
    ignored: tuple[str, ...]
    longest: int
    most: int
    """Tokens that an answer may have."""
    skips: bool
    """Whether special tokens print nothing."""
    temperature: float
    top_p: float


class RequestBounds:
    """Bounds of one model on engines of one card. Valid as long as `settings` and `printing` are
    the model's.

    `prompt_max` and `context` are in tokens, None if unknown. `trusted`: every id that our
    tokenizer makes is inside the `vocabulary`. Ids from `beyond` on are outside the engine's.
    `stops` are ids that the model's format reads at an answer's end.
    """

    __slots__ = (
        "_ends",
        "beyond",
        "card",
        "context",
        "fingerprint",
        "kept",
        "printing",
        "prompt_max",
        "settings",
        "stops",
        "tokenizer",
        "trusted",
        "vocabulary",
    )

    def __init__(self, model: ServedModel, card: ModelCard) -> None:
        self.card = card
        self.settings = model.settings
        self.printing = model.printing
        self.tokenizer = model.tokenizer
        self.vocabulary = model.vocabulary(card)
        self.trusted = self.vocabulary >= model.tokenizer.vocabulary
        # A model may have more rows than its tokenizer has tokens; those print nothing, as everywhere.
        self.beyond = max(model.tokenizer.vocabulary, card.vocabulary or 0)
        self.context = model.context(card)
        self.prompt_max = model.prompt_max(card)
        self.fingerprint = model.fingerprint(card)
        self.stops = stop_ids(model.printing, model.tokenizer)
        self._ends = ends_of(_PLAIN, model.tokenizer, card.eos_ids)
        self.kept: dict[int, SamplingBounds] = {}
        """What was worked out for a sampling, by its identity; see `sampling_bounds`."""

    def ends(self, sampling: Sampling, read: frozenset[int]) -> Ends:
        """Return the ids that end an answer drawn so; `read` are those that its format reads."""
        if not (read or sampling.ignore_eos or sampling.stop_token_ids):
            return self._ends
        return ends_of(sampling, self.tokenizer, self.card.eos_ids, read=read)

    def keep(self, drawn: SamplingBounds) -> None:
        """Cache these sampling bounds for later requests with equal sampling."""
        if len(self.kept) >= DRAWN_MAX:
            self.kept.clear()
        self.kept[id(drawn.wished)] = drawn

    def room(self, wished: Sampling) -> int:
        """Return the longest prompt, in ids, that leaves room for the requested number of tokens."""
        assert wished.max_tokens is not None
        bounds = [VERY_LONG if self.prompt_max is None else self.prompt_max]
        if self.context is not None:
            bounds.append(self.context - wished.max_tokens)
        return min(bounds)


def request_bounds(model: ServedModel, card: ModelCard) -> RequestBounds:
    """Return the bounds of `model` on engines of `card`."""
    known = model.worked_out
    found: RequestBounds | None = known.get(id(card))
    # It holds its card, so that no other one can have that id.
    if found is not None and found.settings is model.settings and found.printing is model.printing:
        return found
    if len(known) >= CARDS_MAX:
        known.clear()
    terms = known[id(card)] = RequestBounds(model, card)
    return terms


def sampling_bounds(
    model: ServedModel, card: ModelCard, wished: Sampling, abilities: Abilities
) -> SamplingBounds | None:
    """Return the cached bounds of answers of `model` drawn so, on engines of that card and these
    abilities.
    """
    terms: RequestBounds | None = model.worked_out.get(id(card))
    # As in `request_bounds`.
    if (
        terms is None
        or terms.settings is not model.settings
        or terms.printing is not model.printing
    ):
        return None
    found = terms.kept.get(id(wished))
    # It holds its sampling, so that no other one can have that id.
    if found is not None and found.wished is wished and found.abilities is abilities:
        return found
    return None


def stop_ids(printing: Printing, tokenizer: Tokenizer) -> frozenset[int]:
    """Return the ids that end an answer in a model's format and are read with it."""
    joint = printing.joint
    return _ids_of(joint.stops, tokenizer) if joint is not None else frozenset()


def _ids_of(tokens: Iterable[str], tokenizer: Tokenizer) -> frozenset[int]:
    """Return the ids of those tokens that the vocabulary has as tokens of their own."""
    encoded = [tokenizer.encode(token, add_special_tokens=False) for token in tokens]
    return frozenset(ids[0] for ids in encoded if len(ids) == 1)
