"""Relay metering: charges a relayed request to limits, by the worker's usage or by estimates.

This node has no tokenizer of relayed models. A prompt is reserved by its length in characters, one
token an event is charged while an answer is streamed; the worker's usage at the end replaces both.
"""

from typing import Final

from smg_node.admission.admission import Admission
from smg_node.admission.ticket import Ticket
from smg_node.core.json_cursor import whole
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_request import LENGTHS, Relayable
from smg_node.pipeline.relay.response_filter import UsageReader

LENGTH_MAX: Final = 1 << 40
_EVENT: Final = b"data:"


class RelayMeter:
    """Meter of one request. `ticket` has the limits it met, None if there are none or it has not
    entered.
    """

    def __init__(
        self, admission: Admission | None, asked: Relayable, context: RequestContext
    ) -> None:
        self.ticket: Ticket | None = None
        self._admission = admission
        self._asked = asked
        self._context = context
        self._events = 0

    async def enter(self, model: str) -> None:
        """Charge an estimate; LimitedError if a limit refuses it."""
        if self._admission is not None:
            self.ticket = self._admission.ticket(self._context, model)
        ticket, asked = self.ticket, self._asked
        if ticket is None:
            return
        await ticket.enter()
        answers = 1
        most: int | None = 0
        if asked.api.generates:
            answers = asked.answers
            length = length_of(asked)
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

    def settle(self, usage: UsageReader, *, called: bool, failed: bool, complete: bool) -> None:
        """Give back the unused charge; `failed` is whether a worker or its node gave no answer."""
        ticket, asked = self.ticket, self._asked
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
            )
        elif failed and not self._events:
            ticket.settle(0, 0, 0)
        elif asked.api.generates and not asked.streamed and complete:
            ticket.settle_reserved()
        else:
            ticket.settle(asked.prompt_tokens, 0, self._events)


def length_of(asked: Relayable) -> int | None:
    """Return the maximum tokens of an answer, None where its client did not set it."""
    for name in reversed(LENGTHS):
        value = whole(asked.fields.get(name))
        if value is not None and 0 <= value < LENGTH_MAX:
            return value
    return None
