"""Relays: which models and APIs are relayed to HTTP workers, and the start of a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from smg_node.core.request_context import RequestContext
from smg_node.pipeline.placement.own_models import is_target
from smg_node.pipeline.relay.relay_call import may_have
from smg_node.pipeline.relay.relay_context import Asks, RelayParts
from smg_node.pipeline.relay.relay_eligibility import vendor_of
from smg_node.pipeline.relay.relay_request import Api, Relayable

if TYPE_CHECKING:
    from smg_node.pipeline.relay.relay_run import RelayRun


class Relays:
    """Relays requests."""

    def __init__(self, parts: RelayParts) -> None:
        self.parts = parts

    def takes(self, model: object) -> bool:
        """Whether generations of that model are relayed: HTTP workers or targets serve it, and no engine does.

        A route that leads to own engines takes the requests of its name, also where an engine's model is called so.
        """
        if not isinstance(model, str):
            return False
        fleet = self.parts.fleet
        found = fleet.relayed(model)
        return found is not None and (
            fleet.served(model) is None or bool(self.parts.placer.own.names(found))
        )

    def only(self, model: str) -> bool:
        """Whether there are HTTP workers or targets of that name, and no engines."""
        fleet = self.parts.fleet
        return fleet.relayed(model) is not None and fleet.served(model) is None

    def routed(self, model: str) -> bool:
        """Whether a route of that name leads to own engines, among others or alone."""
        found = self.parts.fleet.relayed(model)
        return found is not None and bool(self.parts.placer.own.names(found))

    def speaks(self, model: object, api: Api) -> bool:
        """Whether some vendor that serves that model speaks the API itself, and no engine serves it without a route."""
        fleet = self.parts.fleet
        found = fleet.relayed(model) if isinstance(model, str) else None
        if found is None:
            return False
        if fleet.served(found.name) is not None and not self.parts.placer.own.names(found):
            return False
        sides = (vendor_of(worker) for worker in fleet.serving(found))
        return any(side is not None and api.name in side.dialects for side in sides)

    def has_targets(self, model: str) -> bool:
        """Whether some worker of that model is a target: at a vendor, or of own engines."""
        found = self.parts.fleet.relayed(model)
        return found is not None and any(map(is_target, self.parts.fleet.serving(found)))

    def has(self, model: str, api: Api) -> bool:
        """Whether an HTTP worker of that model may have that API."""
        found = self.parts.fleet.relayed(model)
        return found is not None and any(
            may_have(worker, api) for worker in self.parts.fleet.serving(found)
        )

    def start(
        self,
        asked: Relayable,
        headers: Mapping[str, str],
        context: RequestContext,
        key: str,
        asks: Asks | None = None,
    ) -> "RelayRun":
        """Return a run that has not begun; `headers` are those that go along, `key` is its routing key."""
        # Imported with the first one: a node in front of gRPC engines relays nothing.
        from smg_node.pipeline.relay.relay_run import RelayRun

        return RelayRun(self.parts, asked, headers, context, key, asks)
