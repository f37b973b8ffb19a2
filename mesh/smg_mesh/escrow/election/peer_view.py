"""Peer view: members this node sees, whether they are a majority, and
which has the best claim to a slot.
"""

from collections.abc import Sequence

from smg_mesh.escrow.limit_model import Life, Roster, score


class Sight:
    """One node's view of the others; what follows from it is worked out once."""

    def __init__(self, me: Life) -> None:
        self.alive: Sequence[Life] = (me,)
        self.names: tuple[str, ...] = (me.name,)
        self.roster: Roster | None = None
        self.majority = False
        """Whether more than half of the names that vote are in sight."""
        self._ranked: dict[int, Sequence[str]] = {}

    @property
    def alone(self) -> bool:
        """Whether this node sees no other, and votes alone."""
        return len(self.names) == 1 and self.roster is not None and self.roster.names == self.names

    def see(self, alive: Sequence[Life]) -> None:
        """Learn which members live, sorted by name."""
        self.alive = tuple(alive)
        self.names = tuple(life.name for life in alive)
        self._look()

    def follow(self, roster: Roster | None) -> None:
        """Go by these names that vote."""
        self.roster = roster
        self._look()

    def best(self, slot: int) -> str:
        """Return which of the names that vote and live has the best claim to
        a slot; empty if there is none.
        """
        return next(iter(self.ranked(slot)), "")

    def ranked(self, slot: int) -> Sequence[str]:
        """Return the names that vote and live, the best claim to a slot first."""
        ranked = self._ranked.get(slot)
        if ranked is None:
            ranked = sorted(self._voters(), key=lambda name: score(slot, name), reverse=True)
            self._ranked[slot] = ranked
        return ranked

    def _voters(self) -> Sequence[str]:
        roster = self.roster
        return () if roster is None else [name for name in self.names if name in roster.names]

    def _look(self) -> None:
        self._ranked.clear()
        roster = self.roster
        self.majority = roster is not None and len(self._voters()) >= roster.majority
