"""Limits view of the whole cluster: rules by scope, and what they come
to for a tenant, key or model.

    limit of a key = the rule that names its scope most exactly, alone, under the key of the instance

A rule that says `*` is a limit for each by itself; one that names the tenant, key or model counts instead of it
and goes on with what was spent. What nodes that have not heard may still go by comes along as `older`: from the
records, from what collides with them, and from the other rules that speak of the same scope. A rule that was
taken away is kept as a record without amounts until no node can remember it any more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from smg_mesh.config import StateOptions
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.crdt.namespace import Heard, Namespace, StateError
from smg_mesh.escrow.limit_model import Limit
from smg_mesh.state.limits.limit_parser import FIELDS as RULE_FIELDS
from smg_mesh.state.limits.limit_parser import LimitError, read_rule
from smg_mesh.state.limits.limit_records import Kept, LimitRecords, read_held, stored
from smg_mesh.state.limits.limit_rule import (
    Amount,
    LimitRule,
    Older,
    limit_key,
    parse_key,
    read_record,
    write_record,
)
from smg_mesh.state.limits.limit_scope import (
    GLOBAL,
    PROVIDER,
    Scope,
    ScopeError,
    is_instance,
    read_scope,
)
from smg_mesh.state.limits.matched_limit import Matched, matches, matches_of_run
from smg_mesh.state.limits.older_amounts import fewer, limit_of
from smg_mesh.state.unknown_versions import Unreadable, unreadable

__all__ = ["LimitError", "LimitRule", "LimitsView", "Matched", "RuleValue"]

_FRESH_MS: Final = 1_000
"""What was put together is good for so long; what collides with a rule may come without a word."""
_NOTHING: Final = bytes(8)
_CACHED_MAX: Final = 65_536
_SWEPT_MAX: Final = 16
"""Records of rules that were taken away are dropped so many at a time, with a write."""


class RuleValue(msgspec.Struct, frozen=True):
    """A rule as the cluster holds it. `version` is what a compare-and-set names, `time_ms` the writer's clock."""

    scope: str
    rule: LimitRule
    version: int
    owner: str
    time_ms: int
    conflicts: "tuple[RuleValue, ...]" = ()
    """Written without knowing of this one, newest first; until somebody writes again."""
    standing_from_ms: int = 0
    """From when all of what stands by it does so, in new windows; 0: it does."""


class _Made(NamedTuple):
    """A limit that was put together, until when it is taken for true."""

    limit: Limit
    until_ms: int


