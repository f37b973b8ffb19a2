"""Target calls: the call of one target of a route, at a vendor or of own engines."""

from collections.abc import Callable

from smg_node.engines.http.http_engine import HttpEngine
from smg_node.pipeline.relay.relay_context import OwnCall, TargetAsked
from smg_node.pipeline.relay.vendors.vendor_call import VendorCall


def target_call(
    told: TargetAsked, engine: HttpEngine, spoke: Callable[[], None], *, patient: bool
) -> tuple[VendorCall | OwnCall, OwnCall | None]:
    """Return the call of a target, twice where it is one of own engines; `spoke` is called at its first word.

    `patient`: it may wait for own workers, because no other target could be called.
    """
    if engine.own_model:
        make = told.parts.own_calls
        assert make is not None, "targets of own engines are opened where they can be called"
        own = make(told, engine.own_model, spoke, patient=patient)
        return own, own
    side = engine.vendor
    assert side is not None, "it is a target"
    names = told.model, told.parts.clock.now_ms
    return VendorCall(engine, side, told.asked, told.asks, *names, spoke), None
