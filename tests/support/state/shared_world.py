"""Small worlds whose nodes share state, over the simplest replica."""

from smg_chaos.simulate.base.virtual_clock import SECOND
from smg_chaos.simulate.batch import real_core
from smg_chaos.simulate.cluster import settled_cluster
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_chaos.simulate.replicas.replica_life import ReplicaLife
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.replicas.shared_world import Commons
from smg_chaos.simulate.world.world import Setting, World
from smg_mesh.config import StateOptions
from support.state.reference_replica import ReferenceReplica

FEW = StateOptions(
    documents={"settings": 1, "workers": 1, "audit": 1, "cluster": 1},
    tables={"sticky": 1},
    save_apart_ms=1_000,
)


def shared_world(
    nodes: int,
    *,
    seed: int = 1,
    make_replica: ReplicaFactory = ReferenceReplica,
    traced: bool = False,
) -> World:
    """Return a world whose members have met and are calm."""
    setting = Setting(seed=seed, traced=traced, state=StateSetting(options=FEW))
    world = World(setting, real_core(), make_replica)
    settled_cluster(world, nodes, calm_s=1.0)
    return world


def commons_of(world: World) -> Commons:
    """Return what a world's nodes share."""
    assert world.commons is not None
    return world.commons


def life_of(world: World, label: str) -> ReplicaLife:
    """Return the replica that lives on a host."""
    node = world.hosts[label].node
    assert node is not None
    life = commons_of(world).life(node)
    assert life is not None
    return life


def put(world: World, label: str, key: str, value: str) -> None:
    """Set a setting on a node."""
    life = life_of(world, label)
    life.run(lambda: life.views.settings.set(key, value, version=None))


def value_of(world: World, label: str, key: str) -> object:
    """Return a setting as a node has it."""
    found = life_of(world, label).views.settings.get(key)
    return None if found is None else found.value


def calm(world: World, seconds: float = 3.0) -> None:
    """Let time pass."""
    world.run_for(int(seconds * SECOND))
