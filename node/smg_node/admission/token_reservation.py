"""Token reservation of a request on one limit: taken on entry, extended while it streams, settled.
Pure.

    held    rights that were taken from this node's share, each for the window of its moment
    owed    used without a right: the share's debt, paid from the windows to come
    used    what the tokens so far count

While an answer goes on, `held + owed >= used`; at its end what is held and was not used goes back.

Most answers need no more than was reserved for them when they entered. So that is what a charge is made of, and there
is a list only of what came later.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from smg_node.admission.charging import give_back, take
from smg_node.admission.matched_limit import MatchedLimit
from smg_node.admission.ports import Share
from smg_node.admission.token_weights import TokenWeights

Part: TypeAlias = tuple[Share, int, int]
"""A share, the window it was in, and how much was charged to it."""


class Short(NamedTuple):
    """A limit that has less than was needed."""

    measure: MatchedLimit
    cost: int


class TokenReservation(msgspec.Struct, eq=False, gc=False):
    """One reservation; `held` begins as what `share` was charged in `window`. It is part of no
    reference cycle.

    Made by `reserve`: `measure.open` counts it until it is settled.
    """

    tariff: TokenWeights
    share: Share
    window: int
    held: int
    owed: int = 0
    later: list[Part] | None = None

    def covers(self, used: int) -> bool:
        """Whether so much may be used; more is reserved where that is not far."""
        tariff, spare = self.tariff, self.held + self.owed - used
        if spare >= tariff.early:
            return True
        # Where little is left, no request may hold what others need to come to their end.
        measure = tariff.measure
        fair = (measure.share.left + max(0, measure.share.pool)) // measure.open
        fair = max(fair, tariff.least)
        early = min(tariff.early, fair)
        if spare < early:
            self._take(max(min(tariff.step, fair), early - spare))
        return used <= self.held + self.owed

    def room(self, prompt: int, *, batch: int, most: int) -> int:
        """Return up to how many tokens of an answer that has at most `most` this covers without a look at the share.

        Where the limit ends answers, there is one more `batch` in it.
        """
        tariff, held = self.tariff, self.held + self.owed
        if tariff.weigh(prompt, 0, most) <= held:
            return most
        # As `covers` has it: while more than this is left, nothing more is reserved.
        held -= tariff.early
        if not tariff.answer:
            return 0
        tokens = max(0, int((held - tariff.flat - prompt * tariff.prompt) // tariff.answer))
        # A quotient may be rounded up.
        if tariff.weigh(prompt, 0, tokens) > held:
            tokens -= 1
        return tokens - batch if tariff.finish else tokens

    def overdraw(self, used: int) -> None:
        """Let so much have been used, whether there was a right to it or not."""
        missing = used - self.held - self.owed
        if missing <= 0:
            return
        missing -= self._take(missing)
        if missing > 0:
            measure = self.tariff.measure
            measure.share.debt += missing
            measure.share.offered += missing
            measure.tally.owed += missing
            self.owed += missing

    def take_more(self, amount: int) -> None:
        """Reserve so much more; its share has it."""
        self._take(amount)

    def settle(self, used: int) -> None:
        """End with so much used: the rest goes back, the latest first, as far as its window is still open."""
        measure = self.tariff.measure
        measure.open -= 1
        measure.tally.charged += used
        if used <= self.held and self.later is None and not self.owed:
            # As most end: with less than was reserved when they entered. `give_back`, in here.
            share, unused = self.share, self.held - used
            self.held = used
            if share.window == self.window:
                share.left += unused
                share.spent -= unused
            return
        if used > self.held + self.owed:
            self.overdraw(used)
        unused = min(self.held, self.held + self.owed - used)
        self.held -= unused
        while unused > 0 and self.later:
            share, window, amount = self.later.pop()
            part = min(amount, unused)
            give_back(share, window, part)
            unused -= part
        if unused > 0:
            give_back(self.share, self.window, unused)

    def _take(self, most: int) -> int:
        share = self.tariff.measure.share
        taken = take(share, most)
        if taken:
            self.held += taken
            if self.later is None:
                self.later = []
            self.later.append((share, share.window, taken))
        return taken


def reserve(
    tariffs: Sequence[TokenWeights], prompt: int, *, expected: int, most: int
) -> list[TokenReservation] | Short:
    """Charge all limits a prompt and what its answers are expected to need, or may at most; or none of them.

    Then return the first that has too little.
    """
    charges: list[TokenReservation] = []
    for tariff in tariffs:
        measure = tariff.measure
        share = measure.share
        answer = most if tariff.worst_case else expected
        cost = prompt + answer if tariff.plain else tariff.weigh(prompt, 0, answer)
        left = share.left - cost
        if left < share.low:
            # As `share.admit` has it: as if nothing had been looked at.
            _put_back(charges)
            return reserve_warily(tariffs, prompt, expected=expected, most=most)
        share.left = left
        share.spent += cost
        share.offered += cost
        measure.open += 1
        charges.append(TokenReservation(tariff, share, share.window, cost))
    return charges


def reserve_warily(
    tariffs: Sequence[TokenWeights], prompt: int, *, expected: int, most: int
) -> list[TokenReservation] | Short:
    """Do as `reserve`, with a look at all limits first."""
    charges = []
    for tariff in tariffs:
        share = tariff.measure.share
        cost = tariff.weigh(prompt, 0, most if tariff.worst_case else expected)
        if share.left < cost:
            return Short(tariff.measure, cost)
        charges.append(TokenReservation(tariff, share, share.window, cost))
    for charge in charges:
        share, cost = charge.share, charge.held
        share.left = left = share.left - cost
        share.spent += cost
        share.offered += cost
        if left < share.low:
            share.wants_more = True
        charge.tariff.measure.open += 1
    return charges


def _put_back(charges: Sequence[TokenReservation]) -> None:
    for charge in charges:
        share, cost = charge.share, charge.held
        share.left += cost
        share.spent -= cost
        share.offered -= cost
        charge.tariff.measure.open -= 1
