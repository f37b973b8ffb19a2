"""Admission settings: options and token prices from the configuration; metrics of admission."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from smg_node.admission.admission import AdmissionOptions
from smg_node.admission.limit_counters import Tallies
from smg_node.admission.usage.usage_book import UsageBook
from smg_node.config.frozen_settings import Settings
from smg_node.core.generation.outcome import Outcome
from smg_node.core.prices.price import Price, Rates, flat_price, pico_of
from smg_node.core.prices.price_list import SETTINGS, PriceBook
from smg_node.telemetry.metrics.declared import limits as declared
from smg_node.telemetry.metrics.meters import Meters


def admission_options(settings: Settings) -> AdmissionOptions:
    """Return the options of admission that these settings give."""
    return AdmissionOptions(
        wait_max_s=settings.admission.wait_max_s, unpriced=settings.admission.unpriced
    )


def prices(of_models: Callable[[str], Mapping[str, Any]]) -> Mapping[str, Price]:
    """Return what calls of each model cost; `of_models` returns one of the models' settings, by name."""
    prompt, cached, answer = (
        {model: value for model, value in of_models(field).items() if value is not None}
        for field in ("prompt_price", "cached_price", "answer_price")
    )
    return {
        model: flat_price(_rates(prompt.get(model, 0.0), cached.get(model), answer.get(model)))
        for model in sorted({*prompt, *cached, *answer})
    }


def _rates(prompt: float, cached: float | None, answer: float | None) -> Rates:
    asked = pico_of(prompt)
    read = asked if cached is None else pico_of(cached)
    return Rates(asked, read, asked, asked, pico_of(answer or 0.0))


class LiveModels(Protocol):
    """Port to the settings of models as they count now."""

    def of_models(self, field: str) -> Mapping[str, Any]:
        """Return one of the models' settings, by name."""
        ...

    def watch(self, sections: Sequence[str], changed: Callable[[Settings], None]) -> None:
        """Tell of changes."""
        ...


def follow_prices(book: PriceBook, live: LiveModels) -> None:
    """Let a price book take over what the settings say that models cost, now and after each change."""

    def follow() -> None:
        book.set(SETTINGS, prices(live.of_models))

    live.watch(("models",), lambda _now: follow())
    follow()


def watch_admission(meters: Meters, tallies: Tallies) -> None:
    """Let scrapes read what limits did to requests."""
    meters.watch(declared.LIMIT_REQUESTS, tallies.requests)
    meters.watch(declared.LIMIT_CHARGED, tallies.charged)
    meters.watch(declared.LIMIT_OWED, tallies.owed)
    meters.watch(declared.LIMITED_OPEN, lambda: {(): tallies.open})


class Counting:
    """Counter of finished requests, by model and by tenant."""

    def __init__(self, meters: Meters, usage: UsageBook) -> None:
        self._meters = meters
        self._usage = usage

    def __call__(self, outcome: Outcome) -> None:
        """Count one."""
        self._meters.generation(outcome)
        self._usage.record(outcome)
