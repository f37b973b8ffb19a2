import json

import pytest
from prometheus_client import CollectorRegistry

from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.cluster.providers.provider_metrics import OTHER, PROVIDERS_MAX, watch_providers
from smg_node.engines.http.vendor_side import Dressed
from smg_node.providers.provider_book import ProviderBook
from smg_node.telemetry.metrics.meters import Meters
from support.providers.provider_desks import provider_fleet
from support.state.fake_shared_state import SharedWorld

CALLS = "smg_node_provider_calls_total"
REFUSED = b'{"error": {"message": "wrong key", "code": "invalid_api_key"}}'


class NoFleet:
    """Takes targets, and does nothing with them."""

    def apply(self, changes: object) -> None:
        assert changes


def running(count: int) -> tuple[ProviderFleet, CollectorRegistry]:
    """Return a fleet with so many providers of two keys each, and what scrapes read of it."""
    own = {
        f"p{number:04}": {"kind": "openai", "keys": ["k1", "k2"], "models": [f"m{number}"]}
        for number in range(count)
    }
    registry = CollectorRegistry()
    text = json.dumps({"providers": own}) if own else ""
    fleet = provider_fleet("a", SharedWorld("a"), text)
    watch_providers(Meters(registry, version="1"), fleet)
    fleet.refresh(NoFleet(), lambda _work, name: pytest.fail(name))
    return fleet, registry


def book_of(fleet: ProviderFleet) -> ProviderBook:
    assert fleet._book is not None
    return fleet._book


async def test_calls_are_counted_by_outcome_and_keys_that_rest_are_told() -> None:
    fleet, registry = running(1)
    account = fleet.accounts()["p0000"]
    vendor = book_of(fleet).open("p0000", "m0", public="m0").vendor
    assert vendor is not None

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"provider": "p0000", **labels})

    for refused in (False, True, True):
        _, use = await account.use({})
        dressed = Dressed("/", {}, b"", None, use)
        if refused:
            vendor.refused(401, {}, REFUSED, dressed)
            if value("smg_node_provider_keys_resting") == 1:
                assert value("smg_node_provider_off_seconds") == 0
        else:
            vendor.answer_headers({}, dressed)
            assert value("smg_node_provider_keys_resting") == 0
    assert value(CALLS, outcome="answered") == 1
    assert value(CALLS, outcome="not_let_in") == 2
    assert value("smg_node_provider_keys_resting") == 2
    off_s = value("smg_node_provider_off_seconds")
    assert off_s is not None
    assert 50 < off_s <= 60


def test_tokens_of_caches_are_counted_by_provider_and_only_where_there_are_some() -> None:
    fleet, registry = running(2)
    vendor = book_of(fleet).open("p0001", "m1", public="m1").vendor
    assert vendor is not None
    vendor.cached(read=70, written=0, expected=99.6)
    vendor.cached(read=30, written=0, expected=0.0)
    one, other = {"provider": "p0001"}, {"provider": "p0000"}
    name = "smg_node_provider_cache_{}_tokens_total"
    assert registry.get_sample_value(name.format("read"), one) == 100
    assert registry.get_sample_value(name.format("expected"), one) == 100
    assert registry.get_sample_value(name.format("written"), one) is None
    assert registry.get_sample_value(name.format("read"), other) is None


def test_more_providers_than_labels_are_counted_together() -> None:
    fleet, registry = running(PROVIDERS_MAX + 2)
    for account in fleet.accounts().values():
        account.count()
    assert registry.get_sample_value(CALLS, {"provider": "p0000", "outcome": "answered"}) == 1
    assert registry.get_sample_value(CALLS, {"provider": OTHER, "outcome": "answered"}) == 2


def test_a_node_without_providers_has_no_series() -> None:
    _, registry = running(0)
    assert [one.name for one in registry.collect() if one.samples and "provider" in one.name] == []
