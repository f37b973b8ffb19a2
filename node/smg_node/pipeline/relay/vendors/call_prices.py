"""Call prices: what a relayed request may cost at its targets, and what its calls did cost. Pure.

A target at a vendor costs what the price of its provider's model says, else what that of the public name does. Limits on
cost are charged beforehand with the dearest target that may be asked, and in the end with what all calls cost that a
vendor has begun to answer: those that broke off, too.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Usage
from smg_node.core.generation.outcome import Bill
from smg_node.core.prices.cost import ALL_TIERS, call_pico, dearest, micro_up, most_of
from smg_node.core.prices.price import Rates, day_of
from smg_node.core.prices.price_list import PriceBook
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_context import Spent
from smg_node.pipeline.relay.relay_eligibility import can_take, vendor_of
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.response_filter import UsageReader

_AUTO: Final = "auto"


def spent_of(used: Usage | None, pieces: int, prompt_tokens: int, *, whole: bool) -> Spent:
    """Return what an answer takes: what its vendor said, as far as it came to. `pieces` of it came; `whole`: all did."""
    if used is None:
        return Spent(Usage(prompt_tokens, pieces, 0), estimated=True)
    if whole:
        return Spent(used)
    answer, prompt = max(used.completion_tokens, pieces), used.prompt_tokens or prompt_tokens
    counted = msgspec.structs.replace(used, prompt_tokens=prompt, completion_tokens=answer)
    return Spent(counted, estimated=True)


class CallPrices:
    """Prices of one request. `bills` are of its calls so far."""

    def __init__(self, book: PriceBook, asked: Relayable, now_ms: Callable[[], int]) -> None:
        self.bills: list[Bill] = []
        self.last_micro = 0
        """What the last call cost, in millionths of the currency, rounded up."""
        self._book = book
        self._asked = asked
        self._now_ms = now_ms
        self._answered = False
        """Whether a vendor was called, or own engines said what they used."""
        self._own_pico = 0

    # ── Before a call ────────────────────────────────────────────────────────

    def known(self, worker: Worker) -> bool:
        """Whether somebody has said what the request costs there; a worker of ours is free where nobody has."""
        side = vendor_of(worker)
        return side is None or self.rates(side) is not None

    def expected(
        self, model: str, workers: Iterable[Worker], *, worst_case: bool, unpriced: bool
    ) -> Rates | None:
        """Return rates that none of these workers exceeds; None where no vendor is among them.

        FORBIDDEN `unpriced_model` where only vendors could answer whose price is unknown, unless `unpriced` lets
        such requests through. In the worst case each byte of the request is a token of its prompt.
        """
        sides = [vendor_of(worker) for worker in workers if can_take(worker, self._asked)]
        vendors = [side for side in sides if side is not None]
        if not vendors:
            return None
        found = [rates for side in vendors if (rates := self.rates(side)) is not None]
        if not found and not unpriced and len(vendors) == len(sides):
            raise _unpriced(model)
        if len(vendors) < len(sides) and (own := self._book.now.of(model)) is not None:
            rates = dearest(own, prompt_max=self._prompt_max, day=self._day)
            found += [] if rates is None else [rates]
        if not found:
            return Rates()
        most = most_of(found)
        if not worst_case:
            return most
        uncounted = max(0, self._prompt_max - self._asked.prompt_tokens)
        return msgspec.structs.replace(most, per_call=most.per_call + uncounted * most.prompt)

    def rates(self, side: VendorSide) -> Rates | None:
        """Return the rates of the target that the request does not exceed; None where its price is not known."""
        price = side.price
        if price is None:
            return None
        tier = ALL_TIERS if self._tier == _AUTO else self._tier
        return dearest(price, prompt_max=self._prompt_max, tier=tier, day=self._day)

    @property
    def _prompt_max(self) -> int:
        return len(self._asked.raw)

    @property
    def _tier(self) -> str:
        """The service tier that the client asks for, "" for none."""
        tier = self._asked.fields.get("service_tier")
        return tier if isinstance(tier, str) else ""

    @property
    def _day(self) -> int:
        return day_of(self._now_ms())

    # ── After it ─────────────────────────────────────────────────────────────

    def called(self, side: VendorSide, spent: Spent | None) -> None:
        """Take in that a vendor was called; `spent` is None if it did not begin to answer, and takes nothing."""
        self._answered, self.last_micro = True, 0
        if spent is None:
            return
        pico = call_pico(side.price, spent.used, tier=self._tier, day=self._day)
        self.bills.append(Bill(side.provider, side.model, spent.used, pico, spent.estimated))
        self.last_micro = micro_up(pico or 0)

    def own_called(self, model: str, used: UsageReader) -> None:
        """Take in that own engines were called: a token there costs what the price of the public name says."""
        self.last_micro = 0
        usage = Usage(used.prompt_tokens, used.completion_tokens, used.cached_tokens)
        # What was reserved is by the dearest of all targets, and says nothing of them.
        self._answered |= usage.prompt_tokens + usage.completion_tokens > 0
        self._own_pico += call_pico(self._book.now.of(model), usage, day=self._day) or 0

    @property
    def cost_micro(self) -> int | None:
        """What all calls cost, in millionths of the currency, rounded up; None where no vendor was called, and own engines
        did not say what they used.
        """
        if not self._answered:
            return None
        return micro_up(self._own_pico + sum(bill.cost_pico or 0 for bill in self.bills))


def _unpriced(model: str) -> SmgError:
    return SmgError(
        ErrorKind.FORBIDDEN,
        f"a limit on cost applies to this request, and nobody has said what {model[:256]!r} costs at the vendors that"
        " serve it",
        where="model",
        code="unpriced_model",
    )
