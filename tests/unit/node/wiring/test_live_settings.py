"""Every setting that may be changed while running reaches the part it is about, and nothing else listens."""

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from smg_mesh.shared import Shared
from smg_node.admission.admission import Admission
from smg_node.cluster.approvals.lazy_approvals import LazyApprovals
from smg_node.cluster.issuers.lazy_issuers import LazyIssuers
from smg_node.cluster.membership.cluster_interface import ClusterInterface
from smg_node.cluster.providers.cache_sharing import CacheRows
from smg_node.cluster.service_factory import listen
from smg_node.cluster.settings.live_settings import LiveSettings
from smg_node.cluster.usage.usage_factory import build_usage
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.config.frozen_settings import is_section, plain_settings
from smg_node.config.schema.live_keys import LIVE
from smg_node.config.schema.live_settings import LiveError, LiveKnob
from smg_node.config.settings import Settings
from smg_node.core.ids import IdSource
from smg_node.core.prices.price_list import PriceBook
from smg_node.dialects.thought_seals import PlainVault
from smg_node.fleet.fleet import Fleet
from smg_node.history.service.lazy_history import LazyHistory
from smg_node.http.http_parts import HttpParts
from smg_node.pipeline.placement.placement_request import EncodeRule
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.relay.relay_context import ShadowPost
from smg_node.pipeline.tool_loop.loop_parts import LoopParts
from smg_node.pipeline.tool_loop.ports import LoopOptions
from smg_node.pipeline.tool_loop.search.tool_searches import ToolSearches
from smg_node.pipeline.tool_loop.serving_generations import ServingGenerations
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.retry_budget import RetryBudgets
from smg_node.system_clock import SystemClock
from smg_node.telemetry.logs.access_log import AccessLog
from smg_node.telemetry.logs.logs import Logs
from smg_node.telemetry.metrics.meters import Meters
from smg_node.telemetry.traces.tracer import TraceOptions, Tracer
from smg_node.wiring.base import Base
from smg_node.wiring.discovery.live_discovery import LiveDiscovery
from smg_node.wiring.fleet_parts import FleetService
from smg_node.wiring.media_parts import LazyMedia
from smg_node.wiring.serving_parts import build_admission, build_http_parts
from smg_node.wiring.state_cache import LazyStateCache
from support.http.access_lines import LineList
from support.http.fake_cluster import FakeCluster
from support.rights.fake_rights import FakeRights, FakeRules
from support.shared_sources import SharedSources
from support.state.fake_shared_state import SharedWorld


class Told:
    """Stands for everything that is told of changes, and remembers the last word under each name."""

    def __init__(self) -> None:
        self.words: dict[str, Any] = {}
        self.models = self
        self.moved: list[object] = []

    def retune(self, *given: Any, **named: Any) -> None:
        self.words["retune"] = (given, named)

    def retune_engines(self, **named: Any) -> None:
        self.words["engines"] = named

    def retune_listening(self, *given: Any) -> None:
        self.words["listening"] = given

    def watch(self, changed: object) -> None:
        """Nothing ever changes by itself here."""

    def audit(self, *, on: bool) -> None:
        self.words["audit"] = on

    def watch_held(self, heard: object) -> None:
        """Nothing is ever held here."""

    def set_level(self, level: str) -> None:
        self.words["level"] = level


def deep(section: Any) -> Any:
    """All values of settings, as they are."""
    if not is_section(section):
        return section
    return {name: deep(value) for name, value in section}


