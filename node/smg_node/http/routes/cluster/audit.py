"""Audit routes: list recorded changes, by caller, action and time."""

from typing import Final

from smg_node.core.errors import invalid
from smg_node.http.message.field_reader import query_number
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.ports.shared_state import AuditQuery, AuditService
from smg_node.http.query_bounds import AUDIT_ROWS_MAX, AUDIT_WORD_CHARACTERS_MAX

_ROWS: Final = 100
_WORDS: Final = ("before", "after", "action", "subject", "who", "node")


class AuditRoutes:
    """Serves the audit log."""

    def __init__(self, audit: AuditService) -> None:
        self._audit = audit

    async def audit(self, request: HttpRequest) -> Reply:
        """List the changes of any kind on any node, newest first."""
        words = {name: request.query.get(name, "") for name in _WORDS}
        for name, word in words.items():
            if len(word) > AUDIT_WORD_CHARACTERS_MAX:
                raise invalid(f"{name} is longer than {AUDIT_WORD_CHARACTERS_MAX} characters", name)
        limit = query_number(request, "limit", _ROWS, low=1, high=AUDIT_ROWS_MAX)
        return json_reply({"rows": self._audit.rows(AuditQuery(**words, limit=limit))})
