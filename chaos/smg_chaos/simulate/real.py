"""Real cores and replicas: factories of what the nodes of the product run."""

from smg_chaos.simulate.hosts.core_interface import Core
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_mesh.config import SwimOptions
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import Address
from smg_mesh.swim.swim_core import Identity, Swim


def make_core(
    name: str, address: Address, boot: int, meta: bytes, options: SwimOptions, rng: Rng
) -> Core:
    """Return a core as the mesh builds it."""
    return Swim(Identity(name=name, address=address, boot=boot, meta=meta), options, rng)


def replicas() -> ReplicaFactory:
    """Return what makes replicas as the mesh builds them; their library is loaded now, not before."""
    from smg_mesh.sync.replica import Replica

    return Replica
