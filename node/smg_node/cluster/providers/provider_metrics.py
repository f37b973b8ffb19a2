"""Provider metrics: what the accounts of a process know, read at every scrape; nothing where no provider is defined."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.telemetry.metrics.declared import providers as declared
from smg_node.telemetry.metrics.meters import Meters

if TYPE_CHECKING:
    from smg_node.providers.account import ProviderAccount

PROVIDERS_MAX: Final = 1_000
OTHER: Final = "(other)"


def watch_providers(meters: Meters, providers: ProviderFleet) -> None:
    """Register the metrics of providers; those after the first 1,000 are counted together, or not shown."""

    def calls() -> Mapping[tuple[str, ...], float]:
        counts: Counter[tuple[str, ...]] = Counter()
        for at, (name, account) in enumerate(sorted(providers.accounts().items())):
            for outcome, count in account.outcomes.items():
                counts[name if at < PROVIDERS_MAX else OTHER, outcome] += count
        return counts

    def resting() -> Mapping[tuple[str, ...], float]:
        return {
            (name,): sum(rest_s > 0 for rest_s, _ in account.rests())
            for name, account in _first(providers)
        }

    def off() -> Mapping[tuple[str, ...], float]:
        return {
            (name,): min((rest_s for rest_s, _ in account.rests()), default=0.0)
            for name, account in _first(providers)
        }

    def shadows() -> Mapping[tuple[str, ...], float]:
        return {} if providers.shadows is None else providers.shadows.outcomes

    def shadow_calls() -> Mapping[tuple[str, ...], float]:
        return {} if providers.shadows is None else providers.shadows.calls

    meters.watch(declared.SHADOW_REQUESTS, shadows)
    meters.watch(declared.SHADOW_CALLS, shadow_calls)

    def cached(what: str) -> Mapping[tuple[str, ...], float]:
        counts: Counter[tuple[str, ...]] = Counter()
        for at, (name, account) in enumerate(sorted(providers.accounts().items())):
            tokens = account.cache_tokens.get(what)
            if tokens:
                counts[(name if at < PROVIDERS_MAX else OTHER,)] += round(tokens)
        return counts

    meters.watch(declared.PROVIDER_CACHE_READ_TOKENS, partial(cached, "read"))
    meters.watch(declared.PROVIDER_CACHE_WRITTEN_TOKENS, partial(cached, "written"))
    meters.watch(declared.PROVIDER_CACHE_EXPECTED_TOKENS, partial(cached, "expected"))
    meters.watch(declared.PROVIDER_CALLS, calls)
    meters.watch(declared.PROVIDER_KEYS_RESTING, resting)
    meters.watch(declared.PROVIDER_OFF_SECONDS, off)


def _first(providers: ProviderFleet) -> "Iterator[tuple[str, ProviderAccount]]":
    return islice(sorted(providers.accounts().items()), PROVIDERS_MAX)
