"""Token weights: how the tokens of one model count for one limit, in tokens or in millionths of the currency. Pure."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

from smg_node.admission.matched_limit import MatchedLimit
from smg_node.admission.ports import Match
from smg_node.core.prices.cost import micro_up
from smg_node.core.prices.price import PICO_PER_MICRO, Rates

STEP_TOKENS: Final = 256
LEAST_TOKENS: Final = 16
EARLY_TOKENS: Final = 64


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """How tokens count for a limit. `worst_case` reserves as much as an answer may have at most.

    `finish` ends an answer for which nothing is left; otherwise it goes on, and is owed.
    """

    measure: MatchedLimit
    prompt: float
    cached: float
    answer: float
    worst_case: bool
    finish: bool
    step: int
    """So many units are reserved at a time for an answer that goes on."""
    least: int
    """Where little is left for all that go on, it is taken in steps not smaller than this."""
    early: int
    """More is reserved while so many units are left: where there are none here, some may come in the meantime."""
    rates: Rates | None = None
    """What each token costs, where it is cost that is limited."""
    plain: bool = field(init=False)
    """Whether each token is a unit, unless it was cached: then there is nothing to weigh."""
    flat: float = field(init=False)
    """What counts besides tokens."""

    def __post_init__(self) -> None:
        """Work out what follows."""
        flat = 0.0 if self.rates is None else self.rates.per_call / PICO_PER_MICRO
        object.__setattr__(self, "flat", flat)
        object.__setattr__(self, "plain", self.rates is None and self.prompt == self.answer == 1)

    def weigh(self, prompt: int, cached: int, answer: int) -> int:
        """Return what so many tokens count; `cached` are some of the prompt's."""
        rates = self.rates
        if rates is not None:
            pico = (prompt - cached) * rates.prompt + cached * rates.cached
            return micro_up(pico + answer * rates.answer + rates.per_call)
        if not cached:
            return math.ceil(prompt * self.prompt + answer * self.answer)
        exact = (prompt - cached) * self.prompt + cached * self.cached + answer * self.answer
        return math.ceil(exact)

    def priced(self, rates: Rates) -> "TokenWeights":
        """Return these weights at other rates, if it is cost that is limited."""
        if self.rates is None or self.rates == rates:
            return self
        return replace(self, rates=rates, **_costs(rates))


def weights_of(match: Match, measure: MatchedLimit, rates: Rates) -> TokenWeights:
    """Return how tokens count for a limit, at these rates where it is one on cost."""
    cost = match.unit == "cost"
    prompt, cached, answer = {
        "tokens": (1, match.cached_weight, 1),
        "input_tokens": (1, match.cached_weight, 0),
        "output_tokens": (0, 0, 1),
        "cost": (0, 0, 0),
    }[match.unit]
    weights = _costs(rates) if cost else _steps(answer)
    if not cost:
        weights |= {"prompt": prompt, "cached": cached, "answer": answer}
    return TokenWeights(
        measure,
        worst_case=match.reserve == "worst_case",
        finish=match.on_exhausted == "finish",
        rates=rates if cost else None,
        **weights,
    )


def _costs(rates: Rates) -> dict[str, Any]:
    """Return how tokens count in millionths of the currency."""
    answer = rates.answer / PICO_PER_MICRO
    return {
        "prompt": rates.prompt / PICO_PER_MICRO,
        "cached": rates.cached / PICO_PER_MICRO,
        "answer": answer,
        **_steps(answer),
    }


def _steps(answer: float) -> dict[str, Any]:
    """Return how much is reserved at a time for an answer that goes on, where a token of it counts so much."""
    return {
        "step": math.ceil(STEP_TOKENS * answer),
        "least": math.ceil(LEAST_TOKENS * answer),
        "early": math.ceil(EARLY_TOKENS * answer),
    }
