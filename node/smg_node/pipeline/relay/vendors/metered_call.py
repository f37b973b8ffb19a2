"""Metered call: a vendor call of one request, charged to its provider's limits."""

from collections.abc import Callable

from smg_node.engines.http.http_engine import HttpEngine
from smg_node.pipeline.relay.relay_context import Asks, RelayParts
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.vendors.provider_meter import ProviderMeter
from smg_node.pipeline.relay.vendors.vendor_call import VendorCall


def metered_call(
    parts: RelayParts,
    engine: HttpEngine,
    asked: Relayable,
    asks: Asks,
    model: str,
    spoke: Callable[[], None],
) -> VendorCall:
    """Return one call of a vendor's model, which clients know by the name `model`; `spoke` is called at its first word.

    Where a client brings its own key of the vendor, the provider's account and its limits have no part in it.
    """
    side = engine.vendor
    assert side is not None, "it is a vendor's model"
    admission = parts.admission if side.own_account(asks.headers) else None
    meter = ProviderMeter(admission, asked, side.provider, model)

    def began() -> None:
        meter.spoke()
        spoke()

    return VendorCall(engine, side, asked, asks, model, parts.clock.now_ms, began, meter)
