"""Rank fusion of several rankings into one, by reciprocal ranks: sum of 1 / (k + rank) over those that a thing is in. Pure.

From Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning Methods"
(2009), with their k of 60. Only ranks count, so that scores of different kinds need no common measure.
"""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

K: Final = 60
_Ranked = TypeVar("_Ranked", bound=Hashable)


def fused(rankings: Sequence[Sequence[_Ranked]], limit: int) -> tuple[_Ranked, ...]:
    """Return the best of what the rankings have, at most so many; of equal ones those that an earlier ranking puts first."""
    scores: dict[_Ranked, float] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking, start=1):
            scores[one] = scores.get(one, 0.0) + 1 / (K + rank)
    # The order of equal ones is that in which they came.
    return tuple(sorted(scores, key=scores.__getitem__, reverse=True)[:limit])
