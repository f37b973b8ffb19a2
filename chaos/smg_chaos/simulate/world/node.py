"""One life of a member: a core, and as much of a driver's behaviour as decides how it fares.

Of the driver's loop only this is kept: timers are a little late, a stopped loop reads nothing, and when
it runs again it says how late it is before anything else. Then come sockets and timers, in either order.
The driver's tick of 100 ms is not simulated tick by tick: how late it would be is worked out from when the
loop stopped.
"""

from typing import TYPE_CHECKING, Final

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.world.core_interface import Core
from smg_mesh.config import SwimOptions
from smg_mesh.swim.messages import Address

if TYPE_CHECKING:
    from smg_chaos.simulate.replicas.replica_life import ReplicaLife
    from smg_chaos.simulate.rights.rights_life import Teller
    from smg_chaos.simulate.world.host import Host
    from smg_chaos.simulate.world.joining import Search
    from smg_chaos.simulate.world.sealed_packets import Seal

TICK_MS: Final = 100
_SOCKET_BYTES: Final = 4 * 1024 * 1024
"""Receive buffer of the driver's socket; what does not fit is lost."""
_SOCKET_OVERHEAD_BYTES: Final = 512
"""What a kernel counts for a datagram beside its bytes."""


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
        self, host: "Host", core: Core, options: SwimOptions, *, boot: int, offset_ms: int
    ) -> None:
        self.host = host
        self.name = host.name
        self.core = core
        self.options = options
        self.boot = boot
        self.offset_ms = offset_ms
        """Its monotonic clock minus the world's: no two nodes' clocks are alike."""
        self.seal: Seal | None = None
        self.search: Search | None = None
        self.life: ReplicaLife | None = None
        """Its replicated state, in worlds that have any."""
        self.teller: Teller | None = None
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
