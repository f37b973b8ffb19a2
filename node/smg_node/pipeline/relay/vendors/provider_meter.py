"""Provider meter: charges each call of a provider to the provider's own limits, before it is sent.

A call that is sent again, to the same provider or to another, is charged again. What it was charged for tokens and cost
is settled by the vendor's usage at its end, or stays as it was reserved where an answer began and nobody knows; a request
stays spent, whatever its vendor made of it. A call that was not sent costs nothing.
"""

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.ticket import Ticket
from smg_node.pipeline.relay.relay_metering import length_of
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.response_filter import UsageReader


class ProviderMeter:
    """Meter of the calls that one request makes of one target; `model` is the public name. Without `admission` they are
    free.
    """

    def __init__(
        self, admission: Admission | None, asked: Relayable, provider: str, model: str
    ) -> None:
        self._admission = admission
        self._asked = asked
        self._provider = provider
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
        ticket = self._admission.provider_ticket(self._provider, self._model)
        if ticket is None:
            return
        asked = self._asked
        length = length_of(asked)
        most = None if length is None else length * asked.answers
        try:
            await ticket.enter()
            await ticket.reserve(asked.prompt_tokens, most, answers=asked.answers)
        except LimitedError as error:
            error.provider = self._provider
            raise
        self._ticket = ticket

    def sent(self) -> None:
        """Take in that the call is on its way."""
        self._sent = True

    def spoke(self) -> None:
        """Take in that its answer began."""
        self._spoke = True

    def end(self, usage: UsageReader, *, complete: bool) -> None:
        """Settle the call. `complete`: its answer is whole."""
        ticket, self._ticket = self._ticket, None
        if ticket is None:
            return
        if not self._sent:
            ticket.void()
        elif usage.prompt_tokens or usage.completion_tokens:
            used = usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens
            ticket.settle(*used, complete=complete)
        elif complete or self._spoke:
            ticket.settle_reserved()
        else:
            ticket.settle(0, 0, 0)
