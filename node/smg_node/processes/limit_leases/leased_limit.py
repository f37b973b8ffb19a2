"""Leased limit of a data process: measures its use, decides what to ask for and to give back. Pure.

    short       a request waits: it asks at once, for that and a little more
    low         less than 25 ms of demand is left: it asks for 60 ms of demand
    idle        nothing was used for 200 ms: all of it goes back; where it is little of what is left, after 2 s
    too much    what would not be used within 200 ms, as answers that are over give back: that goes as well
    recalled    another process has nothing: all that is not in use goes back at once
    over        its window has ended: nothing is left, and nothing comes back

Only one question is under way at a time. After the answer that there is nothing, it asks again
after 20 ms at the earliest.
"""

from typing import Final

from smg_node.processes.limit_leases.lease_messages import LeaseAsk, LeaseGrant
from smg_node.processes.limit_leases.leased_share import ASLEEP, UNKNOWN, LeasedShare

AHEAD_MS: Final = 60
LOW_MS: Final = 25
"""More than the time between two looks: so a busy limit never runs dry for want of a question."""
IDLE_MS: Final = 200
PACE_MS: Final = 20
"""Who is used fast is looked at so often, and who is told that there is nothing asks so often again."""
KEEP_MS: Final = 2_000
"""So long what is little may lie here: who comes once a second would otherwise ask every time."""
LITTLE: Final = 64
"""This part of what is left besides is little. Who needs it sooner recalls it."""
CALM_MS: Final = 100
"""Others are."""
REST_MS: Final = 2_000
"""Whoever was used and is not now is looked at so seldom in the end."""
FORGET_MS: Final = 5_000
"""After so long without any use it is forgotten."""
ANSWER_MS: Final = 500
"""A question that was not answered for so long is asked again."""
_EASE_MS: Final = 150.0
_LEAST_PER_MS: Final = 0.000_1
_NEVER_MS: Final = 1 << 62


