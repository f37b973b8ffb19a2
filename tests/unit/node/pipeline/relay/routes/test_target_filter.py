"""Which targets a request may be given: by its side of a split, by what failed, and never those for shadows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.fleet.health.circuit_breaker import State
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.routes.request_split import RequestSplit
from smg_node.pipeline.relay.routes.target_filter import PATIENCE_S, TargetFilter
from smg_node.providers.routes.split_rule import SplitRule
from smg_node.system_clock import SystemClock

BROKEN = SmgError(ErrorKind.UPSTREAM_FAILED, "it broke")
ALL = "eu 1.0 tenant"
NONE = "eu 0.0 tenant"


@dataclass
class Side:
    pause_s: float = 0.0
    dialects: Sequence[str] = ("chat",)
    provider: str = "p"
    model: str = "v"

    def off_s(self, prompt_tokens: int = 0) -> float:
        return self.pause_s

    def off_error(self, prompt_tokens: int = 0) -> SmgError:
        return SmgError(ErrorKind.RATE_LIMITED, "later", code="upstream_rate_limited")

    def refusal(self, prompt_tokens: int) -> SmgError:
        return self.off_error(prompt_tokens)

    def missed(self, prompt_tokens: int) -> None:
        """Nobody counts it here."""


class VendorEngine(HttpEngine):
    def __init__(self, side: Side) -> None:
        self.vendor = cast("Any", side)


class Breaker:
    def usable(self, now_s: float) -> bool:
        return True

    def state(self, now_s: float) -> State:
        return State.CLOSED


@dataclass
class Target:
    id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    side: Side = field(default_factory=Side)
    routable: bool = True
    own_model: str = ""
    breaker: Breaker = field(default_factory=Breaker)

    @property
    def engine(self) -> HttpEngine:
        engine = VendorEngine(self.side)
        engine.vendor = None if self.own_model else engine.vendor
        return engine


def filter_of(*targets: Target, **body: Any) -> TargetFilter:
    fields = {"model": "r", "messages": [{"role": "user", "content": "hi"}], **body}
    asked = relayable(APIS["chat"], b"{}", fields)
    context = RequestContext("req", 0.0, 9.0, tenant="t", caller="c")
    serving = cast("Sequence[Worker]", targets)
    return TargetFilter(asked, SystemClock(), lambda: serving, context, "r", "", PriceBook())


def told(some: TargetFilter, *targets: Target) -> dict[str, str]:
    return {one.id: some.why_not(cast("Worker", one)) for one in targets}


def test_who_is_in_goes_to_the_targets_of_the_split_only() -> None:
    plain, eu, extra = Target("a"), Target("b", {"split": ALL}), Target("c", {"only": "shadow"})
    some = filter_of(plain, eu, extra)
    assert told(some, plain, eu, extra) == {"a": "not of split eu", "b": "", "c": "not of split eu"}
    assert some.split is not None
    assert some.split.told() == "split eu: in, by tenant"


def test_who_is_out_goes_to_all_others() -> None:
    plain, eu, extra = (
        Target("a"),
        Target("b", {"split": NONE}),
        Target("c", {"only": "split", "split": NONE}),
    )
    some = filter_of(plain, eu, extra)
    assert told(some, plain, eu, extra) == {"a": "", "b": "of split eu", "c": "for split only"}


@pytest.mark.parametrize("how", ["off", "gone", "failed"])
def test_where_no_target_of_the_split_can_the_others_do(how: str) -> None:
    plain, eu = Target("a"), Target("b", {"split": ALL})
    some = filter_of(plain, eu)
    if how == "off":
        eu.side.pause_s = 9.0
    elif how == "gone":
        eu.routable = False
    else:
        some.failed(BROKEN, "b")
    assert told(some, plain)["a"] == ""


def test_who_is_out_may_go_there_where_nobody_else_can() -> None:
    plain, eu, extra = (
        Target("a"),
        Target("b", {"split": NONE}),
        Target("c", {"only": "split", "split": NONE}),
    )
    some = filter_of(plain, eu, extra)
    some.failed(BROKEN, "a")
    assert told(some, plain, eu, extra) == {"a": "", "b": "", "c": "for split only"}


def test_a_target_of_the_split_needs_no_failure_of_others() -> None:
    plain, eu = Target("a"), Target("b", {"split": ALL, "on": "rate"})
    assert told(filter_of(plain, eu), plain, eu) == {"a": "not of split eu", "b": ""}
    plain, eu = Target("a"), Target("b", {"split": NONE, "on": "rate"})
    assert told(filter_of(plain, eu), plain, eu) == {"a": "", "b": "joins after: rate"}


def test_a_split_that_is_over_is_as_none() -> None:
    eu = Target("b", {"split": "eu 1.0 tenant 1"})
    extra = Target("c", {"split": "eu 1.0 tenant 1", "only": "split"})
    some = filter_of(Target("a"), eu, extra)
    assert some.split is None
    assert told(some, eu, extra) == {"b": "", "c": "for split only"}


def test_a_target_that_is_left_alone_says_why() -> None:
    off, other = Target("a", side=Side(9.0)), Target("b", side=Side(dialects=()))
    some = filter_of(off, other)
    assert told(some, off) == {"a": "off: upstream_rate_limited"}
    joins = Target("c", {"on": "rate,full"})
    assert told(filter_of(Target("a"), joins), joins) == {"c": "joins after: rate,full"}


def test_all_off_is_told_without_waiting_for_a_target_of_shadows() -> None:
    off, shadow = Target("a", side=Side(9.0)), Target("b", {"only": "shadow"})
    with pytest.raises(SmgError) as caught:
        filter_of(off, shadow).check()
    assert caught.value.code == "upstream_rate_limited"
    filter_of(Target("a"), shadow).check()


def test_all_off_is_told_without_waiting_for_own_engines_of_a_split_that_is_anothers() -> None:
    engines = Target("b", {"only": "split", "split": NONE}, own_model="m")
    with pytest.raises(SmgError) as caught:
        filter_of(Target("a", side=Side(9.0)), engines).check()
    assert caught.value.code == "upstream_rate_limited"
    # Who is on its side may wait for them.
    engines.labels = {"only": "split", "split": ALL}
    filter_of(Target("a", side=Side(9.0)), engines).check()


@pytest.mark.parametrize(
    ("what", "context", "fields", "by"),
    [
        ("tenant", {"tenant": "t"}, {}, "tenant"),
        ("tenant", {}, {}, "conversation"),
        ("key", {"key_id": "k"}, {}, "key"),
        ("key", {"caller": "c"}, {}, "key"),
        ("user", {}, {"user": "u"}, "user"),
        ("user", {}, {"metadata": {"user_id": "u"}}, "user"),
        ("user", {}, {"user": 7, "metadata": []}, "conversation"),
        ("conversation", {"tenant": "t"}, {}, "conversation"),
    ],
)
def test_what_a_request_lacks_is_replaced_by_its_conversation(
    what: str, context: dict[str, Any], fields: dict[str, Any], by: str
) -> None:
    made = RequestContext("req", 0.0, 9.0, **context)
    rule = SplitRule("eu", 0.5, what)
    sides = {
        RequestSplit(rule, "r", made, "", fields, lambda at=at: f"talk-{at}", 0).side  # type: ignore[misc]  # bound now
        for at in range(40)
    }
    assert RequestSplit(rule, "r", made, "", fields, lambda: "talk", 0).by == by
    assert len(sides) == (2 if by == "conversation" else 1)


def test_a_target_that_rests_shortly_is_chosen_where_its_cache_may_be_worth_the_wait() -> None:
    for word, shortly, long in (("affinity", True, False), ("weighted", False, False)):
        for pause_s, fits in ((PATIENCE_S, shortly), (PATIENCE_S + 0.1, long)):
            target = Target("a", {"choose": word}, Side(pause_s))
            assert filter_of(target).fits(cast("Worker", target)) is fits


def test_where_all_rest_shortly_a_route_by_caches_refuses_nobody() -> None:
    filter_of(Target("a", {"choose": "affinity"}, Side(1.0))).check()
    with pytest.raises(SmgError, match="later"):
        filter_of(Target("a", {"choose": "weighted"}, Side(1.0))).check()
