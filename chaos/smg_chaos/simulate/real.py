"""The cores that real nodes run."""

from smg_chaos.simulate.core import Core
from smg_mesh.config import SwimOptions
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import Address
from smg_mesh.swim.swim import Identity, Swim


def make_core(
    name: str, address: Address, boot: int, meta: bytes, options: SwimOptions, rng: Rng
) -> Core:
    """Return a core as the mesh builds it."""
    return Swim(Identity(name=name, address=address, boot=boot, meta=meta), options, rng)
