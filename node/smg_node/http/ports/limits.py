"""What the HTTP surface shows of the cluster's limits, and whom it asks."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from smg_node.core.errors import ErrorKind, SmgError


class AmountView(msgspec.Struct, frozen=True):
    """So many units in each window. Cost is in millionths of the currency."""

    unit: str
    amount: int
    window: str
    window_ms: int


class LimitRival(msgspec.Struct, frozen=True):
    """What was written without knowledge of the rule that counts. Without any amounts it took the rule away."""

    version: str
    owner: str
    time_ms: int
    amounts: Sequence[AmountView]
    concurrency: int | None


class LimitView(msgspec.Struct, frozen=True):
    """The limit of one scope. `rule` is the scope of what counts: another one if a `*` speaks of this scope.

    Version "0" says that this scope has no rule of its own.
    """

    scope: str
    rule: str
    version: str
    owner: str
    time_ms: int
    amounts: Sequence[AmountView]
    concurrency: int | None
    mode: str
    standing: float
    reserve: str
    on_exhausted: str
    cached_weight: float
    volatile: bool
    note: str
    conflicts: Sequence[LimitRival] = ()


class NodeUse(msgspec.Struct, frozen=True):
    """What one node says of one limit in its present window. `given` is what the owner gave it and has not back."""

    window: int
    state: str
    spent: int
    left: int
    standing: int
    borrowed: int
    debt: int
    given: int | None


class LimitUse(msgspec.Struct, frozen=True):
    """One limit in the window of this moment, added up over the nodes that answered and are in that window.

    `spent` has what is reserved for answers under way in it. `minted` and `pool` are the owner's, None if there is
    none. `not_adopted` are nodes not known to go by this version of the limits.
    """

    key: str
    unit: str
    window_ms: int
    window: int
    ends_ms: int
    amount: int
    spent: int
    left: int
    standing: int
    borrowed: int
    debt: int
    given: int
    minted: int | None
    pool: int | None
    owner: str
    term: int
    state: str
    not_adopted: Sequence[str]
    nodes: Mapping[str, NodeUse]


class LimitUses(msgspec.Struct, frozen=True):
    """What all nodes say. `silent` did not answer, and why; `exact` if what is added up is all there is.

    `cut` counts what more there is than is shown. `rows` are the halves of each node's book.
    """

    uses: Sequence[LimitUse]
    exact: bool
    cut: int = 0
    silent: Mapping[str, str] = {}
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = {}


class LimitChange(msgspec.Struct, frozen=True):
    """What a write did: the rule before, and now; None where there was none."""

    before: LimitView | None
    now: LimitView | None


class StaleLimitError(SmgError):
    """Another version is there than the one that was named; `current` is what is there, None for nothing."""

    def __init__(self, scope: str, current: LimitView | None) -> None:
        self.current: Final = current
        self.version: Final = "0" if current is None else current.version
        now = "not set" if current is None else f"version {current.version}"
        super().__init__(
            ErrorKind.CONFLICT,
            f"the limit of {scope} is {now} by now",
            where="if-match",
            code="stale",
        )


class LimitService(Protocol):
    """The limits of the whole cluster."""

    @property
    def fields(self) -> Collection[str]:
        """What the body of a change may say."""
        ...

    def limits(self) -> Sequence[LimitView]:
        """Return every rule in force, sorted by scope."""
        ...

    def unreadable(self) -> Sequence[str]:
        """Return the scopes whose rule this version cannot read; they limit nothing here."""
        ...

    def limit(self, scope: str) -> LimitView:
        """Return the rule that counts for a scope; NOT_FOUND `limit_not_found`, INVALID_REQUEST for no scope."""
        ...

    async def use(self, scope: str, *, rows: bool) -> LimitUses:
        """Return what is spent of it in the whole cluster now; of a `*` for each that is in use."""
        ...

    async def use_of_all(self) -> LimitUses:
        """Return what is spent of all limits in the whole cluster now, the fullest first."""
        ...

    def change(self, scope: str, body: Mapping[str, Any], *, version: int | None) -> LimitChange:
        """Set it everywhere.

        INVALID_REQUEST names the field that is wrong; StaleLimitError where another version is there. None
        writes over whatever is there; 0 expects nothing.
        """
        ...

    def unset(self, scope: str, *, version: int | None) -> LimitChange:
        """Take it away everywhere; NOT_FOUND `limit_not_set` if this scope has none of its own."""
        ...
