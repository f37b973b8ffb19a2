"""How packets, disks and clocks of a simulated world of leases behave, and what outlives a node there."""

from dataclasses import dataclass, field

from smg_mesh.escrow.election.voter import Voter
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Roster


@dataclass
class Weather:
    """How packets, disks and clocks behave."""

    loss: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    delay_ms: tuple[int, int] = (1, 5)
    disk_ms: tuple[int, int] = (5, 40)


@dataclass
class Disk:
    """What outlives a node."""

    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    roster: Roster | None = None
    founding: FoundingState | None = None

    def keep(self, kept: Roster | FoundingState, voter: Voter) -> None:
        """Keep a roster with what a voter has to say beside it, or what was promised before there is one."""
        if isinstance(kept, FoundingState):
            self.founding = kept
            return
        self.roster, self.founding = kept, None
        self.rows.update({(row.key, row.window): row.total for row in voter.unwritten()})
