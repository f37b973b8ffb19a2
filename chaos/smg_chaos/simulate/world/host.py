"""A machine: an address, a wall clock that may be wrong, a disk that may be lost, and a life or none."""

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.replicas.disk_archive import Archive
from smg_chaos.simulate.rights.rights_disk import Vault
from smg_mesh.swim.boot_numbers import first_boot
from smg_mesh.swim.messages import Address

if TYPE_CHECKING:
    from smg_chaos.simulate.world.network import Route
    from smg_chaos.simulate.world.node import Node

EPOCH_MS: Final = 1_800_000_000_000
"""Wall clock of a world's beginning; any date would do."""
PEERS_MAX: Final = 256
"""Peers that a snapshot remembers."""
SNAPSHOT_SEEDS_MAX: Final = 64
"""Remembered peers that act as seeds after a restart."""


@dataclass(slots=True)
class Disk:
    """What a life leaves to the next one."""

    boot: int = 0
    peers: dict[str, Address] = field(default_factory=dict)
    archive: Archive = field(default_factory=Archive)
    vault: Vault = field(default_factory=Vault)

    def remember(self, name: str, address: Address) -> None:
        """Keep a peer's address; the one kept longest makes room."""
        self.peers.pop(name, None)
        if len(self.peers) >= PEERS_MAX:
            del self.peers[next(iter(self.peers))]
        self.peers[name] = address


class Host:
    """Where one member lives. `label` is unique, also where two hosts run the same name."""

    __slots__ = (
        "address",
        "clock_wrong_ms",
        "disk",
        "label",
        "lives",
        "name",
        "node",
        "number",
        "routes",
        "seeds",
    )

    def __init__(self, number: int, label: str, name: str, address: Address) -> None:
        self.number = number
        self.label = label
        self.name = name
        self.address = address
        self.seeds: tuple[str, ...] = ()
        """Labels of the hosts that its configuration says to join."""
        self.disk = Disk()
        self.clock_wrong_ms = 0
        self.lives = 0
        self.node: Node | None = None
        self.routes: dict[Address, Route] = {}

    def wall_ms(self, now_us: int) -> int:
        """Return what its wall clock shows."""
        return EPOCH_MS + now_us // MS + self.clock_wrong_ms

    def next_boot(self, now_us: int, chance: Random) -> int:
        """Return the boot of a new life, larger than the last one on disk, and keep it there."""
        self.disk.boot = first_boot(self.wall_ms(now_us), chance, kept=self.disk.boot)
        return self.disk.boot

    def lose_disk(self) -> None:
        """Forget everything that earlier lives left."""
        self.disk = Disk()


def numbered_address(number: int) -> Address:
    """Return the address that belongs to a number."""
    return Address(f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 7946)
