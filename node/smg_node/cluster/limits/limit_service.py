"""Limit service: answers the limits API: reads, checks and writes rules, sums what nodes spent.

A rule is checked before it is written, and each mistake names its field. What is spent is asked of
every living node; a node that does not answer is named, and then no sum is called exact.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import msgspec

from smg_mesh.shared import LimitError, LimitRule, LimitsView, Report, Row, RuleValue, StateError
from smg_node.cluster.limits.limit_totals import Asked, add_up, inexact_reasons
from smg_node.cluster.limits.lower_limits import check_lower
from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.config.schema.problems import printable
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.ports.limits import (
    AmountView,
    LimitChange,
    LimitRival,
    LimitUse,
    LimitUses,
    LimitView,
    StaleLimitError,
)

LIMITS: Final = "node.limits"
ASK_S: Final = 2.0
KEYS_MAX: Final = 500
"""Of one limit; a rule for each of many may be in use by more."""
ROWS_MAX: Final = 4 * KEYS_MAX
_ASKED_AT_ONCE_MAX: Final = 16


class Rights(Protocol):
    """Port to this node's knowledge of the use of limits; `smg_mesh.shared.Shared` has it."""

    def report(self, key: str) -> Report | None:
        """Return this node's report of a limit."""
        ...

    def rows(self) -> Sequence[Row]:
        """Return both halves of this node's book."""
        ...


class Members(Protocol):
    """Port to the members."""

    def living(self) -> Sequence[str]:
        """Return the names of the living members, this node's own too."""
        ...


class _Question(msgspec.Struct):
    scope: str
    rows: bool = False
    every: bool = False
    """Whether all scopes are meant, and not that one."""


class _Said(msgspec.Struct):
    reports: list[Report]
    basis: str = ""
    """What limits it goes by: equal where the same is defined."""
    cut: int = 0
    rows: list[dict[str, Any]] = []


