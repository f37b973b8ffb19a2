from collections.abc import Sequence

import msgspec
import pytest

from smg_node.admin.views.provider_texts import draw_provider
from smg_node.cluster.providers.definitions import Definitions, read_own
from smg_node.cluster.providers.provider_views import ProviderViews, plain_spec
from smg_node.cluster.providers.target_explanation import explained
from smg_node.cluster.providers.targets import targets_of
from smg_node.config.worker_url import parse_worker_url
from smg_node.core.ids import WorkerId
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.vendor_side import Dressed
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_spec import DeclaredWorker
from smg_node.http.ports.providers import ProviderLimitView, TargetView
from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.provider_book import ProviderBook
from smg_node.providers.target import ProviderTarget
from support.fleet.breakers import breaker, fail
from support.providers.provider_desks import FewWorkers

OWN = """{"providers": {"a": {"kind": "openai", "keys": ["k1", "k2"]}},
          "routes": {"fast": {"targets": ["a/m", {"to": "b/n", "weight": 2, "on": ["rate", "full"]}]}}}"""
NOW_S = 100.0


class StillClock:
    """Time stands still."""

    def now_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic_s(self) -> float:
        return NOW_S


class Stage:
    """The definitions above, and the worker of a/m as a test wants it."""

    def __init__(self, own: str = OWN, only: str = "a/m") -> None:
        self.definitions: Definitions = read_own(own)
        self.book = ProviderBook(
            EngineOptions(), StillClock(), lambda _work, name: pytest.fail(name)
        )
        self.book.update(
            {name: (one.spec, one.secrets) for name, one in self.definitions.providers.items()}
        )
        declared = next(
            one for one in targets_of(self.definitions).values() if one.url.host == only
        )
        self.worker = Worker(declared, WorkerLoad(declared.id), breaker())
        if self.book.has("a"):
            self.target: ProviderTarget = self.book.open("a", "m", public="fast")

    def ready(self) -> None:
        self.worker.engine = self.target
        self.worker.status, self.worker.reason = Status.READY, ""

    def views(self, *workers: Worker) -> ProviderViews:
        return ProviderViews(self.definitions, FewWorkers(*workers), self.book.accounts(), NOW_S)

    def shown(self) -> TargetView:
        return self.views(self.worker).targets("fast")[0]

    async def refuse(self, status: int, body: bytes, times: int = 1) -> None:
        """Let the vendor refuse calls, each with the key whose turn it is."""
        account = self.book.accounts()["a"]
        for _ in range(times):
            _, use = await account.use({})
            dressed = Dressed("/", {}, b"", None, use)
            assert self.target.vendor is not None
            self.target.vendor.refused(status, {}, body, dressed)


def state_of(target: TargetView) -> tuple[str, str, int | None]:
    return target.state, target.code, target.off_ms


def by_to(targets: Sequence[TargetView]) -> dict[str, TargetView]:
    return {target.to: target for target in targets}


def test_a_target_has_its_weight_and_what_it_is_there_for() -> None:
    found = by_to(Stage().views().targets("fast"))
    assert (found["a/m"].weight, found["a/m"].on) == (1.0, ())
    assert (found["b/n"].weight, found["b/n"].on) == (2.0, ("rate", "full"))
    assert found["b/n"].state == "failed"
    assert found["b/n"].reason == "no provider has this name"


def test_a_target_that_nobody_has_looked_at_is_pending_and_then_ready() -> None:
    stage = Stage()
    assert state_of(stage.views().targets("fast")[0]) == ("pending", "", None)
    assert stage.shown().state == "pending"
    stage.ready()
    assert state_of(stage.shown()) == ("ready", "", None)


