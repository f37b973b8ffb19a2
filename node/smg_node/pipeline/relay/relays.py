"""Relays: which models and APIs are relayed to HTTP workers, and the start of a run."""

from collections.abc import Mapping

from smg_node.core.request_context import RequestContext
from smg_node.pipeline.relay.relay_call import may_have
from smg_node.pipeline.relay.relay_context import Asks, RelayParts
from smg_node.pipeline.relay.relay_eligibility import vendor_of
from smg_node.pipeline.relay.relay_request import Api, Relayable
from smg_node.pipeline.relay.relay_run import RelayRun


class Relays:
    """Relays requests."""

    def __init__(self, parts: RelayParts) -> None:
        self.parts = parts

    def takes(self, model: object) -> bool:
        """Whether generations of that model are relayed: HTTP workers serve it, and no engine does."""
        fleet = self.parts.fleet
        return (
            isinstance(model, str)
            and fleet.relayed(model) is not None
            and fleet.served(model) is None
        )

    def speaks(self, model: object, api: Api) -> bool:
        """Whether some vendor that serves that model speaks the API itself, and no engine serves it."""
        fleet = self.parts.fleet
        found = fleet.relayed(model) if isinstance(model, str) else None
        if found is None or fleet.served(found.name) is not None:
            return False
        sides = (vendor_of(worker) for worker in fleet.serving(found))
        return any(side is not None and api.name in side.dialects for side in sides)

    def at_vendors(self, model: str) -> bool:
        """Whether some worker of that model is one at a vendor."""
        found = self.parts.fleet.relayed(model)
        return found is not None and any(
            vendor_of(worker) is not None for worker in self.parts.fleet.serving(found)
        )

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
    ) -> RelayRun:
        """Return a run that has not begun; `headers` are those that go along, `key` is its routing key."""
        return RelayRun(self.parts, asked, headers, context, key, asks)