class ClusterLimits:
    """The limits of the whole cluster, as this node sees and changes them.

    `durable`: this node has a place where what is minted can be written down.
    """

    def __init__(
        self,
        name: str,
        store: LimitsView,
        rights: Rights,
        members: Members,
        mesh: MemberQueries | None,
        *,
        durable: bool,
    ) -> None:
        self._name = name
        self._store = store
        self._rights = rights
        self._members = members
        self._mesh = mesh
        self._durable = durable
        if mesh is not None:
            mesh.answer(LIMITS, self._asked)

    # ── Seeing ───────────────────────────────────────────────────────────────

    @property
    def fields(self) -> Collection[str]:
        """Return the fields that the body of a change may have."""
        return self._store.fields

    def limits(self) -> Sequence[LimitView]:
        """Return every rule in force, sorted by scope."""
        return [_view(rule.scope, rule) for rule in self._store.rules()]

    def limits_of(self, owns: Callable[[Mapping[str, str]], bool]) -> Sequence[LimitView]:
        """Return the rules in force that are somebody's; see `LimitService`."""
        return [
            _view(value.scope, value) for value in self._store.rules() if owns(_names(value.rule))
        ]

    def names(self, scope: str) -> Mapping[str, str]:
        """Return whom a scope is for; see `LimitService`."""
        try:
            return self._store.names(scope)
        except LimitError as error:
            raise _invalid_scope(error) from error

    def unreadable(self) -> Sequence[str]:
        """Return the scopes whose rule this version cannot read."""
        return [printable(strange.key) for strange in self._store.unreadable()]

    def limit(self, scope: str) -> LimitView:
        """Return the rule that counts for a scope; NOT_FOUND if there is none."""
        scope = self._scope(scope)
        found = self._store.counting(scope)
        if found is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"there is no limit for {scope}",
                where="scope",
                code="limit_not_found",
            )
        return _view(scope, found)

    async def use(self, scope: str, *, rows: bool) -> LimitUses:
        """Return what is spent of it in the whole cluster now."""
        return await self._used(_Question(self._scope(scope), rows))

    async def use_of_all(self) -> LimitUses:
        """Return what is spent of all limits in the whole cluster now, the fullest first."""
        return await self._used(_Question("", every=True))

    async def _used(self, question: _Question) -> LimitUses:
        mine = self._said(question)
        living = self._members.living()
        others = sorted(name for name in living if name != self._name)
        answers = await self._ask_all(others, question)
        said = {self._name: mine, **{n: a for n, a in answers.items() if isinstance(a, _Said)}}
        silent = {name: said for name, said in answers.items() if isinstance(said, str)}
        behind = [name for name in sorted(said) if said[name].basis != mine.basis]
        asked = Asked(said.keys(), living, behind)
        uses = add_up({name: one.reports for name, one in said.items()}, asked)
        if question.every:
            uses.sort(key=lambda use: -_fullness(use))
        cut = max(len(uses) - KEYS_MAX, 0) + max(one.cut for one in said.values())
        reasons = inexact_reasons(uses, silent=silent, cut=cut)
        return LimitUses(
            uses=uses[:KEYS_MAX],
            exact=not reasons,
            inexact_reasons=reasons,
            cut=cut,
            silent=silent,
            rows={name: one.rows for name, one in said.items()} if question.rows else {},
        )

    # ── Asking ───────────────────────────────────────────────────────────────

    async def _ask_all(
        self, names: Sequence[str], question: _Question
    ) -> Mapping[str, "_Said | str"]:
        turns = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)
        payload = msgspec.json.encode(question)

        async def ask(name: str) -> _Said | str:
            async with turns:
                return await self._ask(name, payload)

        answers = await asyncio.gather(*map(ask, names))
        return dict(zip(names, answers, strict=True))

    async def _ask(self, name: str, payload: bytes) -> "_Said | str":
        if self._mesh is None:
            return "this node runs alone"
        try:
            answer = await query_member(self._mesh, name, LIMITS, payload, deadline_s=ASK_S)
            return msgspec.json.decode(answer, type=_Said)
        except SmgError as error:
            return error.message
        except (msgspec.DecodeError, ValueError, RecursionError):
            return "it says nothing that is understood here"

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer that sums up."""
        try:
            question = msgspec.json.decode(payload, type=_Question)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return msgspec.json.encode(_Said([]))
        return msgspec.json.encode(self._said(question))

    def _said(self, question: _Question) -> _Said:
        if question.every:
            return self._said_of_all()
        book = self._book(question.scope)
        keys = list(self._keys(question.scope, book))
        reports = (self._rights.report(key) for key in islice(keys, KEYS_MAX))
        rows = book[-ROWS_MAX:] if question.rows else []
        return _Said(
            reports=[report for report in reports if report is not None],
            basis=self._store.basis().hex(),
            cut=max(0, len(keys) - KEYS_MAX),
            rows=[{"kind": row.kind, **_fields(row)} for row in rows],
        )

    def _said_of_all(self) -> _Said:
        keys = {key for rule in self._store.rules() for key in self._store.keys(rule.scope)}
        keys |= {row.key for row in self._rights.rows()}
        found = [self._rights.report(key) for key in sorted(keys)]
        reports = [report for report in found if report is not None]
        reports.sort(key=lambda report: -_fullness(report))
        return _Said(
            reports=reports[:KEYS_MAX],
            basis=self._store.basis().hex(),
            cut=max(0, len(reports) - KEYS_MAX),
        )

    def _book(self, scope: str) -> Sequence[Row]:
        """Return the rows of a scope, or of every owner that its rule covers."""
        rows = self._rights.rows()
        keys = {key for key in {row.key: None for row in rows} if self._is_of(key, scope)}
        return [row for row in rows if row.key in keys]

    def _keys(self, scope: str, book: Sequence[Row]) -> Iterator[str]:
        """Yield the keys of a scope's limits; of one with a `*` those that were used here lately."""
        rule = self._store.counting(scope)
        if rule is None:
            return
        own = self._store.keys(scope)
        yield from own or sorted({row.key for row in book})

    def _is_of(self, key: str, scope: str) -> bool:
        """Whether a key is of this scope, or of an owner that this scope's rule covers."""
        if key.rpartition("#")[0] == ("" if scope == "global" else scope):
            return True
        return self._store.speaks_of(scope, key)

    # ── Changing ─────────────────────────────────────────────────────────────

    def change(self, scope: str, body: Mapping[str, Any], *, version: int | None) -> LimitChange:
        """Set it on all nodes; see `LimitService`."""
        return self._changed(scope, body, version=version, only_lower=False)

    def lower(self, scope: str, body: Mapping[str, Any], *, version: int | None) -> LimitChange:
        """Set it on all nodes if it allows no more than before; see `LimitService`."""
        return self._changed(scope, body, version=version, only_lower=True)

    def _changed(
        self, scope: str, body: Mapping[str, Any], *, version: int | None, only_lower: bool
    ) -> LimitChange:
        scope = self._scope(scope)
        try:
            rule = self._store.read(scope, body, durable=self._durable)
        except LimitError as error:
            raise invalid(f"{error.field} {error.message}", error.field, "invalid_limit") from error
        if only_lower:
            check_lower(self._store.counting(scope), rule)
        before = self._store.rule(scope)
        try:
            written = self._store.put(rule, version=version)
        except StateError as error:
            raise self._refused(scope, error) from error
        return LimitChange(_own(before), _view(scope, written))

    def unset(self, scope: str, *, version: int | None) -> LimitChange:
        """Remove it on all nodes."""
        scope = self._scope(scope)
        before = self._store.rule(scope)
        strange = scope in {one.key for one in self._store.unreadable()}
        if before is None and not strange:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"{scope} has no limit of its own",
                where="scope",
                code="limit_not_set",
            )
        try:
            self._store.remove(scope, version=version)
        except StateError as error:
            raise self._refused(scope, error) from error
        now = self._store.counting(scope)
        shown = _own(before) or _view(scope, RuleValue(scope, LimitRule(), 0, "", 0))
        return LimitChange(shown, None if now is None else _view(scope, now))

    def _scope(self, text: str) -> str:
        try:
            return self._store.scope(text)
        except LimitError as error:
            raise _invalid_scope(error) from error

    def _refused(self, scope: str, error: StateError) -> SmgError:
        if error.reason == "stale":
            return StaleLimitError(scope, _own(self._store.rule(scope)))
        if error.reason == "too_large":
            return invalid(str(error), "amounts", "limit_too_large")
        return SmgError(ErrorKind.OVERLOADED, str(error), code=f"state_{error.reason}")


