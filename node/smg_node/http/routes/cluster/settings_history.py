"""Settings history: changes of settings from the audit log, and the values that undo them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.shared_state import AuditView
from smg_node.http.query_bounds import SETTINGS_CHANGES_MAX

HISTORY_MAX: Final = 100
CHANGES_MAX: Final = SETTINGS_CHANGES_MAX
_ACTION: Final = "setting."
_VALUE: Final = "value"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one setting. `before` and `after` are its values, None where it was not set.

    `whole` is false if they were too long to be kept.
    """

    id: str
    time_ms: int
    node: str
    who: str
    address: str
    action: str
    key: str
    before: Any
    after: Any
    whole: bool


def change_of(row: AuditView) -> Change:
    """Return the change in a row of the audit log; NOT_FOUND if it is about something else."""
    if not row.action.startswith(_ACTION):
        raise SmgError(
            ErrorKind.NOT_FOUND,
            f"{row.id} is no change of a setting but {row.action}",
            where="change",
            code="change_not_found",
        )
    return Change(
        id=row.id,
        time_ms=row.time_ms,
        node=row.node,
        who=row.who,
        address=row.address,
        action=row.action,
        key=row.subject,
        before=_value(row.before),
        after=_value(row.after),
        whole=_is_whole(row.before) and _is_whole(row.after),
    )


def undone(change: Change, present: Mapping[str, Any], *, force: bool) -> Mapping[str, Any]:
    """Return the values that undo one change; CONFLICT if the setting was changed again since,
    unless `force`.
    """
    _check_whole(change)
    if not force and present.get(change.key) != change.after:
        raise SmgError(
            ErrorKind.CONFLICT,
            f"{change.key} was changed again since {change.id}; undo that first, or use force",
            where="change",
            code="changed_since",
        )
    return {change.key: change.before}


def since(later: Sequence[Change]) -> Mapping[str, Any]:
    """Return the values that undo all of these changes, given newest first."""
    if len(later) >= CHANGES_MAX:
        raise SmgError(
            ErrorKind.CONFLICT,
            f"there were {CHANGES_MAX} changes since, more than can be undone at once",
            where="to",
            code="too_far_back",
        )
    values: dict[str, Any] = {}
    for change in later:
        _check_whole(change)
        # Older ones come later, and the oldest one knows what there was before all of them.
        values[change.key] = change.before
    return values


def _check_whole(change: Change) -> None:
    if not change.whole:
        raise SmgError(
            ErrorKind.CONFLICT,
            f"the value that {change.key} had before {change.id} was too long to be kept",
            where="change",
            code="change_not_kept",
        )


def _value(said: Any) -> Any:
    return said.get(_VALUE) if isinstance(said, Mapping) else None


def _is_whole(said: Any) -> bool:
    return said is None or (isinstance(said, Mapping) and set(said) == {_VALUE})
