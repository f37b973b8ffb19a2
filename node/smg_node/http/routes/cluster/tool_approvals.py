"""Tool approval routes: runs of tools that wait for an operator's word on any node, and an operator's answer to one."""

from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import read_fields, switch_field, text_field
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.tool_approvals import ApprovalService, WaitingRun

ANSWERED: Final = "mcp.approval"
_REASON_MAX: Final = 500
_IN_DOUBT: Final = (ErrorKind.UPSTREAM_FAILED, ErrorKind.UPSTREAM_TIMEOUT)
"""Errors after which the answer may have been taken."""


class ToolApprovalRoutes:
    """Serves what operators are asked about runs of tools."""

    def __init__(self, parts: HttpParts, approvals: ApprovalService, bodies: BodyReader) -> None:
        self._node = parts.identity.node
        self._approvals = approvals
        self._audit = parts.audit
        self._bodies = bodies

    async def waiting(self, request: HttpRequest) -> Reply:
        """List all runs that wait, and the members that do not tell of theirs."""
        found = await self._approvals.runs()
        return json_reply(
            {
                "node": self._node,
                "approvals": found.runs,
                "left_out": found.left_out,
                "members": found.silent,
            }
        )

    async def one(self, request: HttpRequest) -> Reply:
        """Show one, with all of its arguments."""
        run = await self._approvals.run(request.values["id"])
        return json_reply({"node": self._node, "approval": run})

    async def answer(self, request: HttpRequest) -> Reply:
        """Allow it or not, once; its arguments are not in the audit log."""
        body = await read_fields(self._bodies, request, ("approve", "reason"))
        if body.get("approve") is None:
            why = "say whether the run is allowed: true or false"
            raise invalid(why, "approve", "missing_required_parameter")
        approve = switch_field(body, "approve")
        reason = text_field(body, "reason", _REASON_MAX, empty=True) or ""
        run = await self._approvals.run(request.values["id"])
        try:
            await self._approvals.answer(run, approve=approve, reason=reason)
        except SmgError as error:
            if error.kind in _IN_DOUBT:
                self._record(request, run, approve=approve, reason=reason, doubt=error.message)
            raise
        self._record(request, run, approve=approve, reason=reason)
        return json_reply(
            {
                "status": "answered",
                "id": run.id,
                "approve": approve,
                "node": run.node,
                "server": run.server,
                "tool": run.tool,
            }
        )

    def _record(
        self, request: HttpRequest, run: WaitingRun, *, approve: bool, reason: str, doubt: str = ""
    ) -> None:
        said = {
            "id": run.id,
            "approve": approve,
            "reason": reason,
            "tenant": run.tenant,
            "key_id": run.key_id,
            "waited_on": run.node,
            "request_id": run.request_id,
            **({"in_doubt": doubt} if doubt else {}),
        }
        who, what = caller_of(request), f"{run.server}/{run.tool}"
        self._audit.record(who, ANSWERED, what, before=None, after=said)
