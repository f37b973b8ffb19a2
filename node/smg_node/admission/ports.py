"""Ports of admission into the cluster: limits that a request matches, this node's shares."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

Unit: TypeAlias = Literal[
    "requests", "tokens", "input_tokens", "output_tokens", "cost", "concurrent"
]
State: TypeAlias = Literal["exact", "standing", "borrowed", "alone"]
"""How much a share is worth: the owner's word; own rights only; those and borrowed ones; half a cluster's owner."""


class Share(Protocol):
    """What this node may spend of one limit now. Code that charges it takes from `left` and adds to
    `spent`.

    `window` is the number of the window that `left` belongs to; 0 always for what has no windows,
    -1 while the share sleeps: then `left` is 0, and what comes back late belongs nowhere. `pool` is
    what can still be had elsewhere, of the owner and of nodes that hear it, as the owner said last;
    -1 if it said nothing. `ends_ms` is when the window ends, `next_ms` when the next unit accrues
    here without an owner, 0 if none does: both by the wall clock.
    """

    key: str
    left: int
    low: int
    """Below this, more is wanted, which whoever charges says; never less than 0."""
    wants_more: bool
    window: int
    debt: int
    """Spent without a right: paid from what the next windows bring."""
    amount: int
    window_ms: int
    spent: int
    """In this window."""
    offered: int
    """What was asked for, refused or not."""
    pool: int
    ends_ms: int
    next_ms: int
    state: State


class Rights(Protocol):
    """This node's shares."""

    def share(self, key: str) -> Share | None:
        """Return the share of a limit, awake and with what stands in it; None if there is no such limit."""
        ...

    async def refilled(self, share: Any, cost: int, within_s: float) -> bool:
        """Wait until so much is left, at most so long; false at once if no node can give any.

        `share` is one that `share` returned: these rights know their own kind of it.
        """
        ...


class Match(Protocol):
    """One limit that a request meets. `scope` is as it was defined, `key` that of the one instance of it."""

    @property
    def key(self) -> str:
        """Key of its share: scope, unit and window."""
        ...

    @property
    def scope(self) -> str:
        """As the operator wrote it, perhaps with `*`."""
        ...

    @property
    def unit(self) -> Unit:
        """What is counted."""
        ...

    @property
    def window_ms(self) -> int:
        """How long a window is, 0 for what is open at a time."""
        ...

    @property
    def reserve(self) -> Literal["worst_case", "estimate"]:
        """How much is reserved for an answer of unknown length."""
        ...

    @property
    def on_exhausted(self) -> Literal["debt", "finish"]:
        """What becomes of an answer that has used up what there is."""
        ...

    @property
    def cached_weight(self) -> float:
        """How much a prompt token counts that the engine had cached."""
        ...


class Rules(Protocol):
    """The limits as they are defined now."""

    @property
    def version(self) -> int:
        """Another number after every change."""
        ...

    def matching(self, tenant: str, key_id: str, model: str) -> Sequence[Match]:
        """Return every limit that such a request meets; empty names match no tenant, key, model."""
        ...

    def of_provider(self, provider: str) -> Sequence[Match]:
        """Return every limit that a call of that provider meets."""
        ...

    def of_tool(self, tenant: str, key_id: str, model: str, tool: str) -> Sequence[Match]:
        """Return every limit that a run of that tool, `SERVER/TOOL`, meets for such a caller."""
        ...
