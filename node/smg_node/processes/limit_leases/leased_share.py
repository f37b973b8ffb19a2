"""Leased share: the part of one limit a data process may charge, as `admission.ports.Share`."""

from typing import Final

from smg_node.admission.ports import State

ASLEEP: Final = -1
"""The window of a share in which nothing can be charged, and to which nothing comes back."""
UNKNOWN: Final = -1


class LeasedShare:
    """A part of its node's share. Code that charges it takes from `left` and adds to `spent`."""

    __slots__ = (
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
        "wants_more",
        "window",
        "window_ms",
    )

    def __init__(self, key: str, *, amount: int, window_ms: int) -> None:
        self.key = key
        self.amount = amount
        self.window_ms = window_ms
        self.left = 0
        self.low = 0
        self.wants_more = False
        self.window = ASLEEP
        self.debt = 0
        self.spent = 0
        self.offered = 0
        self.pool = UNKNOWN
        self.ends_ms = 0
        self.next_ms = 0
        self.state: State = "exact"
        self.wanted = 0

    def retire(self) -> None:
        """End it: nothing may be charged or come back; its holders ask for another one."""
        self.left = self.low = 0
        self.window = ASLEEP
        self.wants_more = False
