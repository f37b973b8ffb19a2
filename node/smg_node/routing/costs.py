"""Costs: expected cost of a request at each candidate, in seconds, and the margin for near-best
ones. Pure.

    cost = wait + 1.25 x what is not cached / prefill rate + pressure

Every node computes this from numbers that are a little old in its own way. If all took the very
best, all would take the same one: so any candidate about as good as the best may be taken, and
"about" grows with the age of what the engines said.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Final

from smg_node.routing.policy import Asked
from smg_node.routing.pool import Candidate, Pool

CHARACTERS_PER_TOKEN: Final = 4
"""About, in prose; where nobody counts tokens."""
SLOT_S: Final = 1.0
"""What a slot of an engine counts besides; see `fleet.load.load_options.LoadOptions.busy_weight_s`."""
COMPUTED: Final = 1.25
"""What a token that is computed counts: it keeps its own request waiting, and some of those behind it as well."""
TIE_S: Final = 0.005
"""Costs that differ by less are the same: a step of an engine takes longer."""
TIE_SHARE: Final = 0.05
TIE_SHARE_PER_S: Final = 0.1
TIE_SHARE_MAX: Final = 0.25


def prompt_tokens(asked: Asked) -> int:
    """Return how many tokens of the prompt are to be computed where nothing is cached; an estimate
    from text without ids.
    """
    tokens = asked.tokens
    return counted(asked.ids, asked.text) if tokens is None else tokens


def counted(ids: Sequence[int], text: str) -> int:
    """Return how many tokens a prompt has; an estimate from text without ids."""
    return len(ids) or len(text) // CHARACTERS_PER_TOKEN


def uncached(asked: Asked, pool: Pool, at: int, tokens: int) -> int:
    """Return how many of `tokens`, the length of the prompt, the candidate at `at` has to compute, about."""
    if asked.beginning is None or not tokens:
        return tokens
    return max(0, tokens - round(asked.beginning.overlaps(pool)[at]))


def waits(pool: Pool) -> list[float]:
    """Return each candidate's cost for any request, whatever its prompt."""
    return [one.base_s for one in pool.candidates]


def cost(one: Candidate, tokens: int, overlap: float) -> float:
    """Return the cost of a prompt of so many tokens at one candidate, `overlap` of them being
    cached there.
    """
    left = tokens - overlap
    return one.base_s + COMPUTED * left * one.prefill_s if left > 0 else one.base_s


def costs(pool: Pool, tokens: int, overlaps: Sequence[float]) -> list[float]:
    """Return the cost of a prompt of so many tokens at each candidate, `overlaps` of them being
    cached there.
    """
    candidates, work = pool.candidates, COMPUTED * tokens
    found = [one.base_s + work * one.prefill_s for one in candidates]
    if overlaps is not pool.nothing:
        assert len(overlaps) == len(found)
        # Few have anything of it, and none more than all.
        for at in compress(pool.places, overlaps):
            found[at] = cost(candidates[at], tokens, overlaps[at])
    return found


def with_pictures(found: list[float], asked: Asked) -> list[float]:
    """Return the costs with what pictures of the prompt take besides; as much again, as of what is computed."""
    if not asked.extra_s:
        return found
    return [base + COMPUTED * more for base, more in zip(found, asked.extra_s, strict=True)]


def added_s(one: Candidate, tokens: float) -> float:
    """Return by how much a request with so many tokens to compute makes the next one more expensive there."""
    return tokens * one.prefill_s + SLOT_S / one.capacity


def about(best: float, age_s: float) -> float:
    """Return the highest cost that is about as good as `best`, for an engine's load report `age_s`
    old.
    """
    share = min(TIE_SHARE_MAX, TIE_SHARE + TIE_SHARE_PER_S * max(age_s, 0.0))
    return best + max(TIE_S, share * best)


def rate(
    asked: Asked,
    pool: Pool,
    found: Sequence[float],
    overlaps: Sequence[float],
    chosen: int,
    dollars: Sequence[float | None] | None = None,
) -> None:
    """Leave the costs of all candidates in `asked.rated`, if they are to be explained; the lists
    are not changed any more.
    """
    if asked.rated is not None:
        waits_s = [one.wait_s for one in pool.candidates]
        asked.rated.leave(pool.workers, found, waits_s, overlaps, chosen, dollars)
