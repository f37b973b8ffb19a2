"""Mesh parts: all parts of one life of one node, and what can be said of them together."""

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smg_mesh.io.discovery.seed_search import Seeds
from smg_mesh.io.driver import Driver
from smg_mesh.io.network.listen_sockets import Doors
from smg_mesh.io.peer_snapshot import Memory
from smg_mesh.io.security.key_rotation import Rotation
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.stream_sessions import StreamSessions
from smg_mesh.io.views import STATES, MemberState, SeedView
from smg_mesh.swim.effects import Effect
from smg_mesh.swim.messages import Rank
from smg_mesh.swim.swim_core import Swim
from smg_mesh.sync.exchange.exchange_machine import WIRE_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Parts of one life of one node."""

    swim: Swim
    driver: Driver | None
    """None in a closed mesh: nobody can be heard."""
    doors: Doors | None
    keyring: Keyring
    memory: Memory
    seeds: Seeds
    conversations: StreamSessions
    rotation: Rotation
    now_ms: Callable[[], int]
    refresh: Callable[[], None]
    members_changed: Callable[[], None]
    """Looks soon at who is there, where no effect says so."""
    wire_version: int = WIRE_VERSION

    def loops(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return what has to run."""
        if self.driver is None:
            return []
        return [self.driver.run(), self.seeds.run(), self.memory.run(self.refresh)]

    def perform(self, effects: Sequence[Effect]) -> None:
        """Do what the core asked for; in a closed mesh no peer would hear it."""
        if self.driver is not None:
            self.driver.perform(effects)

    def members_by_state(self) -> Mapping[MemberState, int]:
        """Return how many rows are in each state."""
        ranks = Counter(member.rank for member in self.swim.members())
        return {STATES[rank]: ranks[rank] for rank in Rank}

    def seed_views(self) -> tuple[SeedView, ...]:
        """Return how the search is going."""
        return tuple(
            SeedView(
                seed=seed.text,
                addresses=tuple(map(str, seed.addresses)),
                error=seed.error,
                ourselves=seed.ourselves,
            )
            for seed in self.seeds.seeds
        )

    async def close(self) -> None:
        """Close the sockets, and keep the peers that were here."""
        if self.doors is not None:
            await self.doors.close()
        self.refresh()
        await self.memory.close()
