"""Escrow parts: the parts of one life of a node's rights, and how they go by one roster.

`escrow_core` says what they do together.
"""

from collections.abc import Callable, Mapping
from typing import Final

from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.election.owner_directory import OwnerDirectory
from smg_mesh.escrow.election.peer_view import Sight
from smg_mesh.escrow.election.slot_leases import Leases
from smg_mesh.escrow.election.voter import Voter
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.messages.effects import Rng
from smg_mesh.escrow.messages.outbox import Outbox
from smg_mesh.escrow.owning.treasury import Treasury
from smg_mesh.escrow.permits.permit_exchange import Lending
from smg_mesh.escrow.permits.permit_loans import without_lent
from smg_mesh.escrow.roster.roster_keeper import RosterKeeper
from smg_mesh.escrow.spending.lived_time import LivedTime, without_lived
from smg_mesh.escrow.spending.released_slices import ReleasedSlices, without_released
from smg_mesh.escrow.spending.spending_ledger import Ledger

OWN_TICK_MS: Final = 10
"""What is to be minted leaves after this at most, and later where there is a lot: 26 ms with all slots in use."""


class Parts:
    """Parts of one life of one node."""

    def __init__(
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
        released: ReleasedSlices | None = None,
        adopted_ms: int | None = None,
        called: Callable[[], object] | None = None,
        founding: FoundingState | None = None,
    ) -> None:
        """Begin with what is on disk, going by what is defined since `adopted_ms`; `lived` and `released` are of a life
        before, here. `called` is called when a share has become low, by who charged it; it has to call `hear`.
        """
        self.me = me
        self._limits = limits
        self.lived = LivedTime(remembered, now_ms=now_ms, wall_ms=wall_ms, before=lived)
        self._voter = Voter(
            me,
            now_ms=now_ms,
            wall_ms=wall_ms,
            remembered=without_released(without_lent(without_lived(remembered))),
            fresh=roster is None,
            volatile=self._is_volatile,
        )
        self._adopt(limits.basis(), adopted_ms or wall_ms)
        self._keeper = RosterKeeper(
            me,
            expect=expect,
            roster=roster,
            rng=rng,
            now_ms=now_ms,
            wall_ms=wall_ms,
            founding=founding,
        )
        self._lending = Lending(
            me, limits, roster=roster, remembered=remembered, now_ms=now_ms, wall_ms=wall_ms
        )
        self.released = ReleasedSlices(
            remembered, memory_ms=lambda: self._voter.memory_ms, before=released
        )
        self._ledger = Ledger(
            me,
            limits,
            now_ms=now_ms,
            wall_ms=wall_ms,
            lived=self.lived,
            released=self.released,
            permits=self._lending.permits,
            called=called,
        )
        self._begin(me, now_ms=now_ms)
        self._follow(now_ms=now_ms, wall_ms=wall_ms)

    def _adopt(self, basis: bytes, wall_ms: int) -> None:
        """Go by these definitions from now on: not yet in windows that this node has been in by others, whatever its clock."""
        self._voter.basis, self._voter.adopted_ms = basis, self.lived.latest_ms(wall_ms)

    def _begin(self, me: Life, *, now_ms: int) -> None:
        """Begin with what no life before leaves: what it owns, sees and has to say."""
        self._treasury = Treasury(me, self._limits, lived=self.lived)
        self._sight = Sight(me)
        self._leases = Leases(me, self._sight, self._voter)
        self._whereabouts = OwnerDirectory()
        self._followed: tuple[Roster | None, int] = (None, 0)
        self._desk = Outbox(me.name)
        self._retired = False
        self._now_ms = self._tidied_ms = self._tend_due_ms = now_ms
        self._owned_ms = now_ms - OWN_TICK_MS
        self._soon = self._roster_too = False

    @property
    def roster(self) -> Roster | None:
        """The names that vote, as this node goes by them."""
        return self._keeper.roster

    @property
    def founding(self) -> FoundingState:
        """What a life after this one begins with if it finds no roster."""
        return self._keeper.founding

    @property
    def _votes(self) -> bool:
        """Whether this node is told to whom slots are promised."""
        return self.roster is not None and self.me.name in self.roster.names

    def _follow(self, *, now_ms: int, wall_ms: int) -> None:
        """Let all parts go by the roster that this node goes by."""
        roster, divisor = self._keeper.roster, self._keeper.divisor()
        self._voter.roster, self._voter.founder = roster, self._keeper.founder
        if self._keeper.founder:
            self._lending.founded()
        if (roster, divisor) != self._followed:
            self._followed = (roster, divisor)
            self._lending.permits.pass_time(now_ms)
            self._sight.follow(roster)
            self._whereabouts.forget()
            founder = self._keeper.founder
            # A life that lost its disk, with a clock that is behind, does not know in what windows one before it was.
            since_ms = max(wall_ms, self._keeper.told_ms)
            self._voter.is_later(self._keeper.told_ms)
            self._ledger.follow(roster, divisor, wall_ms=since_ms, founder=founder)
            self._lending.members(self._sight.alive, now_ms=now_ms)
            self._treasury.changed(now_ms=now_ms)

    def _owner(self, slot: int) -> str:
        """Return which node owns a slot, as far as this one knows; empty if there is none."""
        promise = self._voter.promised(slot, now_ms=self._now_ms)
        if promise is not None and promise.name:
            return promise.name
        sight = self._sight
        if self._votes or not sight.majority:
            return sight.best(slot)
        return self._whereabouts.owner(slot, sight.ranked(slot), now_ms=self._now_ms)

    def _is_volatile(self, key: str) -> bool:
        limit = self._limits.get(key.partition("\x1f")[0])
        return limit is not None and limit.volatile
