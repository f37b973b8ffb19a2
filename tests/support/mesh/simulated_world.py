"""Small worlds for tests of the simulator."""

from collections.abc import Callable

from smg_chaos.simulate.hosts.core_interface import Core, CoreFactory
from smg_chaos.simulate.world.world import Setting, World
from smg_mesh.config import SwimOptions
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import Address
from support.mesh.fake_core import FakeCore


def fake_core(
    name: str, address: Address, boot: int, meta: bytes, options: SwimOptions, rng: Rng
) -> Core:
    return FakeCore(name, address, boot, meta, options, rng)


def small_world(
    nodes: int,
    *,
    seed: int = 1,
    make_core: CoreFactory = fake_core,
    sealed: bool = False,
    traced: bool = False,
) -> World:
    """Return a world whose nodes have all just started, in order, at one moment."""
    world = World(Setting(seed=seed, sealed=sealed, traced=traced), make_core)
    for number in range(nodes):
        world.boot(world.add_host(f"n{number}", seeds=("n0", "n1")))
    return world


def core_of(world: World, label: str) -> FakeCore:
    """Return the fake core that lives on a host."""
    node = world.hosts[label].node
    assert node is not None
    core = node.core
    assert isinstance(core, FakeCore)
    return core


def inputs_of(world: World, label: str, *kinds: str) -> list[tuple[int, str, object]]:
    """Return what a node's core was given: (world's milliseconds, kind, detail)."""
    node = world.hosts[label].node
    assert node is not None
    heard = core_of(world, label).heard
    return [
        (at_ms - node.offset_ms, kind, detail)
        for at_ms, kind, detail in heard
        if not kinds or kind in kinds
    ]


def factory(core: Callable[..., FakeCore]) -> CoreFactory:
    """Return a factory of a special kind of fake core."""

    def make(
        name: str, address: Address, boot: int, meta: bytes, options: SwimOptions, rng: Rng
    ) -> Core:
        return core(name, address, boot, meta, options, rng)

    return make
