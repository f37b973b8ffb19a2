"""End tokens: which ids end a choice, and which of them become text. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from smg_node.core.generation.request import Sampling
from smg_node.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Ends:
    """Which ids end a choice. `eos` is empty when the request ignores end-of-text; `any` are all that mean something."""

    any: frozenset[int]
    eos: frozenset[int]
    stop_ids: frozenset[int]
    hidden: frozenset[int]
    """Ids that never become text: end-of-text ids that are special, even when they end nothing."""
    read: frozenset[int] = frozenset()
    """Ids that end a choice as end-of-text does, and that its parser reads first."""


def ends_of(
    sampling: Sampling,
    tokenizer: Tokenizer,
    engine_eos: Sequence[int],
    *,
    read: frozenset[int] = frozenset(),
) -> Ends:
    """Return which ids end a choice of this request; `read` are those that its format reads."""
    eos = tokenizer.eos_ids | frozenset(engine_eos)
    stop_ids = frozenset(sampling.stop_token_ids)
    hidden = (eos & tokenizer.special_ids) - read
    ends = frozenset() if sampling.ignore_eos else eos
    return Ends(ends | stop_ids | hidden | read, ends, stop_ids, hidden, read)
