"""Several processes spend from one account of a vendor that tells its bucket: simulated, with news that come late."""

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from smg_chaos.vendor.errors.vendor_error import VendorError
from smg_chaos.vendor.limits.limit_headers import headers_of
from smg_chaos.vendor.limits.rate_buckets import RateBuckets
from smg_node.providers.rates.rate_limits import RateLimits

START = 1_790_000_000.0
PER_MINUTE = 600


@dataclass
class Account:
    """One vendor's account, and processes that each hear of the others' news 50 to 350 ms late."""

    offered: Sequence[Callable[[float], float]]
    """Calls that each process is asked for in a second, at a time since the start."""
    seed: int
    span_s: float = 90.0
    latency_s: float = 0.01
    tokens: float = 0.0
    shared: bool = True
    rates: RateBuckets = field(default_factory=lambda: RateBuckets(PER_MINUTE, 0))
    refused: int = 0
    let_in: int = 0
    held_back: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.limits = [RateLimits("openai") for _ in self.offered]
        self.by_process = [0 for _ in self.offered]
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.count = 0

    def at(self, moment: float, act: Callable[[float], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (moment, self.count, act))

    def run(self) -> "Account":
        for process in range(len(self.offered)):
            self.at(START, lambda now, process=process: self.ask(process, now))  # type: ignore[misc]  # bound now
            if self.shared:
                self.at(
                    START + self.chance.random() / 4,
                    lambda now, process=process: self.publish(process, now),  # type: ignore[misc]  # bound now
                )
        while self.events[0][0] < START + self.span_s:
            moment, _, act = heapq.heappop(self.events)
            act(moment)
        return self

    def ask(self, process: int, now: float) -> None:
        rate = self.offered[process](now - START)
        pause_s = self.chance.expovariate(rate) if rate else 0.1
        self.at(now + pause_s, lambda later: self.ask(process, later))
        if not rate:
            return
        limits, need = self.limits[process], {"requests": 1.0, "tokens": self.tokens}
        if limits.wait_s(need, now) > 0:
            self.held_back += 1
            limits.ask(need, now)
            return
        call = limits.begin(need, now)
        way_s = self.latency_s * (0.5 + self.chance.random())
        self.at(now + way_s, lambda then: self.reach(process, call, then, way_s))

    def reach(self, process: int, call: int, now: float, way_s: float) -> None:
        """Let a call reach the vendor."""
        try:
            buckets = self.rates.admit("key", int(self.tokens), now)
        except VendorError as error:
            self.refused += 1
            wait_s = error.retry_after_s or 0.0
            limits = self.limits[process]

            def refuse(then: float) -> None:
                limits.end(call)
                limits.close(wait_s, then)

            self.at(now + way_s, refuse)
            return
        self.let_in += 1
        self.by_process[process] += 1
        told = headers_of("openai", buckets, now, now)
        self.at(now + way_s, lambda then: self.limits[process].learn(call, told, then))

    def publish(self, process: int, now: float) -> None:
        for name, _, bucket in self.limits[process].news(now):
            late_s = 0.05 + 0.05 * self.chance.random()
            for other, limits in enumerate(self.limits):
                if other == process:
                    continue
                # As the exchange does: others' demand is a sum over them.
                self.at(
                    now + late_s,
                    lambda then, hear=limits.hear, told=(name, bucket, other): hear(  # type: ignore[misc]  # bound now
                        told[0], told[1], self.wanted_by_others(told[2], told[0], then), then
                    ),
                )
        self.at(now + 0.25, lambda later: self.publish(process, later))

    def wanted_by_others(self, process: int, name: str, now: float) -> float:
        return sum(
            wanted
            for other, limits in enumerate(self.limits)
            if other != process
            for what, wanted, _ in limits.news(now)
            if what == name
        )

    @property
    def refused_part(self) -> float:
        return self.refused / max(1, self.refused + self.let_in)

    @property
    def used_part(self) -> float:
        """What was spent of what there was: a full bucket, and what came back."""
        return self.let_in / (PER_MINUTE + PER_MINUTE / 60 * self.span_s)


def steady(rate: float) -> Callable[[float], float]:
    return lambda _: rate


def from_then(begin_s: float, rate: float) -> Callable[[float], float]:
    return lambda since_s: rate if since_s >= begin_s else 0.0


def in_turns(at: int, of: int, rate: float) -> Callable[[float], float]:
    return lambda since_s: rate if int(since_s) % of == at else 0.0


LOADS = {
    "even": [steady(20.0)] * 3,
    "a little too much": [steady(7.0)] * 3,
    "nearly all at one": [steady(50.0), steady(1.0), steady(1.0)],
    "a newcomer": [steady(30.0), steady(20.0), from_then(70, 40.0)],
    "in turns": [in_turns(at, 3, 40.0) for at in range(3)],
    "twelve processes": [steady(5.0)] * 12,
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_one_call_in_a_hundred_at_most_is_refused(
    load: Sequence[Callable[[float], float]], seed: int
) -> None:
    account = Account(load, seed).run()
    assert account.refused_part <= 0.01
    assert account.used_part >= 0.9


@pytest.mark.parametrize("latency_s", [0.1, 0.5])
def test_a_vendor_that_is_far_away_refuses_as_few(latency_s: float) -> None:
    account = Account(LOADS["even"], 1, latency_s=latency_s).run()
    assert account.refused_part <= 0.01
    assert account.used_part >= 0.9


def test_tokens_are_shared_as_requests_are() -> None:
    rates = RateBuckets(0, 1_000 * PER_MINUTE)
    account = Account(LOADS["even"], 1, tokens=1_000.0, rates=rates).run()
    assert account.refused_part <= 0.01
    assert account.used_part >= 0.9


def test_large_calls_are_made_as_well() -> None:
    rates = RateBuckets(0, 1_000 * PER_MINUTE)
    load = [steady(0.5)] * 3
    # Half of all there is in a minute, each: two in the first minute, and two in the next.
    account = Account(load, 1, tokens=300_000.0, rates=rates).run()
    assert account.let_in >= 3


def test_who_hears_nothing_of_others_is_refused_far_more_often() -> None:
    account = Account(LOADS["even"], 1, shared=False).run()
    assert account.refused_part > 0.05
