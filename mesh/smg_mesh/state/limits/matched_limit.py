"""Matched limits: which rules a request, a call of a provider or a run of a tool meets, and under which keys."""

from collections.abc import Sequence

import msgspec

from smg_mesh.escrow.limit_model import Unit
from smg_mesh.state.limits.limit_records import Kept, LimitRecords, stored
from smg_mesh.state.limits.limit_rule import Amount, OnExhausted, Reserve, limit_key, place
from smg_mesh.state.limits.limit_scope import ALL_TOOLS, EACH, TOOL, Scope

_NAMED_AS_EACH = "%2A"
"""In place of a tool whose own name is `*`."""


class Matched(msgspec.Struct, frozen=True):
    """One limit that a request meets. `scope` is that of the rule, `key` that of the instance of it."""

    key: str
    scope: str
    unit: Unit
    amount: int
    window_ms: int
    """0 for what is open at a time."""
    reserve: Reserve
    on_exhausted: OnExhausted
    cached_weight: float


def matches(records: LimitRecords, names: Scope, at_least: str = "") -> Sequence[Matched]:
    """Return every limit that these names meet, by rules that name `at_least`, the cheap ones to check first."""
    return _sorted(_found(records, names, at_least))


def matches_of_run(records: LimitRecords, names: Scope) -> Sequence[Matched]:
    """Return every limit that a run of the tool `names.tool` meets: as that tool, and as one of its server's."""
    server, _, tool = names.tool.partition("/")
    if tool == EACH:
        names = msgspec.structs.replace(names, tool=f"{server}/{_NAMED_AS_EACH}")
    of_server = msgspec.structs.replace(names, tool=server + ALL_TOOLS)
    return _sorted([*_found(records, names, TOOL), *_found(records, of_server, TOOL)])


def _found(records: LimitRecords, names: Scope, at_least: str) -> list[Matched]:
    found: list[Matched] = []
    for form in records.forms():
        if at_least and at_least not in form:
            continue
        named = {field: getattr(names, field) for field in form}
        if any(value in ("", EACH) for value in named.values()):
            continue
        instance = Scope(**named).text
        kept = records.most_exact(instance)
        if kept is not None:
            found += (_matched(kept, instance, amount) for amount in kept.record.limits)
    return found


def _sorted(found: list[Matched]) -> Sequence[Matched]:
    return tuple(sorted(found, key=lambda one: (place(one.unit, one.window_ms), one.key)))


def _matched(kept: Kept, instance: str, amount: Amount) -> Matched:
    rule = kept.record
    return Matched(
        key=limit_key(instance, amount.unit, amount.window_ms),
        scope=stored(rule.scope),
        unit=amount.unit,
        amount=amount.amount,
        window_ms=amount.window_ms,
        reserve=rule.reserve,
        on_exhausted=rule.on_exhausted,
        cached_weight=rule.cached_weight,
    )
