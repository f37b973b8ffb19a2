"""Ticket of a limited request: charged on entry, topped up while it streams, settled at its end.

    ticket ──▶ enter ──▶ reserve ──▶ streamed … ──▶ settle      it was worked on; what it did not use goes back
                 │          │                  └──▶ void        nothing was done for it: all goes back
                 └ refused ─┘                                   nothing is charged

Limits on requests and on what is open at a time are charged before a prompt is even looked at, those on tokens when
its length is known. Settling and voiding may be tried any number of times and in any order: the first one counts.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Protocol, TypeAlias

import msgspec

from smg_node.admission.charging import admit, give_back
from smg_node.admission.header_values import Family
from smg_node.admission.limit_counters import Tallies
from smg_node.admission.limit_matching import Matched
from smg_node.admission.ports import Share
from smg_node.admission.token_reservation import Short, TokenReservation, reserve
from smg_node.admission.token_weights import TokenWeights
from smg_node.core.generation.byte_sink import TokenAllowance
from smg_node.core.prices.price import Rates

_NEVER: Final = -(1 << 62)
"""No window: nothing was charged to one."""
ENDLESS_TOKENS: Final = 32_768
"""What an answer may have at most where nobody said."""

_window_of: Final = attrgetter("window")

Attempt: TypeAlias = Callable[[Matched], Short | None]


class Door(Protocol):
    """What a ticket needs of the admission that issued it."""

    @property
    def tallies(self) -> Tallies:
        """Counts of what limits did to requests."""
        ...

    def day(self) -> int:
        """Return the day by which prices count, from 1970-01-01."""
        ...

    async def insist(
        self, matched: Matched, attempt: Attempt, *, asking: bool = True
    ) -> tuple[Matched, Short | None]:
        """Try until it works, as long as waiting may help; return what is short in the end.

        The limits it was tried with are returned as well: they may have changed meanwhile. Unless
        `asking`, this is no new request, and what is short is not counted as refused.
        """
        ...

    def refuse(self, matched: Matched, short: Short) -> Exception:
        """Return the error for the client."""
        ...

    def wake(self, matched: Matched) -> None:
        """Wake the shares of these limits that sleep."""
        ...

    def headers(self, matched: Matched, family: Family) -> Mapping[str, str]:
        """Return the headers of these limits as of now; the same object may be changed by the next
        request.
        """
        ...


class Ticket(msgspec.Struct, eq=False):
    """Charge of one request. `cut` is whether its answer was ended because there was no right to go
    on.
    """

    _door: Door
    matched: Matched
    """What it meets."""
    _entered: Matched | None = None
    """What it met when it entered; beside it the shares it was charged to, and the windows those were in."""
    _shares: Sequence[Share] = ()
    _windows: Sequence[int] = ()
    _charges: Sequence[TokenReservation] = ()
    _answers: int = 1
    _most: int = ENDLESS_TOKENS
    """Its answers have no more tokens than this."""
    _tokens: int = 0
    """So many they have by now."""
    _batch: int = 0
    """So many came at once, at most."""
    _over: bool = False
    cut: bool = False
    watched: bool = False
    """Whether `streamed` has to be called as its answers go on: more may come than was reserved for them."""
    goes_on: bool = False
    """Whether it is of a further generation of one request, which limits on requests have counted already."""
    rates: Rates | None = None
    """What is reserved of limits on cost, where that is not what the model's price says."""

    @property
    def metered(self) -> bool:
        """Whether its tokens are counted, so that they have to be reserved."""
        return bool(self.matched.tariffs)

    @property
    def worst_case(self) -> bool:
        """Whether it matters how long its answer may be at most."""
        return self.matched.worst_case

    # ── In ───────────────────────────────────────────────────────────────────

    def enters(self) -> bool:
        """Charge the request itself, if there is room for it everywhere now; where not, `enter` is to be awaited."""
        matched = self.matched
        shares = matched.entry_shares
        if admit(shares if not self.goes_on else self._charged(matched), 1) is not None:
            return False
        self._entered = matched
        self._shares = shares
        # Who leaves again gives back to the window of this moment, or to none if it is over by then.
        self._windows = tuple(map(_window_of, shares))
        if self.goes_on:
            self._windows = tuple(
                share.window if at in matched.places else _NEVER for at, share in enumerate(shares)
            )
        return True

    def _charged(self, matched: Matched) -> Sequence[Share]:
        """Return the shares that it is charged to when it enters: of a request that goes on, what is open at a time."""
        shares = matched.entry_shares
        return [shares[at] for at in matched.places] if self.goes_on else shares

    async def enter(self) -> None:
        """Charge the request itself; LimitedError if a limit does not let it in."""
        if self.enters():
            return

        def attempt(renewed: Matched) -> Short | None:
            self.matched = renewed
            if self.enters():
                return None
            share = admit(self._charged(renewed), 1)
            assert share is not None, "what is too small is so twice"
            return Short(renewed.entry[renewed.entry_shares.index(share)], 1)

        self.matched, short = await self._door.insist(self.matched, attempt)
        if short is not None:
            raise self._door.refuse(self.matched, short)

    def short_of(
        self, prompt_tokens: int, most_tokens: int | None = None, answers: int = 1
    ) -> Short | None:
        """Charge as `reserve` does if there is enough of everything now; otherwise return what is
        short, and `reserve` is to be awaited.
        """
        matched = self.matched
        if not matched.tariffs:
            return None
        tariffs = self._priced(prompt_tokens)
        self._answers = answers
        self._most = most = ENDLESS_TOKENS * answers if most_tokens is None else most_tokens
        expected = matched.answers.expected * answers
        if expected > most:
            expected = most
        charges = reserve(tariffs, prompt_tokens, expected=expected, most=most)
        if isinstance(charges, Short):
            return charges
        self._charges = charges
        self.watched = expected < most and not matched.all_worst
        return None

    def _priced(self, prompt_tokens: int) -> Sequence[TokenWeights]:
        """Return the weights at which this request is reserved."""
        matched, rates = self.matched, self.rates
        if rates is None:
            if matched.price is None:
                return matched.tariffs
            rates = matched.dearest(prompt_tokens, self._door.day())
        return [tariff.priced(rates) for tariff in matched.tariffs]

    async def reserve(
        self, prompt_tokens: int, most_tokens: int | None = None, *, answers: int = 1
    ) -> None:
        """Charge the prompt, and what so many answers may need, together at most `most_tokens` (None: unknown).

        LimitedError if a limit does not let it in; then nothing is charged, the request itself neither.
        """
        if self.short_of(prompt_tokens, most_tokens, answers) is None:
            return

        def attempt(renewed: Matched) -> Short | None:
            self.matched = renewed
            return self.short_of(prompt_tokens, most_tokens, answers)

        await self._insist(attempt)

    def unreserve(self) -> None:
        """Give back what is reserved: whoever goes on with the request reserves anew. The request stays charged."""
        self._wake()
        for charge in self._charges:
            charge.settle(0)
        self._charges = ()
        self.watched = False

    async def _insist(self, attempt: Attempt) -> None:
        """Try until it works; if it does not, undo the entry."""
        try:
            self.matched, short = await self._door.insist(self.matched, attempt)
            if short is not None:
                raise self._door.refuse(self.matched, short)
        except BaseException:
            self.void()
            raise

    # ── On the way ───────────────────────────────────────────────────────────

    def streamed(self, prompt_tokens: int, answer_tokens: int) -> bool:
        """Take note that there are so many tokens by now. False if the answer must have more rights to go on.

        Where a limit ends answers, that is so before more comes than there is a right to: what an
        engine has generated is spent. So there has to be room for one more batch as large as any so
        far.
        """
        enough, next_tokens = True, answer_tokens
        if self.matched.finish:
            self._hear(answer_tokens)
            next_tokens = self._next(answer_tokens)
        for charge in self._charges:
            tariff = charge.tariff
            used = tariff.weigh(prompt_tokens, 0, next_tokens if tariff.finish else answer_tokens)
            if charge.covers(used) or (self._wake() and charge.covers(used)):
                continue
            if tariff.finish:
                enough = False
            else:
                charge.overdraw(used)
        return enough

    @property
    def batch(self) -> int:
        """Most tokens that came at once so far, as far as it matters; 0 where it does not."""
        matched = self.matched
        return max(self._batch, matched.answers.batch) if matched.finish else 0

    def room(self, prompt_tokens: int) -> TokenAllowance:
        """Return how far its answers may go on with only `passed`, and `streamed` would have nothing to do."""
        batch = self.batch
        tokens = sys.maxsize
        for charge in self._charges:
            tokens = min(tokens, charge.room(prompt_tokens, batch=batch, most=self._most))
        return TokenAllowance(tokens, batch if self.matched.finish else sys.maxsize)

    def passed(self, answer_tokens: int) -> None:
        """Take note that there are so many tokens by now, within what `room` has said."""
        if self.matched.finish:
            self._hear(answer_tokens)

    def _hear(self, answer_tokens: int) -> None:
        """Take note of a batch. A whole answer in one batch is ignored: others may be split."""
        batch = answer_tokens - self._tokens
        if batch > self._batch:
            self._batch = batch
        if self._tokens:
            self.matched.answers.heard(batch)
        self._tokens = answer_tokens

    def _next(self, answer_tokens: int) -> int:
        """Return how many tokens there may be after the next batch."""
        return max(answer_tokens, min(answer_tokens + self.batch, self._most))

    async def more(self, prompt_tokens: int, answer_tokens: int) -> bool:
        """Wait for these rights. False if the answer is to end here."""
        next_tokens = self._next(answer_tokens)

        def attempt(_: Matched) -> Short | None:
            for charge in self._charges:
                used = charge.tariff.weigh(prompt_tokens, 0, next_tokens)
                if charge.tariff.finish and not charge.covers(used):
                    missing = used - charge.held - charge.owed
                    return Short(charge.tariff.measure, missing)
            return None

        _, short = await self._door.insist(self.matched, attempt, asking=False)
        return short is None

    # ── Out ──────────────────────────────────────────────────────────────────

    def settle(
        self,
        prompt_tokens: int,
        cached_tokens: int,
        answer_tokens: int,
        *,
        complete: bool = False,
        cost_micro: int | None = None,
    ) -> None:
        """End with so much used. An answer that is `complete` counts for the length estimate.

        `cost_micro` is what it cost, in millionths of the currency; None: by the model's price.
        """
        if self._over:
            return
        self._over = True
        tallies, matched, charges = self._door.tallies, self.matched, self._charges
        for charge in charges:
            tariff = charge.tariff
            if tariff.measure.share.window < 0:
                self._door.wake(matched)
            if tariff.plain and not cached_tokens:
                charge.settle(prompt_tokens + answer_tokens)
            else:
                used = (prompt_tokens, cached_tokens, answer_tokens)
                charge.settle(self._weighed(tariff, used, cost_micro))
        entered = self._entered
        if entered is matched and (charges or not matched.tariffs) and not self.goes_on:
            # Charged to all that it met, as nearly always: it is counted with others that met the same.
            if not matched.over:
                tallies.late.append(matched)
            matched.over += 1
        else:
            self._count(tallies)
        if entered is not None:
            for at in entered.places:
                # `give_back`, in here: the window of what has none is 0, unless it sleeps.
                share = self._shares[at]
                if not share.window:
                    share.left += 1
                    share.spent -= 1
        if complete and not self.cut:
            answers = self._answers
            matched.answers.add(
                answer_tokens if answers == 1 else math.ceil(answer_tokens / answers)
            )

    def _weighed(
        self, tariff: TokenWeights, used: tuple[int, int, int], cost_micro: int | None
    ) -> int:
        """Return what so many tokens of prompt, its cached part, and answer count."""
        if tariff.rates is None:
            return tariff.weigh(*used)
        if cost_micro is not None:
            return cost_micro
        matched = self.matched
        if matched.price is None:
            return tariff.weigh(*used)
        return matched.cost_micro(*used, self._door.day())

    def _count(self, tallies: Tallies) -> None:
        """Count at each limit that it was charged to."""
        tallies.ended += 1
        for charge in self._charges:
            charge.tariff.measure.tally.admitted += 1
        for measure in () if self._entered is None or self.goes_on else self._entered.entry:
            measure.tally.admitted += 1
            if measure.window_ms:
                measure.tally.charged += 1

    def extend(self, cost_micro: int) -> bool:
        """Reserve so much more of limits on cost that want the worst case, for another call.

        False where one has too little here: then nothing is charged.
        """
        charges = [
            charge
            for charge in self._charges
            if charge.tariff.rates is not None and charge.tariff.worst_case
        ]
        for charge in charges:
            share = charge.tariff.measure.share
            if share.left < cost_micro:
                share.wants_more = True
                return False
        for charge in charges:
            charge.take_more(cost_micro)
        return True

    def settle_reserved(self, cost_micro: int | None = None) -> None:
        """End with unknown use: it counts as what was reserved, but for the cost where that is known."""
        if self._over:
            return
        for charge in self._charges:
            priced = charge.tariff.rates is not None and cost_micro is not None
            charge.settle(cost_micro if priced and cost_micro is not None else charge.held)
            charge.tariff.measure.tally.admitted += 1
        self._charges = ()
        self.settle(0, 0, 0)

    def void(self) -> None:
        """End as if it had never come."""
        if self._over:
            return
        self._over = True
        self._door.tallies.ended += 1
        self.unreserve()
        for at, share in enumerate(self._shares):
            give_back(share, self._windows[at], 1)

    def headers(self, family: Family) -> Mapping[str, str]:
        """Return the headers of its limits as of now; to be copied if they are kept longer."""
        return self._door.headers(self.matched, family)

    def _wake(self) -> bool:
        """Whether a share slept that something is to be taken from, or to go back to; none does any more."""
        for charge in self._charges:
            if charge.tariff.measure.share.window < 0:
                self._door.wake(self.matched)
                return True
        return False
