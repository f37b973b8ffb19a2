"""Relay metering: charges a relayed request to limits, by the worker's usage or by estimates.

This node has no tokenizer of relayed models. A prompt is reserved by its length in characters, one
token an event is charged while an answer is streamed; the worker's usage at the end replaces both.
"""

from typing import TYPE_CHECKING, Final

from smg_node.admission.ticket import Ticket
from smg_node.core.generation.outcome import Bill
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import RelayParts, Spent
from smg_node.pipeline.relay.relay_request import Relayable, answer_length
from smg_node.pipeline.relay.response_filter import UsageReader
from smg_node.pipeline.relay.routes.target_filter import TargetFilter

if TYPE_CHECKING:
    from smg_node.pipeline.relay.vendors.call_prices import CallPrices

_EVENT: Final = b"data:"


class RelayMeter:
    """Meter of one request. `ticket` has the limits it met, None if there are none or it has not
    entered.
    """

    def __init__(self, parts: RelayParts, asked: Relayable, context: RequestContext) -> None:
        self.ticket: Ticket | None = None
        self._parts = parts
        self._admission = parts.admission if parts.charged else None
        self._prices: CallPrices | None = None
        """Prices of its targets, where they matter: it may be answered by vendors."""
        self._asked = asked
        self._context = context
        self._events = 0
        self._handed = False

    # ── At vendors ───────────────────────────────────────────────────────────

    def vendor_called(self, side: VendorSide, spent: Spent | None) -> None:
        """Take in that a vendor was called; `spent` is None if it did not begin to answer, and takes nothing."""
        self._at_vendors().called(side, spent)

    def own_called(self, model: str, usage: UsageReader) -> None:
        """Take in that own engines were called; what they took is part of the cost where vendors were called before."""
        if self._prices is not None:
            self._prices.own_called(model, usage)

    def may_call_again(self) -> bool:
        """Reserve for another call what the one before has cost; whether limits on cost let that be."""
        cost_micro = 0 if self._prices is None else self._prices.last_micro
        return not cost_micro or self.ticket is None or self.ticket.extend(cost_micro)

    @property
    def bills(self) -> tuple[Bill, ...]:
        """What vendors take for it, call by call."""
        return () if self._prices is None else tuple(self._prices.bills)

    def _at_vendors(self) -> "CallPrices":
        # Imported with the first one: a node without providers has none of it.
        from smg_node.pipeline.relay.vendors.call_prices import CallPrices

        if self._prices is None:
            parts = self._parts
            self._prices = CallPrices(parts.prices, self._asked, parts.clock.now_ms)
        return self._prices

    # ── In and out ───────────────────────────────────────────────────────────

    async def enter(self, model: str, targets: TargetFilter) -> None:
        """Charge an estimate; LimitedError if a limit refuses it, FORBIDDEN if one on cost applies and nobody knows what
        any of its targets costs. Targets without a price are left out then.
        """
        if self._admission is not None:
            self.ticket = self._admission.ticket(self._context, model)
        ticket = self.ticket
        if ticket is None:
            return
        if ticket.matched.costs and (serving := targets.vendors_among()):
            assert self._admission is not None, "it issued the ticket"
            prices, unpriced = self._at_vendors(), self._admission.options.unpriced == "allow"
            if not unpriced:
                targets.priced = lambda worker: prices.known(worker)
            ticket.rates = prices.expected(
                model, serving, worst_case=ticket.worst_case, unpriced=unpriced
            )
        await ticket.enter()
        await self._reserve(ticket)

    def hand_over(self) -> Ticket | None:
        """Return the ticket for a call that counts tokens itself, with nothing reserved on it; see `take_back`."""
        if self.ticket is not None:
            self.ticket.unreserve()
            self._handed = True
        return self.ticket

    async def take_back(self) -> None:
        """Reserve an estimate again where a call that counted tokens itself came to nothing; as `enter`."""
        if self._handed and self.ticket is not None:
            self._handed = False
            self.ticket.unreserve()
            await self._reserve(self.ticket)

    async def _reserve(self, ticket: Ticket) -> None:
        asked = self._asked
        answers = 1
        most: int | None = 0
        if asked.api.generates:
            answers = asked.answers
            length = answer_length(asked)
            most = None if length is None else length * answers
        await ticket.reserve(asked.prompt_tokens, most, answers=answers)

    def passed(self, piece: Head | bytes) -> None:
        """Count what the client gets. A relayed answer is never ended by a limit: its bytes are the
        worker's.
        """
        if not self._asked.streamed or not isinstance(piece, bytes):
            return
        self._events += piece.count(_EVENT)
        if self.ticket is not None:
            self.ticket.streamed(self._asked.prompt_tokens, self._events)

    def used(self, usage: UsageReader, *, called: bool, failed: bool) -> tuple[int, int, int]:
        """Return tokens of prompt, of its cached part, and of the answer; estimates if its worker
        gave no usage.
        """
        if usage.prompt_tokens or usage.completion_tokens:
            return usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens
        if not called or (failed and not self._events):
            return 0, 0, 0
        return self._asked.prompt_tokens, 0, self._events

    def settle(
        self,
        usage: UsageReader,
        *,
        called: bool,
        failed: bool,
        complete: bool,
    ) -> None:
        """Give back the unused charge; `failed` is whether a worker or its node gave no answer."""
        ticket, asked = self.ticket, self._asked
        # What own engines answered costs what the price of the public name says.
        foreign = self._prices is not None and not self._handed
        cost_micro = self._prices.cost_micro if foreign and self._prices is not None else None
        if ticket is None:
            return
        if not called:
            ticket.void()
        elif usage.prompt_tokens or usage.completion_tokens:
            ticket.settle(
                usage.prompt_tokens,
                usage.cached_tokens,
                usage.completion_tokens,
                complete=complete and not failed,
                cost_micro=cost_micro,
            )
        elif failed and not self._events:
            ticket.settle(0, 0, 0, cost_micro=cost_micro)
        elif asked.api.generates and not asked.streamed and complete:
            ticket.settle_reserved(cost_micro)
        else:
            ticket.settle(asked.prompt_tokens, 0, self._events, cost_micro=cost_micro)
