"""Own relay: a relayed request to own HTTP servers that is one call of a request to a route.

It has the request's journey, and neither limits nor an outcome of its own.
"""

from collections.abc import Mapping

import msgspec

from smg_node.core.journey import Journey
from smg_node.core.request_context import RequestContext
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.pipeline.generation.generator import checked_key
from smg_node.pipeline.placement.placer import PlacementRequest
from smg_node.pipeline.relay.relay_context import Asks, RelayParts, first_known
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.relay_run import RelayRun
from smg_node.pipeline.relay.relays import Relays
from smg_node.pipeline.relay.response_filter import UsageReader
from smg_node.pipeline.relay.routes.target_filter import filtered


class OwnRelays(Relays):
    """Starts relayed requests to the servers of `model`, which their client calls `public`."""

    def __init__(
        self, parts: RelayParts, model: RelayedModel, public: str, story: Journey, *, patient: bool
    ) -> None:
        super().__init__(parts)
        self.model = model
        self.public = public
        self.story = story
        self.patient = patient
        self.run: OwnRelayRun | None = None
        """The last one that was started."""

    def routed(self, model: str) -> bool:
        """Return that it is not: no route leads from here."""
        return False

    def start(
        self,
        asked: Relayable,
        headers: Mapping[str, str],
        context: RequestContext,
        key: str,
        asks: Asks | None = None,
    ) -> "OwnRelayRun":
        """See `Relays`."""
        self.run = OwnRelayRun(self, asked, headers, context, key, asks)
        return self.run


class OwnRelayRun(RelayRun):
    """One such request."""

    def __init__(
        self,
        own: OwnRelays,
        asked: Relayable,
        headers: Mapping[str, str],
        context: RequestContext,
        key: str,
        asks: Asks | None,
    ) -> None:
        super().__init__(own.parts, asked, headers, context, key, asks)
        self._of = own

    @property
    def usage(self) -> UsageReader:
        """What the last call cost, as far as its worker said."""
        usage = self._usage
        usage.cached_tokens = first_known(self.found, usage.cached_tokens)
        return usage

    @property
    def first_s(self) -> float | None:
        """When the first word came."""
        return self._first_s

    def _journey(self) -> Journey:
        return self._of.story

    def _report(self, journey: Journey) -> None:
        """Do nothing: it is not over with this call."""

    async def _admit(self) -> RelayedModel:
        parts, model = self._parts, self._of.model
        self._model = self._of.public
        place = self._context, checked_key(self._key), self._model
        self._targets = filtered(parts, model, self._asked, *place, servers=True)
        parts.retries.of(model.name).asked(parts.clock.monotonic_s())
        return model

    def _wish(self, journey: Journey) -> PlacementRequest:
        wish = super()._wish(journey)
        return wish if self._of.patient else msgspec.structs.replace(wish, patient=False)
