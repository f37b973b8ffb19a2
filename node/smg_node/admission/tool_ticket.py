"""Tool ticket of one run of a tool: charged before the call leaves, held until it is over.

    ticket ──▶ enter ──▶ sent ──▶ settle     the run was made, whatever came of it: it stays spent
                 │         └────▶ void       the same: what was sent may have run
                 ├──────────────▶ void       nothing was sent: all goes back
                 └ refused                   nothing is charged

A run is one of the limit's requests, one of what may be open at a time until it is settled or voided, and its price.
Settling and voiding may be tried any number of times and in any order: the first one counts.
"""

from typing import Final, Protocol

from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.limit_matching import Matched
from smg_node.admission.ticket import Door, Ticket
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.prices.call_price import read_call_price
from smg_node.core.prices.cost import micro_up
from smg_node.core.prices.price import Rates

UNPRICED_CODE: Final = "unpriced_tool"


class _Options(Protocol):
    @property
    def unpriced(self) -> str:
        """What limits on cost do with what has no price."""
        ...


class ToolTicket:
    """Charge of one run. `price` is what a run costs, as the tool's definition says it; "" where it says nothing.

    ValueError for what is no price.
    """

    __slots__ = ("_name", "_price_pico", "_sent", "_ticket", "_unpriced")

    def __init__(
        self, door: Door, matched: Matched, options: _Options, name: str, price: str
    ) -> None:
        self._ticket = Ticket(door, matched)
        self._name = name
        self._price_pico = read_call_price(price) if price else 0
        self._unpriced = not price and matched.costs and options.unpriced == "refuse"
        self._sent = False

    async def enter(self) -> SmgError | None:
        """Charge the run, with its price; return why not, if a limit has too little for it, and then nothing is charged.

        A LimitedError names the limit and says when to come again. FORBIDDEN `unpriced_tool`: a limit on cost applies to
        the run, and nobody has said what it costs.
        """
        ticket = self._ticket
        if self._unpriced:
            ticket.void()
            return _no_price(self._name)
        ticket.rates = Rates(per_call=self._price_pico)
        try:
            await ticket.enter()
            await ticket.reserve(0, 0)
        except LimitedError as error:
            ticket.void()
            return error
        except BaseException:
            ticket.void()
            raise
        return None

    def sent(self) -> None:
        """Take in that a first byte of the call may leave: from now on it is spent."""
        self._sent = True

    def settle(self, price: str | None = None) -> None:
        """End the run; `price` is what it cost, None for what was charged."""
        pico = self._price_pico if price is None else read_call_price(price or "0")
        self._ticket.settle(0, 0, 0, cost_micro=micro_up(pico))

    def void(self) -> None:
        """End as if it had never come, unless it was sent: then settle."""
        if self._sent:
            self.settle()
        else:
            self._ticket.void()


def _no_price(name: str) -> SmgError:
    return SmgError(
        ErrorKind.FORBIDDEN,
        f"a limit on cost applies to runs of {name[:256]!r}, and nobody has said what one costs: price_per_call in the"
        " definition of its server",
        code=UNPRICED_CODE,
    )
