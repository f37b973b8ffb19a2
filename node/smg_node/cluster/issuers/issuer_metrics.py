"""Issuer metrics of one process, read at scrape time; only where an issuer is configured."""

from collections import Counter
from collections.abc import Callable, Mapping

from smg_node.access.tokens.issuer import Issuer
from smg_node.cluster.issuers.access_service import IssuerParts
from smg_node.cluster.issuers.introspection import Introspections
from smg_node.cluster.issuers.key_ports import AccessHoldings
from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys
from smg_node.telemetry.metrics.declared.access import issuers as declared
from smg_node.telemetry.metrics.meters import Meters


def watch_issuers(
    meters: Meters,
    issuers: Callable[[], Mapping[str, Issuer]],
    state: AccessHoldings,
    parts: IssuerParts,
    now_ms: Callable[[], int],
) -> None:
    """Let scrapes of a process that fetches read what it knows."""
    keys = parts.keys

    def ages() -> Mapping[tuple[str, ...], float]:
        held = {alias: keys.held(alias) for alias in issuers()}
        return {
            (alias,): max(0, now_ms() - one.fetched_ms) / 1000
            for alias, one in held.items()
            if one is not None
        }

    meters.watch(declared.ISSUER_FETCHES, parts.fetches.counts)
    meters.watch(declared.ISSUER_KEYS, lambda: _counts(issuers(), keys))
    meters.watch(declared.ISSUER_KEYS_SKIPPED, lambda: _skipped(issuers(), keys))
    meters.watch(declared.ISSUER_KEYS_AGE, ages)
    meters.watch(declared.DENIALS, lambda: {(): len(state.denials.all())})


def watch_introspections(meters: Meters, calls: Introspections) -> None:
    """Let scrapes read how calls about opaque tokens went."""
    meters.watch(
        declared.INTROSPECTIONS,
        lambda: {("ok",): calls.calls - calls.failures, ("failed",): calls.failures},
    )


def _counts(issuers: Mapping[str, Issuer], keys: SharedIssuerKeys) -> Mapping[tuple[str, ...], int]:
    found = {alias: keys.keys(alias) for alias in issuers}
    return {(alias,): 0 if one is None else len(one.keys) for alias, one in found.items()}


def _skipped(
    issuers: Mapping[str, Issuer], keys: SharedIssuerKeys
) -> Mapping[tuple[str, ...], int]:
    reasons: Counter[tuple[str, ...]] = Counter(
        (alias, one.reason) for alias in issuers for one in keys.shown(alias).skipped
    )
    return reasons
