"""Lower limits: whether a rule allows no more than the one in force, for those who may only lower what they have.

Every amount that is in force must stay, at most as large, in the same window; how it is counted must stay as it is. An
amount of another unit or window may come, since it only narrows. Where nothing is in force, nothing can be lowered: a
rule of one's own would go before one that an administrator sets for all later. Pure.
"""

from typing import Final

from smg_mesh.shared import LimitRule, RuleValue
from smg_node.core.errors import ErrorKind, SmgError

_SAME: Final = ("mode", "standing", "reserve", "on_exhausted", "cached_weight", "volatile")
"""Fields that say how amounts are counted and held."""


def check_lower(before: RuleValue | None, rule: LimitRule) -> None:
    """Return if `rule` allows no more than what is in force; FORBIDDEN `limit_not_lower` names the field."""
    if before is None:
        raise _refused("no limit is in force for this scope, so none can be lowered", "scope")
    for one in before.rule.limits:
        given = rule.amount_of(one.unit, one.window_ms)
        said = f"{one.unit} per {one.window}" if one.window_ms else one.unit
        where = "amounts" if one.window_ms else "concurrency"
        if given is None:
            raise _refused(f"{said} must stay limited, to at most {one.amount}", where)
        if given.amount > one.amount:
            raise _refused(f"{said} may be at most {one.amount}, as it is now", where)
    for name in _SAME:
        if getattr(rule, name) != getattr(before.rule, name):
            raise _refused(f"{name} must stay {getattr(before.rule, name)}", name)


def _refused(message: str, where: str) -> SmgError:
    return SmgError(
        ErrorKind.FORBIDDEN,
        f"the credential sent may only lower limits of its tenant: {message}",
        where=where,
        code="limit_not_lower",
    )
