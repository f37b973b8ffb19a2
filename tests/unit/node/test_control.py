from pathlib import Path

import pytest

from smg_node.cluster.life import Doubts
from smg_node.cluster.registry import ClusterRegistry
from smg_node.cluster.sessions import Sessions
from smg_node.config.problem import ConfigurationError
from smg_node.control import FleetDesk
from smg_node.core.errors import SmgError
from smg_node.fleet.networks import Networks
from smg_node.http.ports import WorkerWish
from smg_node.pipeline.choosing import build_policies
from smg_node.routing.known import OwnBindings
from smg_node.world import SystemClock
from support.configuration import load
from support.fleet_world import Board, FakeSharedWorkers
from support.node_parts import fleet_of


def desk(
    folder: Path,
    *,
    draining: bool = False,
    doubts: Doubts | None = None,
    networks: tuple[str, ...] = (),
) -> FleetDesk:
    fleet, clock = fleet_of({}, folder), SystemClock()
    shared = FakeSharedWorkers("n1", Board(["n1"]))
    return FleetDesk(
        fleet,
        Networks(networks),
        registry=ClusterRegistry(shared, fleet, monotonic_s=clock.monotonic_s),
        sessions=Sessions(shared.sticky, clock.now_ms),
        clock=clock,
        workers_ready_min=0,
        draining=lambda: draining,
        doubts=lambda: doubts or Doubts(),
    )


def test_a_node_without_doubts_is_ready(tmp_path: Path) -> None:
    health = desk(tmp_path).health()
    assert (health.ready, health.draining, health.reasons, health.degraded) == (True, False, (), ())


def test_what_the_cluster_has_against_it_keeps_a_node_from_being_ready(tmp_path: Path) -> None:
    health = desk(tmp_path, doubts=Doubts(["mesh: joining"], ["joining"])).health()
    assert (health.ready, health.reasons) == (False, ("mesh: joining",))
    assert health.degraded == ("joining",)


def test_what_is_only_worth_knowing_does_not(tmp_path: Path) -> None:
    health = desk(tmp_path, doubts=Doubts(degraded=["isolated"])).health()
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
        made.add(WorkerWish("grpc://192.168.0.1:1"))
    assert caught.value.status == 403
    assert made.workers() == []
    assert made.add(WorkerWish("grpc://10.0.0.1:1")).url == "grpc://10.0.0.1:1"


@pytest.mark.parametrize(
    ("flags", "knob"),
    [
        (["--policy", "power_of_too"], "routing.policy"),
        (["--routing.manual-delegate", "nobody"], "routing.manual_delegate"),
    ],
)
def test_a_policy_that_there_is_not_stops_the_start_with_the_knobs_name(
    flags: list[str], knob: str
) -> None:
    settings = load(flags).settings
    with pytest.raises(ConfigurationError, match=knob):
        build_policies(settings, OwnBindings())
