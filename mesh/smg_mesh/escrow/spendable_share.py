"""Spendable share: what one node may still charge to one limit: all
that admission sees and changes.

Attributes only, for the hot path. A caller that charges changes these, and nothing else:

    admitted    left -= cost, spent += cost, offered += cost; wants_more = True below `low`, which calls the ledger
    refused     offered += cost
    settled     left += unused, spent -= unused, but only if `window` is still that of the charge
    overdrawn   debt += what went beyond (`left` never goes below 0)

Everything else belongs to the `Ledger`. A share that was not used for a while goes to sleep:
nothing is left in it and its window is -1, so that nothing is charged to or settled in a window
that is over. It may also be retired (its limit is gone): then it stays so. A caller that finds too
little asks the ledger for the share of that key once more, before saying no: that wakes it.
"""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from smg_mesh.escrow.limit_model import Limit

State: TypeAlias = Literal["exact", "standing", "borrowed", "alone"]

ASLEEP: int = -1
"""The window of a share that sleeps or is retired."""


class Share:
    """The rights of this node to one key, in the window that it goes by now.

    `left`: what may be charged. `low`: below it more is wanted. `spent`, `offered`: charged, and
    asked for (refused too), in this window. `debt`: charged without a right to it; paid before
    anything else is admitted. `pool`: what can still be had elsewhere as far as the owner said, in
    its hands or with nodes that hear it, 0 when there is nothing, -1 when that is not known.
    `next_ms`: when the next unit accrues here without anybody's help, 0 if none does in this window
    (wall clock). `ends_ms`: the end of the window on the wall clock (0 without windows).
    `wanted`: the largest cost that waits for rights to come, set and cleared by the queue of
    requests. `state`: exact (an owner is there), standing (only what stands), borrowed or alone (a
    minority, in its mode).
    """

    __slots__ = (
        "_call",
        "_wants_more",
        "amount",
        "debt",
        "ends_ms",
        "key",
        "left",
        "low",
        "next_ms",
        "offered",
        "pool",
        "spent",
        "state",
        "wanted",
        "window",
        "window_ms",
    )

    def __init__(self, limit: Limit, call: Callable[[], object] | None = None) -> None:
        self._call: Final = call
        self._wants_more = False
        self.key = limit.key
        self.amount = limit.amount
        self.window_ms = limit.window_ms
        self.window = ASLEEP
        self.ends_ms = 0
        self.next_ms = 0
        self.left = 0
        self.low = 0
        self.wanted = 0
        self.spent = 0
        self.offered = 0
        self.debt = 0
        self.pool = -1
        self.state: State = "exact"

    @property
    def wants_more(self) -> bool:
        """Whether a caller found less than `low`; the first one calls the ledger, and
        no other until that has looked.
        """
        return self._wants_more

    @wants_more.setter
    def wants_more(self, wants_more: bool) -> None:
        news = wants_more and not self._wants_more
        self._wants_more = wants_more
        if news and self._call is not None:
            self._call()
