"""Relay eligibility: which workers can take a relayed request, and the error where none can. Pure.

A pair that meets in a room gives one answer to one prompt. A pair that takes turns can be asked for anything: what
cannot be handed over, its second half does alone.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.status_mapping import not_implemented
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.health.circuit_breaker import EARLY_S, State
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_call import may_have
from smg_node.pipeline.relay.relay_request import Relayable

TRANSLATED: Final = frozenset({"chat", "messages", "generate_content"})
"""APIs whose clients can be answered by a vendor that speaks another one."""

ON_LABEL: Final = "on"
"""Label of a target that joins only after failures of the kinds it lists, with commas between."""
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


def can_take(worker: Worker, asked: Relayable) -> bool:
    """Whether a worker may be given the request, or its half of it."""
    side = vendor_of(worker)
    if side is not None:
        api = asked.api
        return api.name in side.dialects or (api.generates and api.name in TRANSLATED)
    if asked.api.native:
        return False
    return may_have(worker, asked.api) and (
        worker.role == "regular"
        or (asked.api.generates and (asked.shareable or not _meets(worker)))
    )


def vendor_of(worker: Worker) -> VendorSide | None:
    """Return the vendor side of a worker that is a model at a vendor; None for any other, or one that is not open."""
    engine = worker.engine
    return engine.vendor if isinstance(engine, HttpEngine) else None


class TargetFilter:
    """Which workers may be given one request now, by what its calls so far came to."""

    def __init__(
        self, asked: Relayable, clock: Clock, serving: Callable[[], Sequence[Worker]]
    ) -> None:
        self._asked = asked
        self._clock = clock
        self._serving = serving
        self._failed: set[str] = set()
        """Kinds of failure of its calls."""
        self._missed: set[str] = set()
        """Providers that it was not given to because they were off."""
        self._spent: dict[str, LimitedError] = {}
        """Providers whose own limits have nothing left for it."""

    def fits(self, worker: Worker) -> bool:
        """Whether it may be given the request now."""
        if not can_take(worker, self._asked):
            return False
        side = vendor_of(worker)
        return side is None or (not self._is_off(side) and self._joins(worker))

    def failed(self, error: SmgError) -> None:
        """Take in that a call broke: targets that are there for such failures join."""
        self._failed.add(FAILURES.get(error.code) or _BY_KIND.get(error.kind, "broken"))

    def spent(self, error: LimitedError) -> None:
        """Take in that a provider's own limit has too little left for this request: no target of it is asked any more."""
        self._spent[error.provider] = error
        self.failed(error)

    def check(self) -> None:
        """Raise the error of the target that is back first, where every one that can take the request is off for now, or
        failed too often to be asked at this moment.
        """
        soonest: tuple[float, Callable[[], SmgError]] | None = None
        for worker in self._serving():
            if not can_take(worker, self._asked):
                continue
            side = vendor_of(worker)
            if side is None:
                return
            pause_s, error = self._pause_s(side), partial(self._off_error, side)
            if not pause_s:
                pause_s = _shut_s(worker, self._clock.monotonic_s())
                error = partial(_shut, side, pause_s)
            if not pause_s:
                return
            if soonest is None or pause_s < soonest[0]:
                soonest = pause_s, error
        if soonest is not None:
            raise soonest[1]()

    def _off_error(self, side: VendorSide) -> SmgError:
        return self._spent.get(side.provider) or side.refusal(self._asked.prompt_tokens)

    def _is_off(self, side: VendorSide) -> bool:
        return self._pause_s(side) > 0

    def _pause_s(self, side: VendorSide) -> float:
        """Return for how long a vendor's model cannot be given this request, 0.0 if it can now."""
        spent = self._spent.get(side.provider)
        pause_s = side.off_s(self._asked.prompt_tokens)
        if pause_s > 0:
            self._miss(side)
        return pause_s if spent is None else max(pause_s, spent.retry_after_s or SPENT_S)

    def _miss(self, side: VendorSide) -> None:
        """Tell a vendor's side that is off that it would have been given this request, once."""
        if side.provider not in self._missed:
            self._missed.add(side.provider)
            side.missed(self._asked.prompt_tokens)

    def _joins(self, worker: Worker) -> bool:
        """Whether a target is one of those that are always there, or is needed now."""
        on = worker.labels.get(ON_LABEL)
        if on is None:
            return True
        if not self._failed.isdisjoint(on.split(",")):
            return True
        return not any(self._is_there(one) for one in self._serving())

    def _is_there(self, worker: Worker) -> bool:
        """Whether a worker that is always there may be given work."""
        if worker.labels.get(ON_LABEL) is not None or not worker.routable:
            return False
        side = vendor_of(worker)
        return can_take(worker, self._asked) and (side is None or not self._is_off(side))


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


def for_pairs(asked: Relayable, serving: Sequence[Worker]) -> bool:
    """Whether a pair may be given the request, of those that serve its model."""
    return asked.api.generates and (
        asked.shareable or any(worker.role == "decode" and not _meets(worker) for worker in serving)
    )


def check_somebody_can(asked: Relayable, serving: Sequence[Worker]) -> None:
    """Raise a 501 unless there are workers, whatever their state, that can take the request."""
    if any(can_take(worker, asked) for worker in serving):
        return
    if not asked.api.generates or not any(may_have(worker, asked.api) for worker in serving):
        raise nobody(asked)
    raise not_implemented(
        f"the workers of {asked.model!r} work in pairs, which give one answer to one prompt and do not tell of "
        "the prompt's tokens: ask for one at a time"
    )


def nobody(asked: Relayable) -> SmgError:
    """Return the error for an API that no worker of the model has."""
    return not_implemented(f"no worker of {asked.model!r} serves {asked.api.paths[0]}")


def _meets(worker: Worker) -> bool:
    """Whether the worker is half of a pair that meets in a room."""
    pairing = worker.pairing
    return pairing is not None and pairing.style == "room"
