"""Target filter: which workers a relayed request may be given now, and the error where all are off for it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.journey import Journey
from smg_node.core.ports import Clock
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.health.circuit_breaker import EARLY_S, State
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.fleet.workers.worker import Worker
from smg_node.fleet.workers.worker_spec import (
    AFFINITY,
    CHOOSE_LABEL,
    ON_LABEL,
    ONLY_LABEL,
    SPLIT_LABEL,
)
from smg_node.pipeline.placement.eligibility import Allowed
from smg_node.pipeline.placement.own_models import is_server, is_target
from smg_node.pipeline.placement.placement_request import PlacementRequest
from smg_node.pipeline.relay.relay_context import Asks, CachePlanner, RelayParts
from smg_node.pipeline.relay.relay_eligibility import can_take, for_pairs, vendor_of
from smg_node.pipeline.relay.relay_request import Relayable, answer_length
from smg_node.routing.policy import Pricing

if TYPE_CHECKING:
    from smg_node.pipeline.relay.routes.request_split import RequestSplit

PATIENCE_S: Final = 5.0
"""So long a target of such a route may rest and still be chosen: to wait may cost less than to read a prompt anew."""
FAILURES: Final[Mapping[str, str]] = {
    "upstream_rate_limited": "rate",
    "rate_limit_exceeded": "rate",
    "insufficient_quota": "no_money",
    "upstream_overloaded": "full",
    "overloaded": "full",
    "upstream_quota": "no_money",
    "upstream_denied": "not_let_in",
    "upstream_model_unknown": "model_unknown",
    "upstream_timeout": "timed_out",
}
"""Kinds of failure by the code of an error."""
SHUT_CODE: Final = "provider_unavailable"
"""Code of a request whose only targets are not asked at this moment, because they failed too often."""
SPENT_S: Final = 1.0
"""So long a provider is off for a request whose limit does not say when there is more."""
_BY_KIND: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.RATE_LIMITED: "rate",
    ErrorKind.OVERLOADED: "full",
    ErrorKind.UPSTREAM_TIMEOUT: "timed_out",
}


class TargetFilter:
    """Which workers may be given one request now, by its side of a split and what its calls so far came to.

    `route` is the public name of its model, `key` its routing key. Of all workers that `serving` returns, it may go to
    those of `kind`, None for any; `has_room` is whether own workers of a model of that name could be given it at once.
    """

    def __init__(
        self,
        asked: Relayable,
        clock: Clock,
        serving: Callable[[], Sequence[Worker]],
        context: RequestContext,
        route: str,
        key: str,
        prices: PriceBook,
        *,
        has_room: Callable[[str], bool] = lambda _name: True,
        kind: Allowed | None = None,
    ) -> None:
        self._asked = asked
        self._clock = clock
        self._all = serving
        self._kind = kind
        self._has_room = has_room
        self._route = route
        self._prices = prices
        self._context = context
        self._key = key
        self._failed: set[str] = set()
        """Kinds of failure of its calls."""
        self._by_cache = any(one.labels.get(CHOOSE_LABEL) == AFFINITY for one in serving())
        self._patience_s = PATIENCE_S if self._by_cache else 0.0
        self._missed: set[str] = set()
        """Providers that it was not given to because they were off."""
        self._spent: dict[str, LimitedError] = {}
        """Providers whose own limits have nothing left for it."""
        self._keys_used: dict[str, int] = {}
        """With how many keys of a provider the request was tried in vain."""
        self._broke: set[str] = set()
        """Workers that its calls broke at."""
        self._passed: set[str] = set()
        """Targets of own engines that would have had it wait."""
        self.priced: Callable[[Worker], bool] = _any_price
        """Whether it is known what the request costs at a worker, where that matters."""
        self.split = self._split()
        """Its side of the route's split; None where there is none, or it is over."""

    def serving(self) -> Sequence[Worker]:
        """Return all workers that it may ever go to."""
        kind, serving = self._kind, self._all()
        return serving if kind is None else list(filter(kind, serving))

    def _split(self) -> "RequestSplit | None":
        label = next(
            (told for worker in self.serving() if (told := worker.labels.get(SPLIT_LABEL))), None
        )
        if label is None:
            return None
        # Imported with the first one.
        from smg_node.pipeline.relay.routes.request_split import split_of

        fields, now_ms = self._asked.fields, self._clock.now_ms()
        return split_of(label, self._route, self._context, self._key, fields, self.opening, now_ms)

    def placement(
        self, journey: Journey, asks: Asks, planner: CachePlanner | None
    ) -> PlacementRequest:
        """Return what the first call needs of its worker. `planner` knows of vendors' prompt caches, if anything does."""
        context, asked, caches = self._context, self._asked, None
        if self._by_cache and planner is not None:
            caches = planner.of(self.serving(), asked, asks, context, self._key)
        return PlacementRequest(
            deadline_s=context.deadline_s,
            ids=asked.ids,
            prompt_tokens=asked.prompt_tokens,
            key=self._key,
            caller=context.caller,
            client=context.client,
            priority=context.priority,
            target=context.target_worker,
            fits=self.fits,
            why="first" if context.target_worker is None else "target",
            journey=journey,
            pair=for_pairs(asked, self.serving()),
            opening=self.opening,
            caches=caches,
            why_not=self.why_not,
            answer_max=answer_length(asked),
            pricing=self.pricing,
            note="" if self.split is None else self.split.told(),
        )

    def vendors_among(self) -> Sequence[Worker]:
        """Return all that may be given the request, if there is a vendor among them; none otherwise."""
        serving = [worker for worker in self.serving() if not self._is_foreign(worker)]
        return serving if any(vendor_of(worker) is not None for worker in serving) else ()

    def opening(self) -> str:
        """Return the digest of how its conversation begins; see `PlacementRequest`."""
        # Imported here: only routes over models at vendors want it.
        from smg_node.pipeline.relay.routes.conversation_opening import opening_of

        return opening_of(self._asked.fields, self._asked.api.prompt)

    def pricing(self) -> Pricing:
        """Return what tells the dollars of the request at each worker; see `Asked.dollars`."""
        # Imported here: only routes that choose by it want it.
        from smg_node.pipeline.relay.routes.expected_prices import ExpectedPrices

        places: dict[str, tuple[str, str]] = {
            worker.id: ("", "") if side is None else (side.provider, side.model)
            for worker in self.serving()
            for side in [vendor_of(worker)]
        }
        now_ms = self._clock.now_ms()
        prices = ExpectedPrices(self._prices.now, self._asked, self._route, places, now_ms)
        return prices.dollars

    def fits(self, worker: Worker) -> bool:
        """Whether it may be given the request now."""
        return not self.why_not(worker)

    def why_not(self, worker: Worker) -> str:
        """Return why it may not be given the request now, in words; "" if it may."""
        if self._kind is not None and not self._kind(worker):
            return "no target of the route"
        if not can_take(worker, self._asked):
            return f"has no {self._asked.api.name}"
        side = vendor_of(worker)
        if side is None and not worker.own_model:
            return ""
        if not self.priced(worker):
            return "its price is not known, and a limit on cost applies"
        elsewhere = self._elsewhere(worker)
        if side is not None and self._is_off(side):
            if not elsewhere:
                self._miss(side)
            spent = self._spent.get(side.provider)
            return f"off: {(spent or side.off_error(self._asked.prompt_tokens)).code}"
        if worker.own_model and not self._is_open(worker) and not self.is_last(worker):
            return "none of its servers has room"
        return elsewhere

    def is_last(self, worker: Worker) -> bool:
        """Whether no other one could be given the request now, so that it may as well wait there."""
        return not any(
            one is not worker and self._is_able(one) and not self._elsewhere(one)
            for one in self.serving()
        )

    def passed(self, worker: Worker) -> None:
        """Take in that a target of own engines would have had the request wait: others go first from now on."""
        self._passed.add(worker.id)

    def _elsewhere(self, worker: Worker) -> str:
        """Return why another target is to take it; "" if this one may."""
        split, labels = self.split, worker.labels
        inside, only = SPLIT_LABEL in labels, ONLY_LABEL in labels
        if split is not None and split.side == "in":
            if inside:
                return ""
            if any(SPLIT_LABEL in one.labels and self._is_there(one) for one in self.serving()):
                return f"not of split {split.name}"
        if only:
            return f"for {labels[ONLY_LABEL]} only"
        if not self._joins(worker):
            return f"joins after: {labels[ON_LABEL]}"
        if split is not None and split.side == "out" and inside:
            others = (one for one in self.serving() if SPLIT_LABEL not in one.labels)
            if any(self._always(one) and self._is_there(one) for one in others):
                return f"of split {split.name}"
        return ""

    def failed(self, error: SmgError, worker: str) -> None:
        """Take in that a call broke at a worker: targets that are there for such failures join."""
        self._broke.add(worker)
        self._failed.add(FAILURES.get(error.code) or _BY_KIND.get(error.kind, "broken"))

    def spent(self, error: LimitedError) -> None:
        """Take in that a provider's own limit has too little left for this request: no target of it is asked any more.

        Targets that are there for too many requests join, whatever the limit's window.
        """
        self._spent[error.provider] = error
        self._failed.add("rate")
        self.failed(error, "")

    def has_other_key(self, worker: Worker, error: SmgError, headers: Mapping[str, str]) -> bool:
        """Whether a call broke because one of a provider's keys is to rest, and another one may be used now.

        Then the vendor is as well as before, and the same target may be asked again, once with each of its keys.
        `headers` are the client's: with its own key, the provider's keys have no part in it.
        """
        side = vendor_of(worker)
        if side is None or error.kind is not ErrorKind.RATE_LIMITED:
            return False
        if not side.own_account(headers) or self._pause_s(side) > 0:
            return False
        used = self._keys_used[side.provider] = self._keys_used.get(side.provider, 0) + 1
        return used < side.keys

    def check(self) -> None:
        """Raise the error of the target that is back first, where every one that can take the request is off for now, or
        failed too often to be asked at this moment.
        """
        soonest: tuple[float, Callable[[], SmgError]] | None = None
        off: list[VendorSide] = []
        for worker in self.serving():
            if not can_take(worker, self._asked) or self._is_foreign(worker):
                continue
            if not self.priced(worker):
                continue
            side = vendor_of(worker)
            if side is None:
                return
            pause_s, error = self._pause_s(side), partial(self._off_error, side)
            if not self._is_off(side):
                pause_s = _shut_s(worker, self._clock.monotonic_s())
                error = partial(_shut, side, pause_s)
            else:
                off.append(side)
            if not pause_s:
                return
            if soonest is None or pause_s < soonest[0]:
                soonest = pause_s, error
        if soonest is not None:
            for side in off:
                self._miss(side)
            raise soonest[1]()

    def _off_error(self, side: VendorSide) -> SmgError:
        return self._spent.get(side.provider) or side.refusal(self._asked.prompt_tokens)

    def _is_foreign(self, worker: Worker) -> bool:
        """Whether it is there for a split or a shadow alone, and not for this request."""
        inside = self.split is not None and self.split.side == "in" and SPLIT_LABEL in worker.labels
        target = vendor_of(worker) is not None or worker.own_model
        return ONLY_LABEL in worker.labels and not inside and bool(target)

    def _is_open(self, worker: Worker) -> bool:
        """Whether a target would be called at once, as far as its account or its own workers go."""
        own = worker.own_model
        if own:
            return worker.id not in self._passed and self._has_room(own)
        side = vendor_of(worker)
        return side is None or not self._is_off(side)

    def _is_off(self, side: VendorSide) -> bool:
        # A limit that is spent is not waited for: it would be asked again and again.
        return self._pause_s(side) > self._patience_s or side.provider in self._spent

    def _pause_s(self, side: VendorSide) -> float:
        """Return for how long a vendor's model cannot be given this request, 0.0 if it can now."""
        spent = self._spent.get(side.provider)
        pause_s = side.off_s(self._asked.prompt_tokens)
        return pause_s if spent is None else max(pause_s, spent.retry_after_s or SPENT_S)

    def _miss(self, side: VendorSide) -> None:
        """Tell a vendor's side that is off that it would have been given this request, once."""
        tokens = self._asked.prompt_tokens
        # What only a limit of the cluster holds back is not wanted of the vendor.
        if side.provider not in self._missed and side.off_s(tokens) > 0:
            self._missed.add(side.provider)
            side.missed(tokens)

    def _joins(self, worker: Worker) -> bool:
        """Whether a target is one of those that are always there, or is needed now."""
        on = worker.labels.get(ON_LABEL)
        if on is None:
            return True
        if not self._failed.isdisjoint(on.split(",")):
            return True
        return not any(self._always(one) and self._is_able(one) for one in self.serving())

    def _always(self, worker: Worker) -> bool:
        """Whether it is a target of the route whatever happens."""
        return ON_LABEL not in worker.labels and ONLY_LABEL not in worker.labels

    def _is_there(self, worker: Worker) -> bool:
        """Whether a worker may be given work, and has not failed on this request."""
        return worker.id not in self._broke and self._is_able(worker)

    def _is_able(self, worker: Worker) -> bool:
        if not worker.routable or not worker.breaker.usable(self._clock.monotonic_s()):
            return False
        if not self.priced(worker):
            return False
        return can_take(worker, self._asked) and self._is_open(worker)


