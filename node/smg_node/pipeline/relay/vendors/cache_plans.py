"""Cache plans: what vendors' prompt caches are expected to save for a request, from its body and its targets."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from smg_node.core.request_context import RequestContext
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.vendor_cache import CachePlan
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_context import Asks
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.vendors.asked_api import asked_api
from smg_node.providers.affinity.cache_forecast import Way
from smg_node.providers.affinity.prompt_beginning import MARK_WORDS, beginning_of
from smg_node.providers.affinity.prompt_caches import PromptCaches
from smg_node.providers.target import CLIENT_KEY_HEADER

_OWN_KEY: Final = "prompt_cache_key"
_KEY_MAX_CHARACTERS: Final = 1_024


class CachePlans:
    """Plans of one process, by what it knows of caches."""

    def __init__(self, caches: PromptCaches) -> None:
        self._caches = caches

    def of(
        self,
        serving: Sequence[Worker],
        asked: Relayable,
        asks: Asks,
        context: RequestContext,
        key: str,
    ) -> CachePlan | None:
        """Return the plan of a request, whose routing key is `key`; None for one whose cache is nobody's here."""
        if not asked.api.generates or asks.headers.get(CLIENT_KEY_HEADER):
            # A client's own key is another account's, whose caches nobody here knows.
            return None
        marked = any(word in asked.raw for word in MARK_WORDS)
        given = asked.fields.get(_OWN_KEY)
        return self._caches.plan(
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


def _way(asked: Relayable, asks: Asks, side: VendorSide) -> Way:
    """Return how a target would be asked: as `vendors.vendor_call` does it."""
    if not asks.listened and asked.api.name in side.dialects:
        return Way(asked.api.name, True)
    return Way(asked_api(side, asks.dialect), False)