class LimitsView:
    """The namespace `limits` as this node reads and writes it. StateError as in `Namespace`.

    `keep_ms`: how long a node may be away and still come back with what it knew.
    """

    def __init__(
        self,
        namespace: Namespace,
        *,
        wall_ms: Callable[[], int],
        keep_ms: int = StateOptions().removed_keep_ms,
    ) -> None:
        self.version = 0
        """Another number after every change."""
        self._namespace: Final = namespace
        self._wall_ms: Final = wall_ms
        self._keep_ms: Final = keep_ms
        self._records: Final = LimitRecords(namespace)
        self._made: dict[str, _Made] = {}
        namespace.watch(self._heard)

    # ── What they come to ────────────────────────────────────────────────────

    def get(self, key: str) -> Limit | None:
        """Return the limit of that key, of one of many if a rule says `*`; None if there is none."""
        now_ms = self._wall_ms()
        made = self._made.get(key)
        if made is not None and made.until_ms - _FRESH_MS <= now_ms < made.until_ms:
            return made.limit
        limit = self._limit(key, now_ms)
        if limit is None:
            self._made.pop(key, None)
            return None
        if made is not None and made.limit == limit:
            limit = made.limit
        if len(self._made) >= _CACHED_MAX:
            self._made.clear()
        self._made[key] = _Made(limit, now_ms + _FRESH_MS)
        return limit

    def basis(self) -> bytes:
        """Return 8 bytes that are the same wherever the same is defined; zeros where nothing is in force."""
        return self._namespace.digest() if len(self._records) else _NOTHING

    def matching(self, tenant: str, key_id: str, model: str) -> Sequence[Matched]:
        """Return every limit that such a request meets, the cheap ones to check first.

        Names are those of the request, and empty where it has none: a rule that names a tenant is
        not for requests without one, whatever it names.
        """
        return matches(self._records, Scope(tenant, key_id, model))

    def of_provider(self, provider: str) -> Sequence[Matched]:
        """Return every limit that a call of that provider meets, whoever it is made for."""
        return matches(self._records, Scope(provider=provider), at_least=PROVIDER)

    def of_tool(self, tenant: str, key_id: str, model: str, tool: str) -> Sequence[Matched]:
        """Return every limit that a run of that tool, `SERVER/TOOL`, meets: its own, and those of all of its server's.

        Names are those of the request whose model calls it, and empty where it has none.
        """
        return matches_of_run(self._records, Scope(tenant, key_id, model, tool=tool))

    # ── The rules themselves ─────────────────────────────────────────────────

    fields: Final = RULE_FIELDS
    """What a rule says beside its scope, as people write it."""

    def scope(self, text: str) -> str:
        """Return the one text of a scope, `global` for all together; LimitError."""
        try:
            return stored(read_scope(text).text)
        except ScopeError as error:
            raise LimitError("scope", str(error)) from error

    def names(self, text: str) -> Mapping[str, str]:
        """Return whom a scope is for, by `tenant`, `key`, `model`, `provider` and `tool`, as they were given and only what
        is named; LimitError.
        """
        try:
            scope = read_scope(text)
        except ScopeError as error:
            raise LimitError("scope", str(error)) from error
        return {field: getattr(scope, field) for field in scope.named}

    def read(self, scope: str, body: Mapping[str, Any], *, durable: bool) -> LimitRule:
        """Return the rule that a body says for that scope; see `limit_parser.read_rule`."""
        try:
            return read_rule(read_scope(scope), body, durable=durable)
        except ScopeError as error:
            raise LimitError("scope", str(error)) from error

    def rule(self, scope: str) -> RuleValue | None:
        """Return the rule of exactly this scope, None if there is none in force."""
        kept = self._records.get(stored(scope))
        return self._shown(kept) if kept is not None and kept.record.in_force else None

    def counting(self, scope: str) -> RuleValue | None:
        """Return the rule that counts for this scope: its own, else the one that says `*` of it."""
        own = self._records.get(stored(scope))
        if own is not None and own.record.in_force:
            return self._shown(own)
        bare = "" if scope == GLOBAL else scope
        kept = self._records.most_exact(bare) if is_instance(bare) else None
        return None if kept is None else self._shown(kept)

    def keys(self, scope: str) -> Sequence[str]:
        """Return the keys of all that is limited for this scope; none for one that says `*`."""
        counting = self.counting(scope)
        bare = "" if scope == GLOBAL else scope
        if counting is None or not is_instance(bare):
            return ()
        return [limit_key(bare, one.unit, one.window_ms) for one in counting.rule.limits]

    def speaks_of(self, scope: str, key: str) -> bool:
        """Whether what is limited under `key` is so by the rule of exactly this scope."""
        parsed = parse_key(key)
        if parsed is None or not is_instance(parsed[0]):
            return False
        kept = self._records.most_exact(parsed[0])
        return kept is not None and kept.held.key == stored(scope)

    def rules(self) -> Sequence[RuleValue]:
        """Return all in force, sorted by scope."""
        in_force = (kept for kept in self._records.all() if kept.record.in_force)
        return sorted((self._shown(kept) for kept in in_force), key=lambda shown: shown.scope)

    def put(self, rule: LimitRule, *, version: int | None) -> RuleValue:
        """Write a rule. `version` is the one that the writer knows, 0 for none, None whatever it is.

        StateError "stale" for another version, "full", "too_large".
        """
        assert rule.limits, "a rule that limits nothing"
        self._sweep()
        scope = stored(rule.scope)
        older = self._older_than(scope, rule)
        held = self._namespace.put(
            scope, write_record(rule, older), seen=self._seen(scope, version)
        )
        self._records.changed([scope])
        kept = read_held(held)
        assert kept is not None
        return self._shown(kept)

    def remove(self, scope: str, *, version: int | None) -> None:
        """Take a rule away, everywhere. `version` as for `put`."""
        scope = stored(scope)
        kept = self._records.get(scope)
        seen = self._seen(scope, version)
        if kept is None:
            self._namespace.remove(scope, seen=seen)
        else:
            # One that was taken away already still says what it allowed.
            self._withdraw(kept, seen)
        self._records.changed([scope])
        self._sweep()

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the scopes that changed. It may read and must not write."""
        self._namespace.watch(heard)

    def unreadable(self) -> Sequence[Unreadable]:
        """Return what this version cannot read, sorted by scope; it is kept, passed on and limits nothing."""
        found = []
        for held in self._namespace.items():
            try:
                read_record(held.value or b"")
            except ValueError as error:
                found.append(unreadable(held, "value", str(error)))
        return found

    def __len__(self) -> int:
        return len(self._records)

    # ── Reading ──────────────────────────────────────────────────────────────

    def _heard(self, scopes: Sequence[str]) -> None:
        self.version += 1
        self._made.clear()
        self._records.changed(scopes)

    def _limit(self, key: str, now_ms: int) -> Limit | None:
        parsed = parse_key(key)
        if parsed is None or not is_instance(parsed[0]):
            return None
        scope, unit, window_ms = parsed
        speaking = list(self._records.speaking_of(scope))
        counts = next((kept for kept in speaking if kept.record.in_force), None)
        amount = None if counts is None else counts.record.amount_of(unit, window_ms)
        if counts is None or amount is None:
            return None
        older = [one for kept in speaking for one in self._said_of(kept, other_than=counts)]
        limit = self._limit_of(counts, amount, older, now_ms=now_ms, key=key)
        version = max(kept.held.version for kept in speaking)
        return msgspec.structs.replace(limit, version=version)

    def _limit_of(
        self, kept: Kept, amount: Amount, older: Sequence[Older], *, now_ms: int, key: str = ""
    ) -> Limit:
        place = (amount.unit, amount.window_ms)
        return limit_of(
            key,
            kept.record,
            amount,
            [one for one in older if (one.unit, one.window_ms) == place],
            version=kept.held.version,
            now_ms=now_ms,
            keep_ms=self._keep_ms,
        )

    def _said_of(self, kept: Kept, *, other_than: Kept) -> Iterator[Older]:
        """Yield what a node may go by that knows this record, or only what was there before it."""
        for each in (kept, *self._records.rivals(kept.held.key)):
            yield from each.record.older
            if each is not other_than:
                until_ms = hlc_ms(max(each.held.version, other_than.held.version))
                yield from each.record.as_older(until_ms)

    # ── Writing ──────────────────────────────────────────────────────────────

    def _older_than(self, scope: str, rule: LimitRule | None) -> Sequence[Older]:
        """Return what nodes may go by that have not heard of a rule that is written now."""
        now_ms = self._wall_ms()
        kept = self._records.get(scope)
        older: list[Older] = []
        for each in (kept, *self._records.rivals(scope)):
            if each is not None:
                older += (*each.record.older, *each.record.as_older(now_ms))
        return fewer(older, since_ms=now_ms - self._keep_ms, rule=rule)

    def _seen(self, scope: str, version: int | None) -> int | None:
        """Return the version that is really there if what was seen is that there is none."""
        kept = self._records.get(scope)
        gone = kept is not None and not kept.record.in_force
        return kept.held.version if kept is not None and gone and version == 0 else version

    def _withdraw(self, kept: Kept, seen: int | None) -> None:
        rule = kept.record.rule()
        bare = msgspec.structs.replace(rule, amounts=(), concurrency=None, note="")
        older = self._older_than(kept.held.key, None)
        try:
            self._namespace.put(kept.held.key, write_record(bare, older), seen=seen)
        except StateError as error:
            if error.reason != "full":
                raise
            # There must always be room to take something away, if with less memory of it.
            self._namespace.remove(kept.held.key, seen=seen)

    def _sweep(self) -> None:
        """Drop records of rules that were taken away and that no node remembers."""
        since_ms = self._wall_ms() - self._keep_ms
        over = [
            kept
            for kept in self._records.all()
            if not kept.record.in_force and not fewer(kept.record.older, since_ms=since_ms)
        ]
        for kept in over[:_SWEPT_MAX]:
            self._namespace.remove(kept.held.key, seen=kept.held.version)

    def _shown(self, kept: Kept) -> RuleValue:
        rivals = self._records.rivals(kept.held.key)
        conflicts = tuple(_value(rival) for rival in rivals)
        return _value(kept, conflicts, standing_from_ms=self._standing_from_ms(kept))

    def _standing_from_ms(self, kept: Kept) -> int:
        now_ms = self._wall_ms()
        older = tuple(self._said_of(kept, other_than=kept))
        limits = (self._limit_of(kept, one, older, now_ms=now_ms) for one in kept.record.amounts)
        from_ms = (
            until_ms
            for one in limits
            for amount, standing, until_ms in one.minted_before
            if max(amount, one.amount) - amount * (1 - standing) < one.amount * one.standing
        )
        return max((moment_ms for moment_ms in from_ms if moment_ms > now_ms), default=0)


def _value(
    kept: Kept, conflicts: tuple[RuleValue, ...] = (), *, standing_from_ms: int = 0
) -> RuleValue:
    return RuleValue(
        scope=stored(kept.record.scope),
        rule=kept.record.rule(),
        version=kept.held.version,
        owner=kept.held.owner,
        time_ms=hlc_ms(kept.held.version),
        conflicts=conflicts,
        standing_from_ms=standing_from_ms,
    )