def filtered(
    parts: RelayParts,
    model: RelayedModel,
    asked: Relayable,
    context: RequestContext,
    key: str,
    public: str,
    *,
    servers: bool = False,
) -> TargetFilter:
    """Return what says which workers of a model may be given a request for `public`: its `servers`, or all of them; its
    targets only, where one of them stands for servers.
    """
    kind = is_server if servers else is_target if parts.placer.own.names(model) else None
    serving = partial(parts.fleet.serving, model)
    place, room = (context, public, key, parts.prices), parts.placer.has_room
    return TargetFilter(asked, parts.clock, serving, *place, has_room=room, kind=kind)


def _shut_s(worker: Worker, now_s: float) -> float:
    """Return for how long a worker's breaker lets nothing through, not even a call to see whether it is well again."""
    breaker = worker.breaker
    if breaker.state(now_s) is not State.OPEN:
        return 0.0
    return max(0.0, breaker.opened_s + EARLY_S - now_s)


def _shut(side: VendorSide, pause_s: float) -> SmgError:
    return SmgError(
        ErrorKind.OVERLOADED,
        f"the provider {side.provider!r} failed too often just now; it is tried again in a moment",
        code=SHUT_CODE,
        retry_after_s=pause_s,
    )


def _any_price(_worker: Worker) -> bool:
    return True
