"""Encoder rate: picture tokens that workers' encoders work off a second, learned as rates of prefill are. Pure.

What a call with pictures takes until its first token, beyond its wait and what its prompt takes at the worker's prefill
rate, its pictures took. Workers of one model are alike, so the usual rate is that of all of them together:

    usual = (expected rate x 1 s + all measured tokens) / (1 s + all measured seconds)
    rate  = (usual rate x 1 s + own measured tokens) / (1 s + own measured seconds)

What was measured 60 s ago counts half (`prefill_rate`). Nothing is kept of workers that had no pictures.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from smg_node.fleet.load.prefill_rate import Measured

ENCODER_RATE_MIN: Final = 200.0
ENCODER_RATE_MAX: Final = 2_000_000.0
ENCODED_MIN: Final = 64
"""Fewer tokens of pictures measure the step of an engine and the way to it."""
_LEAST_S: Final = 0.0005
"""No picture took less: what is left of a call's time may be nothing, or less, where its prompt was quick."""


def encoder_rates(
    measured: Sequence[Measured | None], *, expected: float, now_s: float
) -> list[float]:
    """Return the rate of each of these workers of one model; `expected` is that of any where nothing was measured."""
    usual = _held(_total(measured, now_s).rate(expected))
    return [usual if one is None else _held(one.rate(usual)) for one in measured]


def note_encoded(
    measured: Measured | None, tokens: int, seconds: float, *, known: float, now_s: float
) -> Measured | None:
    """Return what is measured at a worker when so many tokens of pictures took `seconds` there; `known` was its rate.

    Too few say nothing; one measurement counts as four times faster or slower than what was known at most.
    """
    if tokens < ENCODED_MIN:
        return measured
    found = Measured(at_s=now_s) if measured is None else measured
    found.add(tokens, max(seconds, _LEAST_S), known=known, now_s=now_s)
    return found


def _total(measured: Iterable[Measured | None], now_s: float) -> Measured:
    total = Measured(at_s=now_s)
    for one in measured:
        if one is not None:
            one.age(now_s)
            total.tokens += one.tokens
            total.seconds += one.seconds
    return total


def _held(rate: float) -> float:
    return min(max(rate, ENCODER_RATE_MIN), ENCODER_RATE_MAX)
