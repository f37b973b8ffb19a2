"""Target costs: expected seconds and dollars of one request at each target of a route. Pure.

    seconds = p50 of the first token + expected tokens of the answer x seconds a token
    dollars = by the price of the target: prompt (its cached part cheaper) and expected answer

What was never measured at a target is as usual among the others, so that it is tried as often as they are.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.fleet.load.target_figures import ANSWER_TOKENS, TargetFigures
from smg_node.routing.policy import Asked
from smg_node.routing.pool import Pool

UNPRICED: Final = float("inf")
SUMMED_S: Final = 1.0
USUAL_ANSWERS: Final = 2.0
"""So many answers of the usual length are assumed besides those that were seen."""


class AnswerLengths:
    """Tokens that answers of each model had lately, summed once a second."""

    def __init__(self) -> None:
        self._usual: dict[str, tuple[float, float]] = {}
        """The mean, and until when it counts."""

    def expected(self, asked: Asked, pool: Pool) -> float:
        """Return how many tokens the answer is expected to have, at most what its client lets it."""
        usual, until_s = self._usual.get(asked.model, (0.0, float("-inf")))
        if asked.now_s >= until_s:
            usual = _mean_answer(pool)
            self._usual[asked.model] = usual, asked.now_s + SUMMED_S
        return usual if asked.answer_max is None else min(usual, asked.answer_max)


def _mean_answer(pool: Pool) -> float:
    answers, tokens = USUAL_ANSWERS, USUAL_ANSWERS * ANSWER_TOKENS
    for one in pool.candidates:
        if one.figures is not None:
            seen, of = one.figures.answers
            answers += seen
            tokens += of
    return tokens / answers


def expected_seconds(pool: Pool, answer: float) -> list[float]:
    """Return how long each candidate is expected to take for an answer of so many tokens."""
    try:
        # Nearly always all were measured: to ask each whether it was would take as long again.
        return [
            one.figures.first_s + answer * one.figures.token_s  # type: ignore[union-attr, operator] # caught below
            for one in pool.candidates
        ]
    except (AttributeError, TypeError):
        known = [one.figures for one in pool.candidates if one.figures is not None]
        first_s = _usual([one.first_s for one in known])
        token_s = _usual([one.token_s for one in known])
        return [_expected_s(one.figures, answer, first_s, token_s) for one in pool.candidates]


def expected_dollars(
    asked: Asked, pool: Pool, answer: float, overlaps: Sequence[float]
) -> list[float]:
    """Return what the request is expected to cost at each candidate; infinity where no price is known."""
    if asked.pricing is None:
        return [UNPRICED] * len(pool.candidates)
    dollars, tokens, whole = asked.pricing(), round(answer), len(asked.ids)
    if overlaps is pool.nothing or not whole:
        return [dollars(worker, 0.0, tokens) for worker in pool.workers]
    # The index counts in units of its own; what it knows is the share.
    return [
        dollars(worker, min(1.0, overlap / whole), tokens)
        for worker, overlap in zip(pool.workers, overlaps, strict=True)
    ]


def _expected_s(
    figures: TargetFigures | None, answer: float, first_s: float, token_s: float
) -> float:
    if figures is not None:
        first_s = first_s if figures.first_s is None else figures.first_s
        token_s = token_s if figures.token_s is None else figures.token_s
    return first_s + answer * token_s


def _usual(several: Sequence[float | None]) -> float:
    """Return the mean of those that are known; 0 where none is."""
    known = [one for one in several if one is not None]
    return sum(known) / len(known) if known else 0.0
