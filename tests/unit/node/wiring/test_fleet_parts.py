import random
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from smg_node.cluster.membership.cluster_interface import ReadinessReasons
from smg_node.cluster.workers.sticky_sessions import Sessions
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.config.schema.problems import ConfigurationError
from smg_node.core.errors import SmgError
from smg_node.engines.disaggregation import Pairing
from smg_node.engines.engine import Contract
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.http.ports.node import WorkerRequest
from smg_node.pipeline.placement.placement_request import EncodeRule
from smg_node.pipeline.placement.policy_settings import build_policies
from smg_node.routing.policy_registry import OwnBindings
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared.media import MEDIA_METRICS
from smg_node.wiring.base import Base
from smg_node.wiring.fleet_parts import FleetService
from smg_node.wiring.placement_parts import build_placer
from support.engines.fake_engine import card
from support.fleet.fleet_builder import fleet_of
from support.fleet.fleet_world import Board, FakeSharedWorkers, fleet_world
from support.tools.configuration import load


def desk(
    folder: Path,
    *,
    draining: bool = False,
    doubts: ReadinessReasons | None = None,
    networks: tuple[str, ...] = (),
) -> FleetService:
    fleet, clock = fleet_of({}, folder), SystemClock()
    shared = FakeSharedWorkers("n1", Board(["n1"]))
    return FleetService(
        fleet,
        Networks(networks),
        registry=ClusterRegistry(shared, fleet, monotonic_s=clock.monotonic_s),
        sessions=Sessions(shared.sticky, clock.now_ms),
        clock=clock,
        workers_ready_min=0,
        draining=lambda: draining,
        doubts=lambda: doubts or ReadinessReasons(),
    )


def test_a_node_without_doubts_is_ready(tmp_path: Path) -> None:
    health = desk(tmp_path).health()
    assert (health.ready, health.draining, health.reasons, health.degraded) == (True, False, (), ())


def test_what_the_cluster_has_against_it_keeps_a_node_from_being_ready(tmp_path: Path) -> None:
    health = desk(tmp_path, doubts=ReadinessReasons(["mesh: joining"], ["joining"])).health()
    assert (health.ready, health.reasons) == (False, ("mesh: joining",))
    assert health.degraded == ("joining",)


def test_what_is_only_worth_knowing_does_not(tmp_path: Path) -> None:
    health = desk(tmp_path, doubts=ReadinessReasons(degraded=["isolated"])).health()
    assert (health.ready, health.degraded) == (True, ("isolated",))


def test_a_draining_node_says_so_once(tmp_path: Path) -> None:
    health = desk(tmp_path, draining=True).health()
    assert (health.ready, health.draining, health.reasons) == (
        False,
        True,
        ("the node is draining",),
    )


def test_how_many_workers_are_enough_may_change(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.retune(workers_ready_min=2)
    assert made.health().reasons == ("0 workers are ready, 2 are needed",)


def test_an_address_outside_the_allowed_networks_is_refused_and_not_registered(
    tmp_path: Path,
) -> None:
    made = desk(tmp_path, networks=("10.0.0.0/8",))
    with pytest.raises(SmgError) as caught:
        made.add(WorkerRequest("grpc://192.168.0.1:1"))
    assert caught.value.status == 403
    assert made.workers() == []
    assert made.add(WorkerRequest("grpc://10.0.0.1:1")).url == "grpc://10.0.0.1:1"


async def test_a_node_whose_workers_cannot_do_anything_alone_waits_for_their_partners(
    tmp_path: Path,
) -> None:
    async with fleet_world(tmp_path, "n1", hosts=("p", "d", "r")) as world:
        node = world["n1"]
        for host, role in (("p", "prefill"), ("d", "decode")):
            node.engines[host].model_card = card(
                contract=Contract.VLLM, role=role, pairing=Pairing("nixl", "g")
            )
        node.desk.retune(workers_ready_min=1)
        node.desk.add(WorkerRequest("grpc://p:1"))
        await world.until(lambda node: node.ready("p"))
        health = node.desk.health()
        assert (health.ready, health.workers_ready, health.workers_total) == (False, 0, 1)
        assert health.reasons == (
            "0 workers are ready, 1 are needed",
            "worker grpc://p:1: it is there for prefill only, and no worker that is ready can be its"
            " partner",
        )
        (shown,) = node.desk.models()
        assert (shown.workers, shown.workers_ready, shown.roles) == (1, 0, {})
        assert shown.parsers is not None
        assert (shown.parsers.tools.name, shown.parsers.tools.source) == ("plain", "nothing")
        node.desk.add(WorkerRequest("grpc://d:1"))
        await world.until(lambda node: node.ready("p", "d"))
        health = node.desk.health()
        assert (health.ready, health.workers_ready, health.reasons) == (True, 2, ())
        node.desk.add(WorkerRequest("grpc://r:1"))
        node.desk.drain("grpc://d:1")
        await world.until(lambda node: node.worker("r").routable)
        health = node.desk.health()
        assert (health.ready, health.workers_ready, health.workers_total) == (True, 1, 3)
        (shown,) = node.desk.models()
        assert (shown.workers, shown.workers_ready, shown.roles) == (3, 1, {"regular": 1})


@pytest.mark.parametrize(
    ("flags", "knob"),
    [
        (["--policy", "power_of_too"], "routing.policy"),
        (["--prefill-policy", "cash_aware"], "routing.prefill_policy"),
        (["--decode-policy", "lest_load"], "routing.decode_policy"),
        (["--models.m.prefill-policy", "nobody"], "models.m.prefill_policy"),
        (["--models.m.decode-policy", "nobody"], "models.m.decode_policy"),
        (["--routing.manual-delegate", "nobody"], "routing.manual_delegate"),
    ],
)
def test_a_policy_that_there_is_not_stops_the_start_with_the_knobs_name(
    flags: list[str], knob: str
) -> None:
    settings = load(flags).settings
    with pytest.raises(ConfigurationError, match=knob):
        build_policies(settings, OwnBindings())


def test_every_word_about_policies_reaches_what_chooses_workers(tmp_path: Path) -> None:
    flags = [
        *("--policy", "bucket", "--prefill-policy", "random", "--decode-policy", "power_of_two"),
        *("--models.m.policy", "manual", "--models.m.decode-policy", "round_robin"),
        *("--models.n.prefill-policy", "least_load", "--no-routing.fallback-regular"),
        *("--encode-policy", "round_robin", "--models.m.encode-policy", "random"),
        *("--no-routing.encode-fallback", "--routing.encode-timeout-s", "7"),
    ]
    settings = load(flags).settings
    meters = SimpleNamespace(cells=Cells(MEDIA_METRICS, before=lambda: None))
    ground = SimpleNamespace(clock=SystemClock(), rng=random.Random(1), meters=meters)
    placer = build_placer(
        settings,
        fleet_of({}, tmp_path),
        build_policies(settings, OwnBindings()),
        cast(Base, ground),
    )
    options = placer._options
    assert (options.policy, options.policies) == ("bucket", {"m": "manual"})
    assert (options.prefill_policy, options.prefill_policies) == ("random", {"n": "least_load"})
    assert options.encode == EncodeRule("round_robin", fallback=False, timeout_s=7)
    assert options.encode_policies == {"m": "random"}
    assert (options.decode_policy, options.decode_policies) == (
        "power_of_two",
        {"m": "round_robin"},
    )
    assert options.fallback_regular is False