class LeasedLimit:
    """One limit; `share` is the part that admission charges, another one after each term."""

    __slots__ = (
        "_asked_ms",
        "_debt_mark",
        "_demand",
        "_dry_ms",
        "_measured_ms",
        "_offered_mark",
        "_reported",
        "_try_ms",
        "due_ms",
        "recalled",
        "share",
        "term",
        "used_ms",
    )

    def __init__(self, share: LeasedShare, now_ms: int) -> None:
        self.share = share
        self.term = 0
        self.used_ms = now_ms
        self.due_ms = now_ms
        """When it has to be looked at again."""
        self.recalled = False
        self._asked_ms = -_NEVER_MS
        """When a question was asked that is not answered."""
        self._try_ms = 0
        self._dry_ms = 0
        """Until then it is true that there is nothing."""
        self._demand = 0.0
        """Units a millisecond."""
        self._measured_ms = now_ms
        self._offered_mark = 0
        self._reported = 0
        """Of what was offered: so much the control process knows of."""
        self._debt_mark = 0

    # ── What time does ───────────────────────────────────────────────────────

    def over(self, wall_ms: int) -> bool:
        """Whether its window has ended."""
        share = self.share
        return bool(share.window_ms) and share.window != ASLEEP and wall_ms >= share.ends_ms

    def turn(self) -> None:
        """End this term of a limit with windows: nothing is left, and what there is is unknown."""
        old = self.share
        new = LeasedShare(old.key, amount=old.amount, window_ms=old.window_ms)
        # What is owed is owed in every window, and what was offered has still to be reported.
        new.debt, new.offered, new.state = old.debt, old.offered, old.state
        old.debt = 0
        old.retire()
        self.share = new
        self.term = 0
        self._try_ms = 0
        self.recalled = False

    def cut(self) -> None:
        """Note that the link is gone; what is here may still be used until its window ends."""
        self.share.pool = UNKNOWN
        self._asked_ms = -_NEVER_MS
        self.recalled = False

    def begin_anew(self) -> int:
        """Begin with another control process: nothing is left. Return what is open, of a limit without windows."""
        self.cut()
        if self.share.window_ms:
            self.turn()
            return 0
        self.share.left = 0
        self.term = 0
        self._try_ms = 0
        return self.share.spent

    def measure(self, now_ms: int) -> None:
        """Update the rate at which it is used."""
        passed = now_ms - self._measured_ms
        if passed <= 0:
            return
        share = self.share
        came = share.offered - self._offered_mark
        self._offered_mark, self._measured_ms = share.offered, now_ms
        if came:
            self.used_ms = now_ms
        weight = passed / (passed + _EASE_MS)
        demand = self._demand + (came / passed - self._demand) * weight
        self._demand = demand if demand > _LEAST_PER_MS else 0.0
        share.low = int(self._demand * LOW_MS)

    # ── What it says ─────────────────────────────────────────────────────────

    def ask(self, now_ms: int, wall_ms: int, *, first: int, waits: int) -> LeaseAsk | None:
        """Return what is to be sent now, if anything. The first waiting request needs `first`, all
        of them `waits`.
        """
        self.measure(now_ms)
        share, recalled = self.share, self.recalled
        back = self._back(now_ms, waits)
        left = share.left - back
        least, missing = max(0, first - left), max(0, waits - left)
        wants = 0
        if not recalled and self._may_ask(now_ms, least):
            wants = self._wants(left, missing)
        owed = max(0, share.debt - self._debt_mark)
        if not (back or wants or owed or recalled):
            self._plan(now_ms, wall_ms, waits)
            return None
        share.left = left
        share.wants_more = False
        self.recalled = False
        self._debt_mark = share.debt
        offered, self._reported = share.offered - self._reported, share.offered
        if wants:
            self._asked_ms = now_ms
            self._try_ms = now_ms + PACE_MS
        self._plan(now_ms, wall_ms, waits)
        return LeaseAsk(
            share.key,
            self.term,
            back=back,
            offered=offered,
            owed=owed,
            least=least,
            waits=missing,
            wants=wants,
            recalled=recalled,
        )

    def take(self, word: LeaseGrant, *, now_ms: int, wall_ms: int) -> None:
        """Apply a grant."""
        if word.answers:
            self._asked_ms = -_NEVER_MS
        if word.window_ms and word.ends_ms <= wall_ms:
            # It ended on the way here; the next word is of the next one.
            self.due_ms = self._try_ms = now_ms + 1
            return
        if word.term != self.term:
            if self.term and word.window_ms:
                self.turn()
            self.term = word.term
            self.share.window = word.window
            self.share.ends_ms = word.ends_ms
        share = self.share
        share.amount, share.state, share.pool = word.amount, word.state, word.pool
        share.next_ms = word.next_ms
        unsaid = max(0, share.debt - self._debt_mark)
        self._debt_mark = word.debt
        share.debt = word.debt + unsaid
        share.left += word.given
        if word.answers and not word.given:
            self._try_ms = now_ms + PACE_MS
        self._dry_ms = now_ms + PACE_MS if word.dry else 0
        if word.recall:
            self.recalled = True
        self.due_ms = now_ms

    def refresh(self, now_ms: int) -> None:
        """Allow asking again some time after there was nothing: others may have given something
        back.
        """
        if self.share.pool == 0 and now_ms >= self._dry_ms:
            self.share.pool = 1

    def forgettable(self, now_ms: int) -> bool:
        """Whether it was unused for long, and nothing is to be sent about it."""
        share = self.share
        kept = share.left or share.spent or share.debt != self._debt_mark
        return not kept and not self.recalled and now_ms - self.used_ms >= FORGET_MS

    def _back(self, now_ms: int, waits: int) -> int:
        """Return how much is not needed here; after a recall that is all that is left."""
        left = self.share.left
        if left <= 0 or not self.term:
            return 0
        if self.recalled:
            return left
        if waits:
            return 0
        idle_ms, little = now_ms - self.used_ms, self._little()
        if idle_ms >= IDLE_MS:
            return 0 if left <= little and idle_ms < KEEP_MS else left
        return max(0, left - max(little, self._spare()))

    def _little(self) -> int:
        """Return an amount small enough to be kept for a while."""
        return max(0, self.share.pool // LITTLE)

    def _spare(self) -> int:
        """Return what will be used soon, and a little: an answer that ends gives back what the next
        one takes.
        """
        return 2 * int(self._demand * IDLE_MS) + 1

    def _may_ask(self, now_ms: int, least: int) -> bool:
        if now_ms - self._asked_ms < ANSWER_MS:
            return False
        return now_ms >= self._try_ms or (least > 0 and self.share.pool != 0)

    def _wants(self, left: int, missing: int) -> int:
        if missing:
            few = min(8 * missing, self._little())
            return max(2 * missing, missing + int(self._demand * AHEAD_MS), few)
        return max(0, int(self._demand * AHEAD_MS) - left) if left < self.share.low else 0

    def _plan(self, now_ms: int, wall_ms: int, waits: int) -> None:
        share = self.share
        idle_ms = now_ms - self.used_ms
        if waits or share.low:
            due_ms = now_ms + PACE_MS
        elif share.left or self._demand:
            due_ms = now_ms + CALM_MS
        elif share.spent:
            # Answers that are under way may still give something back. Who needs it sooner recalls it.
            due_ms = now_ms + min(REST_MS, max(CALM_MS, idle_ms // 4))
        else:
            due_ms = now_ms + max(CALM_MS, FORGET_MS - idle_ms)
        if share.window_ms and share.window != ASLEEP:
            due_ms = min(due_ms, now_ms + max(1, share.ends_ms - wall_ms))
        self.due_ms = due_ms
