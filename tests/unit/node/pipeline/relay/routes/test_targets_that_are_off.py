"""Targets of one request: those that are off or spent are passed over, and the first to come back says when."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from smg_node.admission.header_values import HeaderValues
from smg_node.admission.limit_errors import LimitedError, refusal
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.routes.target_filter import TargetFilter
from smg_node.system_clock import SystemClock
from support.fleet.breakers import breaker, fail

BODY = {"model": "m", "messages": [{"role": "user", "content": "x" * 400}]}


class Side:
    dialects = ("chat",)

    def __init__(self, provider: str, off_s: float = 0.0) -> None:
        self.provider = provider
        self.model = "v"
        self.pause_s = off_s
        self.missed_tokens: list[int] = []
        self.asked_tokens = 0

    def off_s(self, prompt_tokens: int = 0) -> float:
        self.asked_tokens = prompt_tokens
        return self.pause_s

    def off_error(self, prompt_tokens: int = 0) -> SmgError:
        return SmgError(ErrorKind.RATE_LIMITED, f"{self.provider} is off", code="off")

    def refusal(self, prompt_tokens: int) -> SmgError:
        return self.off_error(prompt_tokens)

    def missed(self, prompt_tokens: int) -> None:
        self.missed_tokens.append(prompt_tokens)


class Engine(HttpEngine):
    def __init__(self, side: Side) -> None:
        self.vendor = cast("Any", side)


class Target:
    """A worker that is a model at a vendor."""

    routable = True
    role = "regular"
    own_model = ""

    def __init__(self, side: Side, labels: Mapping[str, str]) -> None:
        self.id = side.provider
        self.engine = Engine(side)
        self.labels = labels
        self.breaker = breaker()


def target(side: Side, on: str = "") -> Worker:
    return cast("Worker", Target(side, {"on": on} if on else {}))


def filter_of(*targets: Worker) -> TargetFilter:
    asked = relayable(APIS["chat"], msgspec.json.encode(BODY), dict(BODY))
    context = RequestContext("req", 0.0, 9.0)
    return TargetFilter(asked, SystemClock(), lambda: targets, context, "m", "", PriceBook())


def spent(provider: str, wait_s: float) -> LimitedError:
    values = HeaderValues(
        f"provider={provider}#requests/minute", "requests", "exact", 5, 0, 9_000, 0
    )
    found = refusal(
        [values], values, window_ms=60_000, cost=1, retry_after_s=wait_s, reason="used_up"
    )
    found.provider = provider
    return found


def test_a_target_that_is_off_is_told_once_what_it_missed() -> None:
    off, on = Side("a", off_s=4.0), Side("b")
    first, second = target(off), target(on)
    targets = filter_of(first, second)
    targets.check()
    assert [targets.fits(one) for one in (first, second, first)] == [False, True, False]
    (missed,) = off.missed_tokens
    assert 90 <= missed <= 120
    assert (on.missed_tokens, on.asked_tokens) == ([], missed)


def test_a_spent_provider_is_passed_over_for_this_request_alone() -> None:
    first, second = target(Side("a")), target(Side("b"))
    targets = filter_of(first, second)
    targets.spent(spent("a", 9.0))
    targets.check()
    assert [targets.fits(one) for one in (first, second)] == [False, True]
    assert filter_of(first, second).fits(first)


def test_a_target_for_such_failures_joins_in_its_place() -> None:
    first, second = target(Side("a")), target(Side("b"), on="rate,full")
    targets = filter_of(first, second)
    assert not targets.fits(second)
    targets.spent(spent("a", 9.0))
    assert targets.fits(second)


def test_where_all_are_off_or_spent_the_first_to_come_back_says_when() -> None:
    first, second = target(Side("a")), target(Side("b", off_s=4.0))
    targets = filter_of(first, second)
    refused = spent("a", 3.0)
    targets.spent(refused)
    with pytest.raises(LimitedError) as found:
        targets.check()
    assert found.value is refused
    targets = filter_of(first, second)
    targets.spent(spent("a", 9.0))
    with pytest.raises(SmgError, match="b is off"):
        targets.check()


def test_where_all_failed_too_often_nobody_waits_and_the_provider_is_named() -> None:
    clock = SystemClock()
    first, second = target(Side("a")), target(Side("b", off_s=4.0))
    targets = filter_of(first, second)
    for _ in range(20):
        fail(first.breaker, clock.monotonic_s())
    assert not first.breaker.usable(clock.monotonic_s())
    with pytest.raises(SmgError, match="the provider 'a' failed too often") as found:
        targets.check()
    assert (found.value.kind, found.value.code) == (ErrorKind.OVERLOADED, "provider_unavailable")
    assert found.value.retry_after_s is not None
    assert 0 < found.value.retry_after_s <= 1.0
    # One that is well is waited for.
    filter_of(first, target(Side("c"))).check()


def test_a_spent_provider_is_not_waited_for_where_a_rest_would_be() -> None:
    labels = {"choose": "affinity"}
    first = cast("Worker", Target(Side("a", off_s=1.0), labels))
    second = cast("Worker", Target(Side("b", off_s=1.0), labels))
    targets = filter_of(first, second)
    assert [targets.fits(one) for one in (first, second)] == [True, True]
    targets.spent(spent("a", 0.5))
    targets.check()
    assert [targets.fits(one) for one in (first, second)] == [False, True]
    refused = spent("b", 0.4)
    targets.spent(refused)
    assert not targets.fits(second)
    with pytest.raises(LimitedError):
        targets.check()


def test_only_a_call_that_would_have_been_made_is_missed() -> None:
    resting, fallback, shadow = Side("a", off_s=1.0), Side("b", off_s=9.0), Side("c", off_s=9.0)
    workers = [
        cast("Worker", Target(resting, {"choose": "affinity"})),
        target(fallback, on="rate"),
        cast("Worker", Target(shadow, {"only": "shadow"})),
    ]
    targets = filter_of(*workers)
    targets.check()
    # The first is waited for, and asked then; the others are for other requests.
    assert [targets.fits(one) for one in workers] == [True, False, False]
    assert [side.missed_tokens for side in (resting, fallback, shadow)] == [[], [], []]
    targets.spent(spent("a", 9.0))
    with pytest.raises(SmgError):
        targets.check()
    assert [len(side.missed_tokens) for side in (resting, fallback, shadow)] == [1, 1, 0]
