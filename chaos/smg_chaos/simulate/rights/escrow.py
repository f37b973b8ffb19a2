"""Escrow interface: protocol of a node's rights, as the world calls it; tests give broken ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.book_rows import Row
from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.messages.effects import Effect, Rng
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.escrow.spending.lived_time import LivedTime


class RightsCore(Protocol):
    """The rights of one life of a node; `Escrow` fits."""

    @property
    def roster(self) -> Roster | None:
        """The names whose votes count, as this node knows them."""
        ...

    @property
    def lived(self) -> LivedTime:
        """Which moments of the wall clock this and earlier lives went through."""
        ...

    def handle(self, data: bytes, sender: str, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        """Take a packet."""
        ...

    def tick(self, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        """Do what is due."""
        ...

    def due_ms(self) -> int | None:
        """Return when the next tick is needed."""
        ...

    def hear(self, *, now_ms: int) -> None:
        """Learn when it was that a share has called."""
        ...

    def members(self, alive: Sequence[Life], left: Sequence[str], *, now_ms: int) -> None:
        """Learn who lives and who left."""
        ...

    def persisted(self, token: int, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        """Learn that something is on disk."""
        ...

    def share(self, key: str, *, now_ms: int, wall_ms: int) -> Share | None:
        """Return what may be charged."""
        ...

    def want(self, share: Share, cost: int) -> None:
        """Ask for so much at least, soon."""
        ...

    def inherit(self, before: Self) -> None:
        """Go on with what is open of a life before in this process."""
        ...

    def retire(self) -> None:
        """Have no rights any more."""
        ...

    def limits_changed(self, *, now_ms: int, wall_ms: int) -> None:
        """Learn that definitions are others."""
        ...

    def report(self, key: str, *, wall_ms: int) -> Report | None:
        """Say what is known of a limit."""
        ...

    def rows(self) -> Sequence[Row]:
        """Return the books."""
        ...


class RightsFactory(Protocol):
    """What makes them; the class `Escrow` itself fits."""

    def __call__(
        self,
        me: Life,
        *,
        limits: Limits,
        expect: int,
        roster: Roster | None,
        remembered: Mapping[tuple[str, int], int] | None,
        rng: Rng,
        now_ms: int,
        wall_ms: int,
        lived: LivedTime | None = None,
        called: Callable[[], object] | None = None,
        founding: FoundingState | None = None,
    ) -> RightsCore:
        """Begin the rights of one life."""
        ...
