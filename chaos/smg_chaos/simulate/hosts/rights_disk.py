"""Rights disk: what a node's disk keeps of rights: minted totals per window, and the roster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from smg_mesh.escrow.limit_model import Limit, Roster
from smg_mesh.escrow.messages.messages import Minted


@dataclass(slots=True)
class Vault:
    """One disk's part; empty on a disk that is new."""

    minted: dict[tuple[str, int], int] = field(default_factory=dict)
    roster: Roster | None = None
    limits: dict[str, Limit] = field(default_factory=dict)
    """The definitions that the last life went by."""

    def write(self, row: Minted) -> None:
        """Keep the largest total of a window."""
        place = (row.key, row.window)
        self.minted[place] = max(row.total, self.minted.get(place, 0))

    def remembered(self) -> Mapping[tuple[str, int], int]:
        """Return what a life that begins now finds."""
        return dict(self.minted)