async def test_keys_that_rest_are_told_with_the_reason() -> None:
    stage = Stage()
    stage.ready()
    wrong = b'{"error": {"message": "wrong key", "code": "invalid_api_key"}}'
    await stage.refuse(401, wrong)
    first = stage.views(stage.worker).provider("a")
    assert first is not None
    assert [(key.reference, key.resting_ms) for key in first.keys] == [
        ("(set)", 60_000),
        ("(set)", 0),
    ]
    assert first.keys[0].why
    assert "k1" not in first.keys[0].why
    assert stage.shown().state == "ready"
    await stage.refuse(401, wrong)
    assert state_of(stage.shown()) == ("off", "upstream_denied", 60_000)
    assert stage.shown().reason == first.keys[0].why


def test_a_key_that_cannot_be_read_turns_the_target_off() -> None:
    stage = Stage(OWN.replace("k2", "file:/run/nowhere/k2"))
    stage.ready()
    target = stage.shown()
    assert (target.state, target.code) == ("off", "provider_secret")
    assert "file:/run/nowhere/k2 cannot be read" in target.reason


def test_a_target_whose_breaker_is_open_is_off() -> None:
    stage = Stage()
    stage.ready()
    fail(stage.worker.breaker, NOW_S, 10)
    target = stage.shown()
    assert (target.state, target.reason, target.code) == ("off", "breaker open", "")
    assert target.off_ms is not None
    assert target.off_ms > 0


def test_a_spec_is_shown_as_it_is_written() -> None:
    said = {
        "kind": "bedrock",
        "region": "us-east-1",
        "credentials": {"kind": "aws", "role_arn": "arn:aws:iam::1:role/r"},
        "models": [{"model": "m", "quirks": ["finish_optional"]}],
    }
    spec = parse_provider("b", said).spec
    assert plain_spec(spec) == said
    assert parse_provider("b", plain_spec(spec)).spec == spec


def test_own_engines_are_shown_by_the_state_of_their_workers() -> None:
    stage = Stage(
        '{"providers": {"a": {"kind": "openai", "keys": ["k"]}}, "routes": {"fast": {"targets": ["a/m", "engines/q"]}}}'
    )
    own = next(one for one in targets_of(stage.definitions).values() if one.url.host == "engines/q")
    target = Worker(own, WorkerLoad(own.id), breaker())
    target.status, target.reason = Status.READY, ""
    server = Worker(
        DeclaredWorker(parse_worker_url("http://e:1")), WorkerLoad(WorkerId("e")), breaker()
    )
    model = RelayedModel("/models/q", 0, ModelSettings(), aliases={"q"})

    def state(*workers: Worker) -> tuple[str, str]:
        shown = by_to(stage.views(target, *workers).targets("fast"))["engines/q"]
        return shown.state, shown.reason

    assert state() == ("off", "no worker of this cluster serves it now")
    server.serve(model)
    assert state(server) == ("off", "none of its workers is ready")
    server.status = Status.READY
    assert state(server) == ("ready", "")
    server.load.full = True
    assert state(server) == ("off", "all of its workers are full")


def test_own_engines_are_asked_as_without_a_route() -> None:
    stage = Stage('{"routes": {"fast": {"targets": ["engines/q"]}}}', only="engines/q")
    [target] = stage.views().targets("fast")
    told = explained(target, None, None, "chat", None)
    assert {way.way for way in told.apis.values()} == {"generated"}
    assert {way.api for way in told.apis.values()} == {"engines"}
    assert set(told.apis) == {"chat", "messages", "generate_content", "responses", "interactions"}


async def test_limits_that_the_vendor_tells_are_shown_by_key() -> None:
    stage = Stage()
    stage.ready()
    account = stage.book.accounts()["a"]
    _, use = await account.use({"requests": 1.0})
    headers = {
        "x-ratelimit-limit-requests": "600",
        "x-ratelimit-remaining-requests": "540",
        "x-ratelimit-reset-requests": "6s",
    }
    account.answered(use, headers)
    shown = stage.views(stage.worker).provider("a")
    assert shown is not None
    (limit,) = shown.limits
    assert limit == ProviderLimitView("(set)", "requests", 600, 540, 6_000, 0, 0.0)
    drawn = draw_provider(msgspec.to_builtins(shown))
    assert "requests 600 540 6s 0s ago" in " ".join(drawn.split())
    assert "k1" not in drawn
