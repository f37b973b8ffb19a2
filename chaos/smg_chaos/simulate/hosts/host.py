"""Host and node: a machine with its clock and disk, and the process of a member that runs on it, if any.

A host is an address, a wall clock that may be wrong, a disk that may be lost, and a life or none. A node is one
life of a member: a core, and as much of a driver's behaviour as decides how it fares.

Of the driver's loop only this is kept: timers are a little late, a stopped loop reads nothing, and when
it runs again it says how late it is before anything else. Then come sockets and timers, in either order.
The driver's tick of 100 ms is not simulated tick by tick: how late it would be is worked out from when the
loop stopped.
"""

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.core_interface import Core
from smg_chaos.simulate.hosts.disk_archive import Archive
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.hosts.node_parts import PeerSearch, RightsLife, SharedLife
from smg_chaos.simulate.hosts.rights_disk import Vault
from smg_mesh.config import SwimOptions
from smg_mesh.swim.boot_numbers import first_boot
from smg_mesh.swim.messages import Address

if TYPE_CHECKING:
    from smg_chaos.simulate.hosts.sealed_packets import Seal

EPOCH_MS: Final = 1_800_000_000_000
"""Wall clock of a world's beginning; any date would do."""
PEERS_MAX: Final = 256
"""Peers that a snapshot remembers."""
SNAPSHOT_SEEDS_MAX: Final = 64
"""Remembered peers that act as seeds after a restart."""
TICK_MS: Final = 100
_SOCKET_BYTES: Final = 4 * 1024 * 1024
"""Receive buffer of the driver's socket; what does not fit is lost."""
_SOCKET_OVERHEAD_BYTES: Final = 512
"""What a kernel counts for a datagram beside its bytes."""


@dataclass(slots=True)
class Disk:
    """The disk of a host: what a life leaves to the next one."""

    boot: int = 0
    boot_before: int = 0
    """Of the life before the present one."""
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
    """The machine of one member. `label` is unique, also where two hosts run the same name."""

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
        self.disk.boot_before = self.disk.boot
        self.disk.boot = first_boot(self.wall_ms(now_us), chance, kept=self.disk.boot)
        return self.disk.boot

    def lose_disk(self) -> None:
        """Forget everything that earlier lives left."""
        self.disk = Disk()


class Node:
    """A running process of a member. `waiting` holds what a stopped one has in its sockets."""

    __slots__ = (
        "alive",
        "boot",
        "checked",
        "core",
        "counts_on",
        "digest",
        "host",
        "joined",
        "leaving",
        "life",
        "name",
        "offset_ms",
        "options",
        "overdue",
        "seal",
        "search",
        "started_us",
        "stopped",
        "stopped_us",
        "superseded",
        "teller",
        "unchecked",
        "waiting",
        "waiting_bytes",
    )

    def __init__(
        self, host: Host, core: Core, options: SwimOptions, *, boot: int, offset_ms: int
    ) -> None:
        self.host = host
        self.name = host.name
        self.core = core
        self.options = options
        self.boot = boot
        self.offset_ms = offset_ms
        """Its monotonic clock minus the world's: no two nodes' clocks are alike."""
        self.seal: Seal | None = None
        self.search: PeerSearch | None = None
        self.life: SharedLife | None = None
        """Its replicated state, in worlds that have any."""
        self.teller: RightsLife | None = None
        """Its rights to what is limited, in worlds where anything is."""
        self.alive = True
        self.started_us = 0
        self.joined = False
        self.leaving = False
        self.superseded = False
        self.stopped = 0
        """How many things keep its loop from running."""
        self.stopped_us = 0
        self.waiting: list[tuple[int, object, object]] = []
        self.waiting_bytes = 0
        self.overdue: list[tuple[int, object, object]] = []
        self.digest = b""
        self.unchecked = 0
        self.checked: dict[str, tuple[int, int, int]] = {}
        self.counts_on: dict[str, None] = {}
        """The members that its subscribers were told are up."""

    @property
    def address(self) -> Address:
        """Where it listens."""
        return self.host.address

    def queue(self, kind: int, packet: bytes, sender: object) -> None:
        """Keep a datagram in the socket of the stopped loop, if it has room."""
        size = len(packet) + _SOCKET_OVERHEAD_BYTES
        if self.waiting_bytes + size <= _SOCKET_BYTES:
            self.waiting_bytes += size
            self.waiting.append((kind, packet, sender))

    def lag_ms(self, now_us: int) -> int:
        """Return how late its tick is, which was due after the loop stopped."""
        since_ms = (self.stopped_us - self.started_us) // MS
        due_ms = (since_ms // TICK_MS + 1) * TICK_MS
        return max(0, (now_us - self.started_us) // MS - due_ms)

    def has_stalled(self, lag_ms: int) -> bool:
        """Return whether a tick that late counts as a stall."""
        return lag_ms > max(self.options.stall_min_ms, self.options.probe_interval_ms // 4)

    def take_waiting(self, *, timers_first: bool) -> list[tuple[int, object, object]]:
        """Return what piled up while the loop stood still, in the order in which it is done now."""
        sockets, timers = self.waiting, self.overdue
        self.waiting, self.overdue, self.waiting_bytes = [], [], 0
        return timers + sockets if timers_first else sockets + timers


class Route(NamedTuple):
    """A link as it is now. `host` is None where no host has the address."""

    host: "Host | None"
    delay_us: int
    jitter_us: int
    rough: Rough | None


def numbered_address(number: int) -> Address:
    """Return the address that belongs to a number."""
    return Address(f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 7946)
