"""Rights that need nobody else: right ones that waste, naive ones, and ones that are broken in small ways."""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.book_rows import Held, Row
from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Life, Roster, window_of
from smg_mesh.escrow.messages.effects import Effect, Rng
from smg_mesh.escrow.spendable_share import ASLEEP, Share
from smg_mesh.escrow.spending.lived_time import LivedTime


class FixedRights:
    """Every node has its fixed part of every window, which needs no word: `parts` of them make a whole."""

    parts = 5
    in_first_window = False
    """Whether a life begins with a part of the window it begins in; the life before may have spent it."""

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
        called: Callable[[], object] | None = None,
        founding: FoundingState | None = None,
    ) -> None:
        self.me = me
        self.lived = LivedTime(remembered, now_ms=now_ms, wall_ms=wall_ms, before=lived)
        self.roster = roster
        self._limits = limits
        self._shares: dict[str, Share] = {}
        self._stood: dict[tuple[str, int], int] = {}
        self._retired = False
        self._now_ms = now_ms
        self._born_ms = wall_ms

    def handle(self, data: bytes, sender: str, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        return []

    def tick(self, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        self._now_ms = now_ms
        for share in () if self._retired else self._shares.values():
            self._roll(share, wall_ms)
        return []

    def due_ms(self) -> int | None:
        return self._now_ms + 5

    def hear(self, *, now_ms: int) -> None:
        """Nobody is asked for more than there is."""

    def members(self, alive: Sequence[Life], left: Sequence[str], *, now_ms: int) -> None:
        if len(alive) > len(self.roster.names if self.roster else ()):
            names = tuple(life.name for life in alive)
            self.roster = Roster(bytes(16), 1, names, (len(names),) * len(names))

    def persisted(self, token: int, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        return []

    def share(self, key: str, *, now_ms: int, wall_ms: int) -> Share | None:
        limit = self._limits.get(key)
        if limit is None or self._retired:
            return None
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = Share(limit)
        self._roll(share, wall_ms)
        return share

    def want(self, share: Share, cost: int) -> None:
        share.wants_more = True

    def inherit(self, before: Self) -> None:
        """Take nothing over: windows are spent by one life each."""

    def retire(self) -> None:
        self._retired = True
        for share in self._shares.values():
            share.left, share.window = 0, ASLEEP

    def limits_changed(self, *, now_ms: int, wall_ms: int) -> None:
        return

    def report(self, key: str, *, wall_ms: int) -> Report | None:
        return None

    def rows(self) -> Sequence[Row]:
        shares = [share for share in self._shares.values() if share.window >= 0]
        return [self._row(share) for share in shares]

    def _row(self, share: Share) -> Held:
        return Held(
            key=share.key,
            window=share.window,
            name=self.me.name,
            boot=self.me.boot,
            amount=share.amount,
            standing=self._stood[share.key, share.window],
            borrowed=0,
            given=(),
            returned=(),
            lapsed=0,
            spent=share.spent,
            owed=0,
            left=share.left,
        )

    def _roll(self, share: Share, wall_ms: int) -> None:
        limit = self._limits.get(share.key)
        assert limit is not None
        window = window_of(wall_ms, limit.window_ms)
        if window <= share.window:
            return
        share.window = window
        share.pool = 0
        first = window == window_of(self._born_ms, limit.window_ms)
        share.left = 0 if first and not self.in_first_window else limit.amount // self.parts
        share.spent = share.offered = 0
        self._stood[share.key, window] = share.left


class NaiveRights(FixedRights):
    """Every node has all of every window."""

    parts = 1


class ForgetfulRights(FixedRights):
    """A life that begins has the part of the window that the one before it may have spent."""

    in_first_window = True


class CopyingRights(FixedRights):
    """What is spent comes back now and then, although the row does not say so."""

    def tick(self, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        for share in self._shares.values():
            if now_ms % 97 == 0 and share.spent > 2:
                share.left += 1
        return super().tick(now_ms=now_ms, wall_ms=wall_ms)


class LyingRights(FixedRights):
    """What is spent is not written down."""

    def _row(self, share: Share) -> Held:
        row = super()._row(share)
        return Held(
            key=row.key,
            window=row.window,
            name=row.name,
            boot=row.boot,
            amount=row.amount,
            standing=row.standing,
            borrowed=0,
            given=(),
            returned=(),
            lapsed=0,
            spent=0,
            owed=0,
            left=row.standing,
        )
