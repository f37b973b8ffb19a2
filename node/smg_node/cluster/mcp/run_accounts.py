"""Run accounts: charges runs of tools to the limits of their scope, and counts them in the node's usage book.

A run is charged before its call leaves, and given back only where nothing was sent. One that is sent again is another
run: a limit of so many runs is one of so many calls that reach the server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias, cast

from msgspec.structs import replace

from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.tool_ticket import ToolTicket
from smg_node.admission.usage.tool_usage import RunOutcome, ToolUsage
from smg_node.admission.usage.usage_book import UsageBook
from smg_node.cluster.mcp.mcp_metrics import outcome_of, result_bytes
from smg_node.core.errors import SmgError
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.mcp.failures import NOT_RUN, Failure, FailureKind
from smg_node.mcp.tool_servers import CallOptions, ResolvedServer
from smg_node.mcp.tools.tool_result import CallResult

_Outcome: TypeAlias = CallResult | Failure
_Call: TypeAlias = Callable[[CallOptions], Awaitable[_Outcome]]
CUT: Final[RunOutcome] = "lost"
"""How a run is counted whose caller left after it was sent."""


class Limits(Protocol):
    """Port to the limits; `Admission` fits."""

    def tool_ticket(
        self, context: RequestContext, model: str, server: str, tool: str, *, price: str = ""
    ) -> ToolTicket | None:
        """Return the ticket of one run, None if nothing limits it."""
        ...


class RunAccounts:
    """Accounts of one process. `limits` is None where there are none."""

    def __init__(self, limits: Limits | None, book: UsageBook, clock: Clock) -> None:
        self._limits = limits
        self._usage = ToolUsage(book)
        self._clock = clock

    async def run(
        self,
        server: ResolvedServer,
        tool: str,
        context: RequestContext,
        options: CallOptions,
        call: _Call,
    ) -> _Outcome:
        """Make a call, charged and counted; a failure of the kind LIMITED where a limit has too little for it."""
        name = server.spec.name if server.defined else ""
        price = server.spec.rule(tool).price_per_call if server.defined else ""
        ticket = None
        if self._limits is not None:
            ticket = self._limits.tool_ticket(context, options.model, name, tool, price=price)
        sending = _Sending(ticket, options.sending)
        began_s = self._clock.monotonic_s()
        word: RunOutcome | None = None
        size = 0
        try:
            if ticket is not None and (error := await ticket.enter()) is not None:
                return limited(error)
            outcome = await call(replace(options, sending=sending.told))
            word = cast(RunOutcome, outcome_of(outcome))
            size = result_bytes(outcome) if isinstance(outcome, CallResult) else 0
            return outcome
        except asyncio.CancelledError:
            word = CUT
            raise
        finally:
            if ticket is not None:
                ticket.void()
            if word is not None and sending.begun:
                seconds = self._clock.monotonic_s() - began_s
                self._usage.ran(
                    context.tenant,
                    context.key_id,
                    name,
                    tool,
                    word,
                    seconds=seconds,
                    answer_bytes=size,
                    price=price,
                )


class _Sending:
    """Whether a first byte of a call may have left, told to the ticket and to whoever else wants to know."""

    def __init__(self, ticket: ToolTicket | None, sending: Callable[[], None] | None) -> None:
        self._ticket = ticket
        self._sending = sending
        self.begun = False

    def told(self) -> None:
        """Take in that it may leave now."""
        self.begun = True
        if self._ticket is not None:
            self._ticket.sent()
        if self._sending is not None:
            self._sending()


def limited(error: SmgError) -> Failure:
    """Return the failure of a run that a limit does not let in."""
    retry_s = error.retry_after_s if isinstance(error, LimitedError) else None
    return Failure(FailureKind.LIMITED, NOT_RUN, error.message, sent=False, retry_after_s=retry_s)
