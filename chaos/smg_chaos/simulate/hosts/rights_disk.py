"""Rights disk: what a node's disk keeps of rights: minted totals per window, and the roster, or promises before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Limit, Roster
from smg_mesh.escrow.messages.messages import Minted


@dataclass(slots=True)
class Vault:
    """One disk's part; empty on a disk that is new."""

    minted: dict[tuple[str, int], int] = field(default_factory=dict)
    roster: Roster | None = None
    founding: FoundingState | None = None
    limits: dict[str, Limit] = field(default_factory=dict)
    """The definitions that the last life went by."""

    def write(self, row: Minted) -> None:
        """Keep the largest total of a window."""
        place = (row.key, row.window)
        self.minted[place] = max(row.total, self.minted.get(place, 0))

    def keep(self, kept: Roster | FoundingState) -> None:
        """Keep a roster, or what was promised as long as there is none."""
        if isinstance(kept, Roster):
            before = self.roster
            if before is None or before.id != kept.id or before.version <= kept.version:
                self.roster, self.founding = kept, None
        elif self.roster is None and (self.founding is None or kept.is_later(self.founding)):
            self.founding = kept

    def remembered(self) -> Mapping[tuple[str, int], int]:
        """Return what a life that begins now finds."""
        return dict(self.minted)
