"""Limit port: limits of the cluster and their use, as the HTTP surface reads and changes them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from smg_node.core.errors import ErrorKind, SmgError

UnavailableReason: TypeAlias = Literal[
    "dead", "silent", "restarted", "owner_lost", "withheld", "no_owner"
]


class AmountView(msgspec.Struct, frozen=True):
    """Units allowed in each window. Cost is in millionths of the currency."""

    unit: str
    amount: int
    window: str
    window_ms: int


class LimitRival(msgspec.Struct, frozen=True):
    """A concurrent write that lost against the rule in force. Without any amounts it removed the
    rule.
    """

    version: str
    owner: str
    time_ms: int
    amounts: Sequence[AmountView]
    concurrency: int | None


class LimitView(msgspec.Struct, frozen=True):
    """Limit of one scope. `rule` is the scope of the rule in force: another one if a `*` covers
    this scope.

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
    standing_from_ms: int = 0
    """From when `standing` is true of new windows, where more stands than before; 0: it is."""


class NodeUse(msgspec.Struct, frozen=True):
    """Use of one limit on one node in its present window. `given` is what the owner gave it and has
    not back.
    """

    window: int
    state: str
    spent: int
    left: int
    standing: int
    borrowed: int
    debt: int
    given: int | None


class Unavailable(msgspec.Struct, frozen=True):
    """Part of a limit that nobody can get in its window, and why: `text` says it in words.

    `node` is the node that has it or had it, empty where it is no single one.
    """

    amount: int
    reason: UnavailableReason
    node: str
    text: str


class LimitUse(msgspec.Struct, frozen=True):
    """Use of one limit in the current window, summed over the nodes that answered and are in that
    window.

    `name` is what clients read in `x-smg-limit`. `spent` has what is reserved for answers under way in it. `minted`
    and `pool` are the owner's, None if there is none. `not_adopted` are nodes not known to go by this version of the
    limits. `left` is what nodes have in hand; `remaining` is all that can still be got at any of them, `over` what was
    spent beyond the amount, and `spent` + `remaining` + all that is `unavailable` = `amount` + `over`.
    """

    key: str
    name: str
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
    remaining: int
    over: int
    unavailable: Sequence[Unavailable]


class LimitUses(msgspec.Struct, frozen=True):
    """Use of limits on all nodes. `silent` did not answer, and why; `exact` if the sums are
    complete, else `inexact_reasons` says why they may not be.

    `cut` counts limits that are not shown. `rows` are the halves of each node's book.
    """

    uses: Sequence[LimitUse]
    exact: bool
    inexact_reasons: Sequence[str] = ()
    cut: int = 0
    silent: Mapping[str, str] = {}
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = {}


class LimitChange(msgspec.Struct, frozen=True):
    """Result of a write: the rule before, and now; None where there was none."""

    before: LimitView | None
    now: LimitView | None


class StaleLimitError(SmgError):
    """The current version is another one than the named; `current` is the current rule, None for
    none.
    """

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

    def names(self, scope: str) -> Mapping[str, str]:
        """Return whom a scope is for, by `tenant`, `key`, `model`, `provider` and `tool`; INVALID_REQUEST."""
        ...

    def limits_of(self, owns: Callable[[Mapping[str, str]], bool]) -> Sequence[LimitView]:
        """Return the rules in force whose names are somebody's, sorted by scope."""
        ...

    def lower(self, scope: str, body: Mapping[str, Any], *, version: int | None) -> LimitChange:
        """Set it everywhere, as `change` does, if that allows less or the same than what is in force for the scope;
        FORBIDDEN `limit_not_lower`.
        """
        ...

    @property
    def fields(self) -> Collection[str]:
        """Fields of a change's body."""
        ...

    def limits(self) -> Sequence[LimitView]:
        """Return every rule in force, sorted by scope."""
        ...

    def unreadable(self) -> Sequence[str]:
        """Return the scopes whose rule this version cannot read; they limit nothing here."""
        ...

    def limit(self, scope: str) -> LimitView:
        """Return the rule in force for a scope; NOT_FOUND `limit_not_found`, INVALID_REQUEST for an
        invalid one.
        """
        ...

    async def use(self, scope: str, *, rows: bool) -> LimitUses:
        """Return its use in the whole cluster now; of a `*` for each scope in use."""
        ...

    async def use_of_all(self) -> LimitUses:
        """Return the use of all limits in the whole cluster now, the fullest first."""
        ...

    def change(self, scope: str, body: Mapping[str, Any], *, version: int | None) -> LimitChange:
        """Set it everywhere.

        INVALID_REQUEST names the field that is wrong; StaleLimitError where another version is
        there. None overwrites any version; 0 expects nothing.
        """
        ...

    def unset(self, scope: str, *, version: int | None) -> LimitChange:
        """Remove it everywhere; NOT_FOUND `limit_not_set` if this scope has none of its own."""
        ...
