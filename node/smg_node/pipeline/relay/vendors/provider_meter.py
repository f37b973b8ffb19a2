"""Provider meter: charges each call of a provider to the provider's own limits, before it is sent.

A call that is sent again, to the same provider or to another, is charged again. What it was charged for tokens and cost
is settled by the vendor's usage at its end, or stays as it was reserved where an answer began and nobody knows; a request
stays spent, whatever its vendor made of it. A call that was not sent costs nothing.
"""

from collections.abc import Callable

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.ticket import Ticket
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.pipeline.relay.relay_context import Spent
from smg_node.pipeline.relay.relay_request import Relayable, answer_length
from smg_node.pipeline.relay.response_filter import UsageReader
from smg_node.pipeline.relay.vendors.call_prices import CallPrices


class ProviderMeter:
    """Meter of the calls that one request makes of one target, a model of `side`; `prices` are those of the request and
    `model` is the public name. Without `admission` they are free.
    """

    def __init__(
        self,
        admission: Admission | None,
        prices: Callable[[], CallPrices],
        asked: Relayable,
        side: VendorSide,
        model: str,
    ) -> None:
        self._admission = admission
        self._prices = prices
        self._asked = asked
        self._side = side
        self._model = model
        self._ticket: Ticket | None = None
        self._sent = False
        self._spoke = False

    async def begin(self) -> None:
        """Charge a call; that before it was refused. LimitedError with the provider's name if a limit has too little for it;
        then nothing is charged.
        """
        if self._ticket is not None:
            self._ticket.settle(0, 0, 0)
        self._ticket, self._sent = None, False
        if self._admission is None:
            return
        ticket = self._admission.provider_ticket(self._side.provider, self._model)
        if ticket is None:
            return
        asked = self._asked
        if ticket.matched.costs:
            ticket.rates = self._prices().rates(self._side)
        length = answer_length(asked)
        most = None if length is None else length * asked.answers
        try:
            await ticket.enter()
            await ticket.reserve(asked.prompt_tokens, most, answers=asked.answers)
        except BaseException as error:
            ticket.void()
            if isinstance(error, LimitedError):
                error.provider = self._side.provider
            raise
        self._ticket = ticket

    def sent(self) -> None:
        """Take in that the call is on its way."""
        self._sent = True

    def spoke(self) -> None:
        """Take in that its answer began."""
        self._spoke = True

    def end(self, usage: UsageReader, spent: Spent | None = None, *, complete: bool) -> None:
        """Settle the call, for which its vendor takes `spent`. `complete`: its answer is whole."""
        ticket, self._ticket = self._ticket, None
        if ticket is None:
            return
        cost_micro: int | None = None
        if ticket.matched.costs and spent is not None:
            priced = self._prices()
            priced.called(self._side, spent)
            cost_micro = priced.cost_micro
        if not self._sent:
            ticket.void()
        elif usage.prompt_tokens or usage.completion_tokens:
            used = usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens
            ticket.settle(*used, complete=complete, cost_micro=cost_micro)
        elif complete or self._spoke:
            ticket.settle_reserved(cost_micro)
        else:
            ticket.settle(0, 0, 0, cost_micro=cost_micro)
