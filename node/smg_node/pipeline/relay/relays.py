"""Relays: which models and APIs are relayed to HTTP workers, and the start of a run."""

from collections.abc import Mapping

from smg_node.core.request_context import RequestContext
from smg_node.pipeline.relay.relay_call import may_have
from smg_node.pipeline.relay.relay_context import Asks, RelayParts
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