class Wired:
    """A node's wiring, with what it would move replaced by listeners."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fleet, self.desk, self.logs = Told(), Told(), Told()
        self.models = Told()
        self.fleet.models = self.models
        self.placer, self.preparer, self.retries = Told(), Told(), Told()
        self.policies, self.admission, self.rights = Told(), Told(), Told()
        self.history, self.media = Told(), Told()
        self._overhear(monkeypatch)
        clock, rng = SystemClock(), random.Random(1)
        meters = Meters(CollectorRegistry(), version="1")
        self.base = Base(
            clock=clock,
            rng=rng,
            ids=IdSource(clock, rng),
            meters=meters,
            tracer=Tracer(TraceOptions(), rng),
            access=AccessLog(LineList()),
            logs=cast("Logs", self.logs),
            threads=ThreadPoolExecutor(1),
            prices=PriceBook(),
            post=ShadowPost(),
            state_cache=LazyStateCache(plain_settings(Settings()), clock, meters),
            approvals=LazyApprovals("a", IdSource(clock, rng), clock, meters),
            issuers=LazyIssuers("a", plain_settings(Settings()).auth, clock, rng, meters),
            ending=AsyncExitStack(),
        )
        self.world = SharedWorld("a")
        desks = self.world.desks("a")
        self.live: LiveSettings = desks.live
        alone = cast("ClusterInterface", SimpleNamespace(desk=FakeCluster(), mesh=None))
        usage = build_usage(self.live.own, self.live, alone, self.base)
        self.parts: HttpParts = build_http_parts(
            self.live.own,
            self.base,
            cast("Fleet", self.fleet),
            cast("FleetService", self.desk),
            FakeCluster(),
            desks,
            usage,
            sticky=OwnBindings(),
            vault=PlainVault(),
            caches=cast("CacheRows", SimpleNamespace()),
            history=cast(
                "LazyHistory",
                SimpleNamespace(
                    desks=lambda *_: None,
                    retune=lambda now: self.history.retune(deep(now)),
                ),
            ),
        )
        build_admission(self.live.own, self.base, self.live, FakeRules(), FakeRights())
        shared = SimpleNamespace(rights=self.rights, watch_held=self.rights.watch_held)
        listen(self.live.own, cast("Shared", shared), desks)
        sources = cast("Shared", SimpleNamespace(discovery=SharedSources("a").definitions["a"]))
        self.discovery = LiveDiscovery(
            self.live.own, self.base, sources, cast("ClusterRegistry", None), is_leaving=bool
        ).connect(self.parts, self.live)

    def loops(self) -> LoopParts:
        """What runs tools of this side."""
        return cast("ServingGenerations", self.parts.generations)._parts()

    def _overhear(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have the parts that are built here told elsewhere."""
        for kind, told in (
            (Placer, self.placer),
            (Preparer, self.preparer),
            (RetryBudgets, self.retries),
            (Policies, self.policies),
            (Admission, self.admission),
        ):
            monkeypatch.setattr(
                kind, "retune", lambda _, *given, _told=told, **named: _told.retune(*given, **named)
            )
        monkeypatch.setattr(LazyMedia, "retune", lambda _, now: self.media.retune(deep(now.media)))

    def seen(self) -> Mapping[str, Any]:
        """What every part was told, and what the surface runs with."""
        parts = {
            name: dict(getattr(self, name).words)
            for name in [
                "fleet",
                "models",
                "desk",
                "logs",
                "placer",
                "preparer",
                "retries",
                "policies",
                "admission",
                "rights",
                "history",
                "media",
            ]
        }
        return {
            **parts,
            "options": self.parts.options,
            "reading": self.parts.reading,
            "access": self.base.access.enabled,
            "ratio": self.base.tracer._ratio,
            "loops": self._loops(),
            "exposed": self.parts.exposed_models(),
            "discovery": self.discovery.settings.discovery.empty_confirm_s,
        }

    def _loops(self) -> object:
        """What runs of tools are bound by, and how tools are searched for."""
        loops = self.loops()
        assert isinstance(loops.search, ToolSearches)
        return loops.options(), loops.search._options()


def another(knob: LiveKnob) -> Any:
    """A value that is not the default."""
    match knob.kind:
        case "switch":
            return not knob.default
        case "choice":
            return next(word for word in knob.choices if word != knob.default)
        case "words":
            return ["another-name"]
        case "text":
            return "glm"  # the only texts are parsers' names
        case _:
            return knob.low if knob.default != knob.low else knob.high


@pytest.fixture
def wired(monkeypatch: pytest.MonkeyPatch) -> Wired:
    return Wired(monkeypatch)


