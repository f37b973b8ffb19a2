"""Audit log of operators' changes: written on the node that made them, replicated, readable on any.

Nothing secret gets in: a key is only ever `(set)`. A row that cannot be kept is logged instead; no change
fails for it.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from smg_mesh.shared import StateError
from smg_node.config.schema.problems import printable
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.shared_state import AuditQuery, AuditView, Caller

SECRET: Final = "(set)"
SECRET_NAMES: Final = frozenset({"api_key", "key", "secret", "sealed_key", "password", "token"})
_SUBJECT_CHARACTERS_MAX: Final = 512
_DEPTH_MAX: Final = 16

_log = logging.getLogger("smg_node.cluster")


class AuditRow(Protocol):
    """One replicated row; see `smg_mesh.shared`."""

    @property
    def id(self) -> str:
        """Its id; ids sort by time."""
        ...

    @property
    def time_ms(self) -> int:
        """Time of the change, by the clock of its node."""
        ...

    @property
    def node(self) -> str:
        """Node on which the change was made."""
        ...

    @property
    def who(self) -> str:
        """Identity behind the request."""
        ...

    @property
    def address(self) -> str:
        """Address the request came from."""
        ...

    @property
    def action(self) -> str:
        """Kind of change."""
        ...

    @property
    def subject(self) -> str:
        """What was changed."""
        ...

    @property
    def before(self) -> Any:
        """Value before."""
        ...

    @property
    def after(self) -> Any:
        """Value after."""
        ...

    @property
    def request_id(self) -> str:
        """Id of the request."""
        ...


class AuditStore(Protocol):
    """The replicated audit log; `smg_mesh.shared` has it."""

    def append(
        self,
        *,
        who: str,
        address: str,
        action: str,
        subject: str,
        before: Any,
        after: Any,
        request_id: str,
    ) -> AuditRow:
        """Write a row."""
        ...

    def rows(
        self,
        *,
        before: str,
        after: str,
        action: str,
        subject: str,
        who: str,
        node: str,
        limit: int,
    ) -> Sequence[AuditRow]:
        """Return the rows that match, newest first."""
        ...

    def row(self, row_id: str, /) -> AuditRow | None:
        """Return one row."""
        ...


class AuditLog:
    """The audit log of the cluster."""

    def __init__(self, store: AuditStore) -> None:
        self._store = store

    def record(
        self, caller: Caller, action: str, subject: str, *, before: Any = None, after: Any = None
    ) -> None:
        """Write a row on every node, and to this node's log."""
        subject = subject[:_SUBJECT_CHARACTERS_MAX]
        said = {"action": action, "subject": printable(subject), "who": caller.who}
        _log.info(
            "%s %s, asked by %s",
            action,
            said["subject"],
            caller.who,
            extra={"fields": {**said, "address": caller.address}},
        )
        try:
            self._store.append(
                who=caller.who,
                address=caller.address,
                action=action,
                subject=subject,
                before=without_secrets(msgspec.to_builtins(before)),
                after=without_secrets(msgspec.to_builtins(after)),
                request_id=caller.request_id,
            )
        except (StateError, ValueError) as error:
            _log.warning("no row of the audit log could be kept of this: %s", error)

    def rows(self, query: AuditQuery) -> Sequence[AuditView]:
        """Return the rows, newest first."""
        found = self._store.rows(
            before=query.before,
            after=query.after,
            action=query.action,
            subject=query.subject,
            who=query.who,
            node=query.node,
            limit=query.limit,
        )
        return [_view(row) for row in found]

    def row(self, row_id: str) -> AuditView:
        """Return one; NOT_FOUND `change_not_found` otherwise."""
        try:
            found = self._store.row(row_id)
        except LookupError:
            found = None
        if found is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"no change {row_id[:64]!r} is remembered",
                where="change",
                code="change_not_found",
            )
        return _view(found)


def without_secrets(value: Any, *, depth: int = 0) -> Any:
    """Return `value` with what stands under the name of a secret replaced, "(set)" or empty."""
    if depth > _DEPTH_MAX:
        return None
    if isinstance(value, Mapping):
        return {
            str(name): (SECRET if inner else "")
            if name in SECRET_NAMES
            else without_secrets(inner, depth=depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(inner, depth=depth + 1) for inner in value]
    return value


def _view(row: AuditRow) -> AuditView:
    return AuditView(
        id=row.id,
        time_ms=row.time_ms,
        node=row.node,
        who=row.who,
        address=row.address,
        action=row.action,
        subject=row.subject,
        before=row.before,
        after=row.after,
        request_id=row.request_id,
    )
