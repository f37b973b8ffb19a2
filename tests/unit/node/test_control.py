from pathlib import Path

from smg_node.cluster.life import Doubts
from smg_node.control import FleetDesk
from smg_node.fleet.networks import Networks
from support.node_parts import fleet_of


def desk(folder: Path, *, draining: bool = False, doubts: Doubts | None = None) -> FleetDesk:
    return FleetDesk(
        fleet_of({}, folder),
        Networks(()),
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
