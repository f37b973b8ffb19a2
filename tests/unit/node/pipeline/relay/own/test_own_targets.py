"""Which target of a route a request may be given: own engines while they have room, vendors by their accounts."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import pytest

from smg_node.config.worker_url import PROVIDER, WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.request_context import RequestContext
from smg_node.engines.engine import OWN_MODEL
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.transport import HttpTransport
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_spec import ON_LABEL, DeclaredWorker
from smg_node.pipeline.relay.relay_request import APIS, NATIVE, OWN, Relayable, relayable
from smg_node.pipeline.relay.routes.target_filter import TargetFilter
from support.engines.fake_engine import card
from support.fleet.breakers import breaker, fail

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
NOW_S = 100.0
CONTEXT = RequestContext("req", 0.0, 9.0)


class StillClock:
    """Time stands still."""

    def now_ms(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return NOW_S


class Side:
    """A vendor that speaks Messages, and is off for as long as a test says."""

    provider, model = "ant", "claude"
    dialects = ("messages",)

    def __init__(self) -> None:
        self.pause_s = 0.0

    def off_s(self, prompt_tokens: int = 0) -> float:
        return self.pause_s

    def off_error(self, prompt_tokens: int = 0) -> SmgError:
        return SmgError(ErrorKind.RATE_LIMITED, "off", retry_after_s=self.pause_s)

    def refusal(self, prompt_tokens: int) -> SmgError:
        return self.off_error(prompt_tokens)

    def missed(self, prompt_tokens: int) -> None:
        """Nobody counts it here."""


def target(to: str, *on: str, side: Side | None = None) -> Worker:
    labels = {ON_LABEL: ",".join(on)} if on else {}
    url = WorkerUrl(PROVIDER, to, 0, model="m", labels=MappingProxyType(labels))
    declared = DeclaredWorker(url)
    one = Worker(declared, WorkerLoad(declared.id), breaker())
    provider, _, model = to.partition("/")
    own = {OWN_MODEL: model} if provider == "engines" else {}
    one.card = replace(card("m"), server=own)
    engine = HttpEngine(cast("HttpTransport", None), EngineOptions(), model="m")
    engine.vendor = cast("VendorSide | None", side)
    one.engine = engine
    one.status = Status.READY
    return one


class Stage:
    """Targets of one route: own engines with room or without, and a vendor."""

    def __init__(self, *engines_on: str, vendor_on: Sequence[str] = ()) -> None:
        self.side = Side()
        self.own = target("engines/qwen3", *engines_on)
        self.vendor = target("ant/claude", *vendor_on, side=self.side)
        self.room = True
        self.targets = (self.own, self.vendor)

    def filter(self, api: str = "chat") -> TargetFilter:
        apis = {**APIS, **{one.name: one for one in NATIVE.values()}, "own": OWN}
        asked: Relayable = relayable(apis[api], b"{}", BODY)
        place = CONTEXT, "m", "", PriceBook()
        return TargetFilter(
            asked, StillClock(), lambda: self.targets, *place, has_room=lambda name: self.room
        )

    def fitting(self, filter_: TargetFilter | None = None, api: str = "chat") -> str:
        """Return which fit: e for own engines, v for the vendor."""
        found = filter_ or self.filter(api)
        marks = zip("ev", self.targets, strict=True)
        return "".join(mark for mark, one in marks if found.fits(one))


def failure(code: str, kind: ErrorKind = ErrorKind.UPSTREAM_FAILED) -> SmgError:
    return SmgError(kind, "no", code=code)


OVERFLOW = ("full", "broken")


def test_both_fit_where_both_are_there() -> None:
    assert Stage().fitting() == "ev"


def test_a_vendor_that_is_there_for_failures_waits_for_one() -> None:
    stage = Stage(vendor_on=OVERFLOW)
    assert stage.fitting() == "e"
    found = stage.filter()
    found.failed(failure("upstream_error"), stage.own.id)
    assert stage.fitting(found) == "ev"


def test_engines_without_room_are_not_there() -> None:
    stage = Stage(vendor_on=OVERFLOW)
    stage.room = False
    assert stage.fitting() == "v"
    assert not stage.filter().is_last(stage.own)


def test_engines_without_room_are_waited_for_where_nobody_else_could_be_asked() -> None:
    stage = Stage(vendor_on=OVERFLOW)
    stage.room, stage.side.pause_s = False, 30.0
    assert stage.fitting() == "e"
    assert stage.filter().is_last(stage.own)


def test_a_vendor_with_an_open_breaker_is_nobody_else() -> None:
    stage = Stage()
    stage.room = False
    assert stage.fitting() == "v"
    fail(stage.vendor.breaker, NOW_S, 10)
    assert "e" in stage.fitting()


@pytest.mark.parametrize(
    ("code", "kind", "joins"),
    [
        ("upstream_rate_limited", ErrorKind.RATE_LIMITED, True),
        ("upstream_quota", ErrorKind.OVERLOADED, True),
        ("upstream_overloaded", ErrorKind.OVERLOADED, True),
        ("upstream_denied", ErrorKind.UPSTREAM_FAILED, False),
        ("upstream_error", ErrorKind.UPSTREAM_FAILED, False),
    ],
)
def test_engines_join_after_failures_of_the_vendor_that_they_are_there_for(
    code: str, kind: ErrorKind, joins: bool
) -> None:
    stage = Stage("full", "rate", "no_money")
    found = stage.filter()
    assert stage.fitting(found) == "v"
    found.failed(failure(code, kind), stage.vendor.id)
    assert stage.fitting(found) == ("ev" if joins else "v")


def test_engines_join_at_once_where_the_vendor_is_off() -> None:
    stage = Stage("rate")
    stage.side.pause_s = 5.0
    assert stage.fitting() == "e"


def test_engines_that_would_have_had_it_wait_come_last_from_then_on() -> None:
    stage = Stage()
    found = stage.filter()
    found.passed(stage.own)
    assert stage.fitting(found) == "v"
    stage.side.pause_s = 5.0
    assert stage.fitting(found) == "e"


def test_one_that_is_drained_is_no_other_one() -> None:
    stage = Stage(vendor_on=OVERFLOW)
    stage.room = False
    stage.vendor.declared = replace(stage.vendor.declared, draining=True)
    assert "e" in stage.fitting()


@pytest.mark.parametrize(
    ("api", "who"),
    [("chat", "ev"), ("messages", "ev"), ("completions", "e"), ("embeddings", "e"), ("own", "e")],
)
def test_own_engines_may_be_asked_in_every_api(api: str, who: str) -> None:
    assert Stage().fitting(api=api) == who


def test_only_workers_of_the_kind_that_is_wanted_fit() -> None:
    stage = Stage()
    asked = relayable(APIS["chat"], b"{}", BODY)
    place = CONTEXT, "m", "", PriceBook()
    found = TargetFilter(
        asked, StillClock(), lambda: stage.targets, *place, kind=lambda one: one is stage.own
    )
    assert stage.fitting(found) == "e"
    assert list(found.serving()) == [stage.own]


def test_all_that_are_off_say_when_the_first_is_back_unless_engines_may_be_waited_for() -> None:
    stage = Stage()
    stage.room, stage.side.pause_s = False, 5.0
    stage.filter().check()
    stage.targets = (stage.vendor, stage.vendor)
    with pytest.raises(SmgError, match="off"):
        stage.filter().check()
