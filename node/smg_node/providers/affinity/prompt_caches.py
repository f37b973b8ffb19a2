"""Prompt caches: the cache book of one process, what answers have shown of it, and the plan of each request.

    plan = caches.plan(prompt, …)       what a request is expected to read at each target: for whoever chooses
    call = plan.call(target's worker)   the call that was placed there: what it is marked with, what came of it

Made with the first request of a route with `choose: affinity`; where there is none, none of this is.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from smg_node.core.generation.events import Usage
from smg_node.engines.http.vendor_cache import CacheCost, CacheRules, Dollars, Uncached
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.providers.affinity.cache_book import CacheBook
from smg_node.providers.affinity.cache_costs import cost_of
from smg_node.providers.affinity.cache_forecast import Forecast, Lookup, Way
from smg_node.providers.affinity.cache_marks import (
    CACHE_KEY,
    cache_key_of,
    keyed_bytes,
    marked_fields,
)
from smg_node.providers.affinity.cache_rules import keyed_scope
from smg_node.providers.affinity.cache_verdict import note_answered, note_sent
from smg_node.providers.affinity.prompt_beginning import PromptBeginning

TOKENS_PER_BYTE: Final = 0.25
"""Until an answer has shown another ratio."""
WAIT_MAX_S: Final = 10.0
"""Nobody waits longer for a cache; a target that rests longer is none to be chosen."""
RATIO_MIN: Final = 0.02
RATIO_MAX: Final = 1.0
RATIO_STEP: Final = 0.2
RATIOS_MAX: Final = 4_096
"""Models and accounts whose ratio is kept."""


class PromptCaches:
    """The caches as one process knows them. `now_ms` is the wall clock."""

    def __init__(self, book: CacheBook, now_ms: Callable[[], int]) -> None:
        self.book: Final = book
        self.now_ms: Final = now_ms
        self._ratios: OrderedDict[int, float] = OrderedDict()

    def plan(
        self,
        prompt: PromptBeginning,
        sides: Mapping[str, VendorSide],
        way: Callable[[VendorSide], Way],
        *,
        tenant: str,
        conversation: str,
        given_key: str,
    ) -> "CachePlan":
        """Return the plan of a request; see `CachePlan`."""
        now_ms = self.now_ms()
        self.book.tidy(now_ms)
        key = given_key or cache_key_of(prompt, tenant=tenant, conversation=conversation)
        lookup = Lookup(self.book, prompt, now_ms)
        return CachePlan(self, lookup, sides, way, key, given=bool(given_key))

    def ratio(self, scope: int) -> float:
        """Return how many tokens a byte of a prompt is there."""
        return self._ratios.get(scope, TOKENS_PER_BYTE)

    def learn_ratio(self, scope: int, size_bytes: int, prompt_tokens: int) -> None:
        """Take in that a prompt of so many bytes was so many tokens."""
        if size_bytes <= 0 or prompt_tokens <= 0:
            return
        seen = min(max(prompt_tokens / size_bytes, RATIO_MIN), RATIO_MAX)
        before = self._ratios.pop(scope, seen)
        self._ratios[scope] = before + RATIO_STEP * (seen - before)
        if len(self._ratios) > RATIOS_MAX:
            self._ratios.popitem(last=False)


class CachePlan:
    """What one request is expected to come to at each target; worked out when it is first asked for, by worker.

    `sides` are the targets by their workers' ids. `key` is the request's `prompt_cache_key`, its client's if `given`.
    """

    def __init__(
        self,
        caches: PromptCaches,
        lookup: Lookup,
        sides: Mapping[str, VendorSide],
        way: Callable[[VendorSide], Way],
        key: str,
        *,
        given: bool,
    ) -> None:
        self._caches = caches
        self._lookup = lookup
        self._sides = sides
        self._way = way
        self._key = key
        self._given = given
        self._forecasts: dict[str, Sequence[Forecast]] = {}
        self._best: dict[str, Forecast] = {}

    def forecasts(self, worker: str) -> Sequence[Forecast]:
        """Return what the request comes to at each place of a target; empty for a worker that is none."""
        found = self._forecasts.get(worker)
        if found is None:
            side = self._sides.get(worker)
            found = () if side is None else self._of(side)
            self._forecasts[worker] = found
        return found

    def cost(
        self, worker: str, *, dollar_seconds: float, price: Dollars | None
    ) -> CacheCost | None:
        """See `engines.http.vendor_cache.CachePlan`; of several places of a target the best counts."""
        several = self.forecasts(worker)
        if not several:
            return None
        costs = [cost_of(one, dollar_seconds=dollar_seconds, price=price) for one in several]
        at = min(range(len(costs)), key=lambda at: costs[at].seconds)
        self._best[worker] = several[at]
        return costs[at]

    def call(self, worker: str) -> "PlannedCall | Uncached":
        """Return the call that was placed there."""
        side = self._sides.get(worker)
        several = self.forecasts(worker)
        if side is None or not several:
            return Uncached()
        way = self._way(side)
        rules = side.cache_rules(way.api)
        keyed = rules.takes_key and not self._given and (not way.native or side.cache_key_added)
        best = self._best.get(worker, several[0])
        return PlannedCall(self._caches, side, rules, best, several, self._key if keyed else "")

    def _of(self, side: VendorSide) -> Sequence[Forecast]:
        way = self._way(side)
        rules = side.cache_rules(way.api)
        keyed = rules.takes_key and (self._given or not way.native or side.cache_key_added)
        found: list[Forecast] = []
        for place in side.cache_places(self._lookup.size_bytes * TOKENS_PER_BYTE):
            scope = keyed_scope(place.scope, self._key) if keyed else place.scope
            ratio = self._caches.ratio(place.scope)
            found.append(self._lookup.forecast(rules, place, scope, way, ratio))
        return found


class PlannedCall:
    """One call of one target: what it takes along, and what came of it. `several` are the forecasts of its places."""

    def __init__(
        self,
        caches: PromptCaches,
        side: VendorSide,
        rules: CacheRules,
        best: Forecast,
        several: Sequence[Forecast],
        key: str,
    ) -> None:
        self._caches = caches
        self._side = side
        self._rules = rules
        self._one = best
        self._several = several
        self._key = key
        self._spoken = False
        self._over = False

    @property
    def prefer(self) -> str:
        """The digest of the key that has the prompt; "" for any."""
        return self._one.place.key

    @property
    def wait_s(self) -> float:
        """How long it is worth waiting for that place: as long as it was found to take nothing, up to a limit."""
        wait_s = self._one.place.wait_s
        return wait_s if wait_s <= WAIT_MAX_S else 0.0

    def native(self, raw: bytes) -> bytes:
        """Return a client's own body as it goes out: changed only where the provider's definition wants it."""
        return keyed_bytes(raw, self._key) if self._key else raw

    def written(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a body that was written here, with what lets its vendor cache it."""
        if self._key and CACHE_KEY not in fields:
            return {**fields, CACHE_KEY: self._key}
        return marked_fields(fields, self._rules.mark) if self._one.marked else fields

    def sent(self, key: str) -> None:
        """Take in by which key it was sent: the one that was wanted may have had nothing left."""
        for one in self._several:
            if one.place.key == key:
                self._one = one

    def spoke(self) -> None:
        """Take in that the answer began."""
        self._spoken = True
        if self._over:
            # An answer in one piece has told what it cost before it passes.
            return
        note_sent(self._caches.book, self._one, self._caches.now_ms())

    def answered(self, used: Usage | None) -> None:
        """Take in what it cost, None where that was not told."""
        if used is None and not self._spoken:
            return
        self._over = True
        caches, one = self._caches, self._one
        if used is not None:
            caches.learn_ratio(one.place.scope, one.size_bytes, used.prompt_tokens)
        now_ms = caches.now_ms()
        note_answered(caches.book, one, used, now_ms, marked=self._rules.marked)

    @property
    def expected(self) -> float:
        """Tokens that it was expected to read."""
        return self._one.read