def _invalid_scope(error: LimitError) -> SmgError:
    return invalid(f"{error.field}: {error.message}", error.field, "invalid_scope")


def _names(rule: LimitRule) -> Mapping[str, str]:
    names = {
        "tenant": rule.tenant,
        "key": rule.key,
        "model": rule.model,
        "provider": rule.provider,
        "tool": rule.tool,
    }
    return {field: name for field, name in names.items() if name}


def _fullness(one: Report | LimitUse) -> float:
    return one.spent / one.amount if one.amount else 1.0


def _own(value: RuleValue | None) -> LimitView | None:
    return None if value is None else _view(value.scope, value)


def _view(scope: str, value: RuleValue) -> LimitView:
    rule, own = value.rule, value.scope == scope
    return LimitView(
        scope=scope,
        rule=value.scope,
        version=str(value.version) if own else "0",
        owner=value.owner,
        time_ms=value.time_ms,
        amounts=_amounts(rule),
        concurrency=rule.concurrency,
        mode=rule.mode,
        standing=rule.standing,
        reserve=rule.reserve,
        on_exhausted=rule.on_exhausted,
        cached_weight=rule.cached_weight,
        volatile=rule.volatile,
        note=rule.note,
        conflicts=[
            LimitRival(
                version=str(rival.version),
                owner=rival.owner,
                time_ms=rival.time_ms,
                amounts=_amounts(rival.rule),
                concurrency=rival.rule.concurrency,
            )
            for rival in value.conflicts
        ],
        standing_from_ms=value.standing_from_ms,
    )


def _amounts(rule: LimitRule) -> list[AmountView]:
    return [AmountView(one.unit, one.amount, one.window, one.window_ms) for one in rule.amounts]


def _fields(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(msgspec.structs.asdict(row))
    return fields
