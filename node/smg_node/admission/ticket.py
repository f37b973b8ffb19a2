"""One request that limits apply to: charged when it enters, while its answer goes on, and settled when it is over.

    ticket ──▶ enter ──▶ reserve ──▶ streamed … ──▶ settle      it was worked on; what it did not use goes back
                 │          │                  └──▶ void        nothing was done for it: all goes back
                 └ refused ─┘                                   nothing is charged

Limits on requests and on what is open at a time are charged before a prompt is even looked at, those on tokens when
its length is known. Settling and voiding may be tried any number of times and in any order: the first one counts.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from smg_node.admission.charge import Charge
from smg_node.admission.matching import Matched, Measure
from smg_node.admission.ports import Share
from smg_node.admission.share import admit, admit_each, give_back
from smg_node.admission.told import Family, Told, limit_headers

ENDLESS_TOKENS: Final = 32_768
"""What an answer may have at most where nobody said."""


class Short(NamedTuple):
    """A limit that has less than was needed."""

    measure: Measure
    cost: int


Attempt: TypeAlias = Callable[[Matched], Short | None]


class Door(Protocol):
    """What a ticket asks of where it comes from."""

    async def insist(
        self, matched: Matched, attempt: Attempt, *, asking: bool = True
    ) -> tuple[Matched, Short | None]:
        """Try until it works, as long as waiting may help; return what is short in the end.

        The limits it was tried with are returned as well: they may have changed meanwhile. Unless `asking`, nobody
        came with a request, and what is short is not counted as refused.
        """
        ...

    def refuse(self, matched: Matched, short: Short) -> Exception:
        """Return the error that tells a client of it."""
        ...

    def wake(self, matched: Matched) -> None:
        """Let no share of these limits sleep."""
        ...

    def told(self, matched: Matched) -> Sequence[Told]:
        """Return what clients are told of these limits now."""
        ...

    def closed(self) -> None:
        """Count a ticket that is over."""
        ...


class Ticket:
    """One of them. `metered` is whether its tokens are counted, so that `streamed` has to be called.

    `cut` is whether its answer was ended because there was no right to go on.
    """

    __slots__ = ("_answers", "_charges", "_door", "_entered", "_matched", "_over", "cut", "metered")

    def __init__(self, door: Door, matched: Matched) -> None:
        self._door = door
        self._matched = matched
        self._entered: list[tuple[Measure, Share, int]] = []
        self._charges: list[Charge] = []
        self._answers = 1
        self._over = False
        self.metered = bool(matched.tariffs)
        self.cut = False

    @property
    def worst_case(self) -> bool:
        """Whether it matters how long its answer may be at most."""
        return any(tariff.worst_case for tariff in self._matched.tariffs)

    # ── In ───────────────────────────────────────────────────────────────────

    async def enter(self) -> None:
        """Charge the request itself; LimitedError if a limit does not let it in."""
        if admit(self._matched.entry_shares, 1) is not None:
            self._matched, short = await self._door.insist(self._matched, _entered)
            if short is not None:
                raise self._door.refuse(self._matched, short)
        # Who leaves again gives back to the window of this moment, or to none if it is over by then.
        self._entered = [
            (measure, measure.share, measure.share.window) for measure in self._matched.entry
        ]

    async def reserve(
        self, prompt_tokens: int, most_tokens: int | None = None, *, answers: int = 1
    ) -> None:
        """Charge the prompt, and what so many answers may need, together at most `most_tokens` (None: unknown).

        LimitedError if a limit does not let it in; then nothing is charged, the request itself neither.
        """
        matched = self._matched
        if not matched.tariffs:
            return
        self._answers = answers
        most = ENDLESS_TOKENS * answers if most_tokens is None else most_tokens
        costs = _costs(matched, prompt_tokens, most, answers)
        if admit_each(matched.token_shares, costs) >= 0:

            def attempt(matched: Matched) -> Short | None:
                costs[:] = _costs(matched, prompt_tokens, most, answers)
                at = admit_each(matched.token_shares, costs)
                return Short(matched.tariffs[at].measure, costs[at]) if at >= 0 else None

            await self._insist(attempt)
        self._charges = list(map(Charge, self._matched.tariffs, self._matched.token_shares, costs))

    async def _insist(self, attempt: Attempt) -> None:
        """Try until it works; if it does not, leave as if nobody had come."""
        try:
            self._matched, short = await self._door.insist(self._matched, attempt)
            if short is not None:
                raise self._door.refuse(self._matched, short)
        except BaseException:
            self.void()
            raise

    # ── On the way ───────────────────────────────────────────────────────────

    def streamed(self, prompt_tokens: int, answer_tokens: int) -> bool:
        """Take note that there are so many tokens by now. False if the answer must have more rights to go on."""
        enough = True
        for charge in self._charges:
            used = charge.tariff.weigh(prompt_tokens, 0, answer_tokens)
            if charge.covers(used) or (self._wake() and charge.covers(used)):
                continue
            if charge.tariff.finish:
                enough = False
            else:
                charge.overdraw(used)
        return enough

    async def more(self, prompt_tokens: int, answer_tokens: int) -> bool:
        """Wait for these rights. False if the answer is to end here."""

        def attempt(_: Matched) -> Short | None:
            for charge in self._charges:
                used = charge.tariff.weigh(prompt_tokens, 0, answer_tokens)
                if charge.tariff.finish and not charge.covers(used):
                    missing = used - charge.held - charge.owed
                    return Short(charge.tariff.measure, missing)
            return None

        _, short = await self._door.insist(self._matched, attempt, asking=False)
        return short is None

    # ── Out ──────────────────────────────────────────────────────────────────

    def settle(
        self,
        prompt_tokens: int,
        cached_tokens: int,
        answer_tokens: int,
        *,
        complete: bool = False,
    ) -> None:
        """End with so much used. An answer that is `complete` tells how long the next ones may be."""
        if self._over:
            return
        self._close()
        self._wake()
        for charge in self._charges:
            charge.settle(charge.tariff.weigh(prompt_tokens, cached_tokens, answer_tokens))
        for measure, share, window in self._entered:
            measure.tally.admitted += 1
            if measure.window_ms:
                measure.tally.charged += 1
            else:
                give_back(share, window, 1)
        for charge in self._charges:
            charge.tariff.measure.tally.admitted += 1
        if complete and not self.cut:
            self._matched.answers.add(math.ceil(answer_tokens / self._answers))

    def settle_reserved(self) -> None:
        """End where nobody knows what was used: it counts as what was reserved."""
        if self._over:
            return
        for charge in self._charges:
            charge.settle(charge.held)
            charge.tariff.measure.tally.admitted += 1
        self._charges = []
        self.settle(0, 0, 0)

    def void(self) -> None:
        """End as if it had never come."""
        if self._over:
            return
        self._close()
        self._wake()
        for charge in self._charges:
            charge.settle(0)
        for _, share, window in self._entered:
            give_back(share, window, 1)

    def headers(self, family: Family) -> dict[str, str]:
        """Return the headers that tell of its limits as of now."""
        return limit_headers(self._door.told(self._matched), family)

    def _wake(self) -> bool:
        """Whether a share slept that something is to be taken from, or to go back to; none does any more."""
        asleep = any(charge.tariff.measure.share.window < 0 for charge in self._charges)
        if asleep:
            self._door.wake(self._matched)
        return asleep

    def _close(self) -> None:
        self._over = True
        self._door.closed()


def _costs(matched: Matched, prompt: int, most: int, answers: int) -> list[int]:
    """Return what each limit is to be charged for a prompt and what its answers may need, at most so much."""
    expected = min(most, matched.answers.expected * answers)
    return [
        tariff.weigh(prompt, 0, most if tariff.worst_case else expected)
        for tariff in matched.tariffs
    ]


def _entered(matched: Matched) -> Short | None:
    """Charge one request to all that it meets at the door, or say what is short."""
    share = admit(matched.entry_shares, 1)
    if share is None:
        return None
    return Short(matched.entry[matched.entry_shares.index(share)], 1)
