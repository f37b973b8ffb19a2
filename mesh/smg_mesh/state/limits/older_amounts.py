"""Older amounts of limits: which of them still matter, and the limit that they and a rule come to.

Somebody may still go by an earlier version of a limit, so each of these is kept as long as no later one covers it:

    what stood                a node that has not heard may spend it: `Limit.older`
    what was minted beside    an owner that has not heard may mint it: `Limit.minted_before`. In windows that begin
                              within `keep_ms` of the change, what stands leaves room for it. Which windows these are
                              follows from the records alone, so owners and nodes agree about each of them
    the least amount          what may have counted in windows that were over: `Limit.lower`

Pure: the moments are given.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from smg_mesh.escrow.limit_model import Limit
from smg_mesh.state.limits.limit_rule import Amount, LimitRule, Older

OLDER_MAX: Final = 8
"""Of one unit and window, for what stood; more are made one that is kept for the reasons of both."""
OTHERS_MAX: Final = 3
"""The same for each of the other reasons: all of them together fit into a record of sixteen amounts."""
_FOREVER_MS: Final = 1 << 62

_Ladder: TypeAlias = list[Older]
"""Newest first; each is there for something that no newer one covers."""


def fewer(
    older: Iterable[Older], *, since_ms: int, rule: LimitRule | None = None
) -> tuple[Older, ...]:
    """Return what of these still matters beside `rule`: none of windows that ended before `since_ms`, none that is covered.

    At most `OLDER_MAX` and twice `OTHERS_MAX` of each unit and window are left: the two newest become one that covers both.
    """
    now = [] if rule is None else rule.as_older(_FOREVER_MS)
    groups: dict[tuple[str, int], list[Older]] = {}
    for one in (*now, *sorted(older, key=_order, reverse=True)):
        if one.until_ms + 2 * one.window_ms >= since_ms:
            groups.setdefault((one.unit, one.window_ms), []).append(one)
    found: dict[Older, None] = {}
    for _, group in sorted(groups.items()):
        for ladder in (
            _merged(standing_most(group), _stood_most),
            _merged(minted_most(group), _minted_most, most=OTHERS_MAX),
            _merged(_allowed_least(group), _allowed_less, most=OTHERS_MAX),
        ):
            found.update(dict.fromkeys(one for one in ladder if one.until_ms < _FOREVER_MS))
    return tuple(found)


def standing_most(newest_first: Iterable[Older]) -> _Ladder:
    """Return those of which more stood than of any newer one."""
    ladder: _Ladder = []
    for one in newest_first:
        if not ladder or one.weight > ladder[-1].weight:
            ladder.append(one)
    return ladder


def minted_most(newest_first: Iterable[Older]) -> _Ladder:
    """Return those beside which, whatever is allowed now, less may stand than beside any newer one."""
    ladder: _Ladder = []
    for one in newest_first:
        if not any(new.amount >= one.amount and new.weight <= one.weight for new in ladder):
            ladder.append(one)
    return ladder


def limit_of(
    key: str,
    rule: LimitRule,
    amount: Amount,
    older: Sequence[Older],
    *,
    version: int,
    now_ms: int,
    keep_ms: int,
) -> Limit:
    """Return the limit of a rule with one of its amounts; `older` is what was allowed of the same unit and window.

    `keep_ms`: how long a node may be away and still come back with what it knew.
    """
    now = Older(amount.unit, amount.window_ms, amount.amount, rule.standing, _FOREVER_MS)
    known = sorted(older, key=_order, reverse=True)
    recent = [one for one in known if one.until_ms >= now_ms - keep_ms]
    stood = _merged(standing_most(recent), _stood_most)
    return Limit(
        key=key,
        unit=amount.unit,
        amount=amount.amount,
        window_ms=amount.window_ms,
        mode=rule.mode,
        standing=rule.standing,
        version=version,
        older=tuple((one.amount, one.standing) for one in stood if one.weight > now.weight),
        volatile=rule.volatile,
        minted_before=tuple(
            (one.amount, one.standing, one.until_ms + keep_ms)
            for one in minted_most([now, *known])
            if one.weight < now.weight and max(0, now.amount - one.amount) < now.weight
        ),
        lower=_lower(now, recent),
    )


def _order(one: Older) -> tuple[int, float, int]:
    return one.until_ms, one.weight, one.amount


def _allowed_least(newest_first: Iterable[Older]) -> _Ladder:
    ladder: _Ladder = []
    for one in newest_first:
        if not ladder or one.amount < ladder[-1].amount:
            ladder.append(one)
    return ladder


def _lower(now: Older, older: Sequence[Older]) -> tuple[tuple[int, float], ...]:
    """Return the one with the least amount, and the one of which the least stands, where that is not `now`."""
    least = (
        min((now, *older), key=lambda one: one.amount),
        min((now, *older), key=lambda one: one.weight),
    )
    return tuple(dict.fromkeys((one.amount, one.standing) for one in least if one is not now))


def _merged(
    ladder: _Ladder, both: Callable[[Older, Older], Older], *, most: int = OLDER_MAX
) -> _Ladder:
    now = [one for one in ladder if one.until_ms == _FOREVER_MS]
    rest = ladder[len(now) :]
    while len(rest) > most:
        rest[:2] = [msgspec.structs.replace(both(*rest[:2]), until_ms=rest[0].until_ms)]
    return now + rest


def _stood_most(newer: Older, older: Older) -> Older:
    return max(newer, older, key=lambda one: one.weight)


def _minted_most(newer: Older, older: Older) -> Older:
    """Return the larger amount, with as little of it standing as of either: no more may stand beside it."""
    amount = max(newer.amount, older.amount)
    standing = min(newer.weight, older.weight) / amount if amount else 0.0
    return msgspec.structs.replace(newer, amount=amount, standing=standing)


def _allowed_less(newer: Older, older: Older) -> Older:
    return min(newer, older, key=lambda one: one.amount)
