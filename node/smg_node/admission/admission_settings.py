"""Admission settings: options and token prices from the configuration; metrics of admission."""

from collections.abc import Callable, Mapping
from typing import Any

from smg_node.admission.admission import AdmissionOptions
from smg_node.admission.limit_counters import Tallies
from smg_node.admission.limit_matching import Price, Prices
from smg_node.admission.usage_book import UsageBook
from smg_node.config.frozen_settings import Settings
from smg_node.core.generation.outcome import Outcome
from smg_node.telemetry.metrics.declared import limits as declared
from smg_node.telemetry.metrics.meters import Meters


def admission_options(settings: Settings) -> AdmissionOptions:
    """Return the options of admission that these settings give."""
    return AdmissionOptions(wait_max_s=settings.admission.wait_max_s)


def prices(of_models: Callable[[str], Mapping[str, Any]]) -> Prices:
    """Return what tokens of each model cost; `of_models` returns one of the models' settings, by name."""
    prompt, cached, answer = (
        {model: value for model, value in of_models(field).items() if value is not None}
        for field in ("prompt_price", "cached_price", "answer_price")
    )
    return {
        model: Price(
            prompt.get(model, 0.0),
            cached.get(model, prompt.get(model, 0.0)),
            answer.get(model, 0.0),
        )
        for model in sorted({*prompt, *cached, *answer})
    }


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