@pytest.mark.parametrize("key", LIVE)
def test_a_change_of_each_setting_reaches_the_part_it_is_about(wired: Wired, key: str) -> None:
    if key == "models/NAME/mcp.description":
        # Of a model that is no tool nothing is told.
        wired.world.nodes["a"].settings.set("models/org/model/mcp.expose", True, version=None)
        wired.live.refresh()
    before = wired.seen()
    key = key.replace("NAME", "org/model")
    knob, _ = wired.live.table.find(key)
    wired.world.nodes["a"].settings.set(key, another(knob), version=None)
    wired.live.refresh()
    changed = {name for name, words in wired.seen().items() if words != before[name]}
    assert changed, "nobody follows this setting"
    value = wired.live.value(key)
    said = [wired.seen()[name] for name in sorted(changed)]
    word = "DEBUG" if value == "debug" else value
    assert any(str(one) in str(said) for one in (value, word))


def test_nothing_is_told_before_anything_changes(wired: Wired) -> None:
    assert all(not getattr(wired, name).words for name in ("fleet", "desk", "logs", "placer"))


def test_what_was_changed_goes_back_when_the_setting_is_taken_away(wired: Wired) -> None:
    settings = wired.world.nodes["a"].settings
    options, reading = wired.parts.options, wired.parts.reading
    for key, value in {
        "http.body_max_bytes": 2048,
        "limits.n_max": 1,
        "engine.request_s": 9,
    }.items():
        settings.set(key, value, version=None)
    settings.set("models/m/aliases", ["chat"], version=None)
    wired.live.refresh()
    assert (wired.parts.options.body_max_bytes, wired.parts.reading.n_max) == (2048, 1)
    assert wired.models.words["retune"][0] == ({"m": ("chat",)},)
    for one in settings.all():
        settings.remove(one.key, version=None)
    wired.live.refresh()
    assert (wired.parts.options, wired.parts.reading) == (options, reading)
    assert wired.models.words["retune"][0] == ({},)


def test_limits_of_tool_loops_are_those_of_when_an_answer_begins(wired: Wired) -> None:
    loops = wired.loops()
    assert loops.options() == LoopOptions()
    said = {
        "mcp.rounds_max": 3,
        "mcp.calls_parallel": 2,
        "mcp.output_bytes_max": 2048,
        "mcp.approval_wait_s": 7,
    }
    settings = wired.world.nodes["a"].settings
    for key, value in said.items():
        settings.set(key, value, version=None)
    wired.live.refresh()
    assert loops.options() == LoopOptions(3, 2, 2048, 7)
    for key in said:
        settings.remove(key, version=None)
    wired.live.refresh()
    assert loops.options() == LoopOptions()


def test_each_policy_is_followed_under_its_own_name(wired: Wired) -> None:
    settings = wired.world.nodes["a"].settings
    said = {
        "routing.policy": "bucket",
        "routing.prefill_policy": "random",
        "routing.decode_policy": "power_of_two",
        "routing.fallback_regular": False,
        "models/org/m/policy": "manual",
        "models/org/m/prefill_policy": "round_robin",
        "models/m/decode_policy": "least_load",
        "routing.encode_policy": "random",
        "routing.encode_timeout_s": 3.0,
        "routing.encode_fallback": False,
        "models/m/encode_policy": "round_robin",
    }
    for key, value in said.items():
        settings.set(key, value, version=None)
    wired.live.refresh()
    told = wired.placer.words["retune"][1]
    whole = {name: told[name] for name in ("policy", "prefill_policy", "decode_policy")}
    assert whole == {
        "policy": "bucket",
        "prefill_policy": "random",
        "decode_policy": "power_of_two",
    }
    assert told["policies"] == {"org/m": "manual"}
    assert told["prefill_policies"] == {"org/m": "round_robin"}
    assert told["decode_policies"] == {"m": "least_load"}
    assert told["fallback_regular"] is False
    assert told["encode"] == EncodeRule("random", fallback=False, timeout_s=3.0)
    assert told["encode_policies"] == {"m": "round_robin"}


@pytest.mark.parametrize(
    "key",
    ["routing.prefill_policy", "routing.decode_policy", "models/m/prefill_policy"],
)
def test_a_policy_that_there_is_not_is_no_setting(wired: Wired, key: str) -> None:
    with pytest.raises(LiveError, match="did you mean 'least_load'"):
        wired.live.table.read(key, "lest_load")
