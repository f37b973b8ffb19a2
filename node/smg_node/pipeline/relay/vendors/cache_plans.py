"""Cache plans: what vendors' prompt caches are expected to save for a request, where its route chooses by that.

A request to any other model costs one look at a label; the caches are made, and what they need is imported, with the
first request of a route with `choose: affinity`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from smg_node.core.request_context import RequestContext
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.vendor_cache import CachePlan
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.workers.worker import Worker
from smg_node.fleet.workers.worker_spec import AFFINITY, CHOOSE_LABEL
from smg_node.pipeline.relay.relay_context import Asks
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.vendors.asked_api import asked_api

if TYPE_CHECKING:
    from smg_node.providers.affinity.cache_forecast import Way
    from smg_node.providers.affinity.prompt_caches import PromptCaches

_OWN_KEY: Final = "prompt_cache_key"
_KEY_MAX_CHARACTERS: Final = 1_024


def by_cache(serving: Sequence[Worker]) -> bool:
    """Whether the model that these serve is a route that chooses by prompt caches."""
    return bool(serving) and serving[0].labels.get(CHOOSE_LABEL) == AFFINITY


class CachePlans:
    """Plans of one process; `make` makes what it knows of caches."""

    def __init__(self, make: "Callable[[], PromptCaches]") -> None:
        self._make = make
        self._made: PromptCaches | None = None

    def of(
        self,
        serving: Sequence[Worker],
        asked: Relayable,
        asks: Asks,
        context: RequestContext,
        key: str,
    ) -> CachePlan | None:
        """Return the plan of a request; None where its route does not choose by it. `key` is its routing key."""
        if not by_cache(serving) or not asked.api.generates:
            return None
        from smg_node.providers.affinity.prompt_beginning import MARK_WORDS, beginning_of

        if self._made is None:
            self._made = self._make()
        marked = any(word in asked.raw for word in MARK_WORDS)
        given = asked.fields.get(_OWN_KEY)
        return self._made.plan(
            beginning_of(asked.api.prompt, asked.fields, marked=marked),
            _sides(serving),
            partial(_way, asked, asks),
            tenant=context.tenant or context.caller,
            conversation=key,
            given_key=given[:_KEY_MAX_CHARACTERS] if isinstance(given, str) else "",
        )


def _sides(serving: Sequence[Worker]) -> Mapping[str, VendorSide]:
    """Return the vendor side of each worker that has one, by its id."""
    engines = ((worker.id, worker.engine) for worker in serving)
    return {
        worker_id: engine.vendor
        for worker_id, engine in engines
        if isinstance(engine, HttpEngine) and engine.vendor is not None
    }


def _way(asked: Relayable, asks: Asks, side: VendorSide) -> "Way":
    """Return how a target would be asked: as `vendors.vendor_call` does it."""
    from smg_node.providers.affinity.cache_forecast import Way

    if not asks.listened and asked.api.name in side.dialects:
        return Way(asked.api.name, True)
    return Way(asked_api(side, asks.dialect), False)
