"""Tool server routes: show, define and remove servers of tools (MCP), list what they offer, call a tool as an operator."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import expected_version, read_fields, text_field
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.tool_servers import ToolServerService, ToolServerView

SET: Final = "mcp.set"
REMOVED: Final = "mcp.remove"
CALLED: Final = "mcp.call"
_NAME_MAX: Final = 64
_TOOL_MAX: Final = 256
_AUTHORIZATION_MAX: Final = 8_192


class ToolServerRoutes:
    """Serves the definitions of servers of tools."""

    def __init__(self, parts: HttpParts, servers: ToolServerService, bodies: BodyReader) -> None:
        self._node = parts.identity.node
        self._servers = servers
        self._audit = parts.audit
        self._bodies = bodies

    async def servers(self, request: HttpRequest) -> Reply:
        """List the servers that count here, and what of the cluster's cannot be followed."""
        return json_reply(
            {
                "node": self._node,
                "servers": self._servers.servers(),
                "unreadable": self._servers.unreadable(),
            }
        )

    async def server(self, request: HttpRequest) -> Reply:
        """Show one server, never its secrets."""
        return _tagged(self._servers.server(request.values["name"]))

    async def create(self, request: HttpRequest) -> Reply:
        """Define one that is not defined yet, by a body that says its name."""
        body = dict(await self._body(request))
        name = text_field(body, "name", _NAME_MAX)
        if name is None:
            raise invalid("say how the server is called here", "name", "missing_required_parameter")
        del body["name"]
        reply = await self._put(request, name, body, version=0)
        reply.status = 201
        return reply

    async def put(self, request: HttpRequest) -> Reply:
        """Define it on every node, if the version is the one that `If-Match` names."""
        version = expected_version(request)
        body = await self._body(request)
        return await self._put(request, request.values["name"], body, version=version)

    async def remove(self, request: HttpRequest) -> Reply:
        """Take it away on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        done = self._servers.remove(name, version=version)
        self._record(request, REMOVED, name, done.before, done.now)
        return json_reply({"status": "removed", "name": name, "now": done.now})

    async def tools(self, request: HttpRequest) -> Reply:
        """Ask a server for its tools now, and show which of them are not offered."""
        name = request.values["name"]
        listing = await self._servers.tools(name, request.request_id)
        return json_reply(
            {
                "node": self._node,
                "server": name,
                "tools": listing.tools,
                "left_out": listing.left_out,
            }
        )

    async def call(self, request: HttpRequest) -> Reply:
        """Call one tool; what it is told is neither logged nor kept."""
        name = request.values["name"]
        body = await read_fields(self._bodies, request, ("tool", "arguments", "authorization"))
        tool = text_field(body, "tool", _TOOL_MAX)
        if tool is None:
            raise invalid("say which tool is called", "tool", "missing_required_parameter")
        arguments = body.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise invalid("arguments must be an object", "arguments", "invalid_type")
        authorization = text_field(body, "authorization", _AUTHORIZATION_MAX) or ""
        # Seen first: a name that nobody defined is no subject of the audit log.
        self._servers.server(name)
        self._audit.record(caller_of(request), CALLED, f"{name}/{tool}", before=None, after=None)
        told = msgspec.json.encode(arguments or {})
        outcome = await self._servers.call(name, tool, told, authorization, request.request_id)
        answer = {"node": self._node, "server": name, "tool": tool}
        return json_reply({**answer, **msgspec.structs.asdict(outcome)})

    async def _put(
        self, request: HttpRequest, name: str, body: Mapping[str, Any], *, version: int | None
    ) -> Reply:
        """Write a definition; where it is to pin its tools, as they are listed now.

        Meanwhile, and if they cannot be listed, it has none pinned, so that each run of one must be allowed.
        """
        pins = body.get("pin") is True and body.get("pinned") is None
        done = self._servers.put(name, {**body, "pinned": []} if pins else body, version=version)
        assert done.now is not None, "it was written"
        self._record(request, SET, name, done.before, done.now)
        if not pins:
            return _tagged(done.now)
        try:
            listing = await self._servers.tools(name, request.request_id)
        except SmgError as error:
            # It is defined by now, which no client expects of a request that failed.
            why = f"{error.message}; it is defined, and pins no tool yet: each run must be allowed"
            raise SmgError(error.kind, why, code=error.code, status=error.status) from error
        pinned = [tool.pin for tool in listing.tools]
        again = {**done.now.spec, "pinned": pinned}
        whole = self._servers.put(name, again, version=int(done.now.version))
        assert whole.now is not None, "it was written"
        self._record(request, SET, name, done.now, whole.now)
        return _tagged(whole.now)

    async def _body(self, request: HttpRequest) -> Mapping[str, Any]:
        return await self._bodies.large.decoded(await self._bodies.json(request))

    def _record(
        self,
        request: HttpRequest,
        action: str,
        name: str,
        before: ToolServerView | None,
        after: ToolServerView | None,
    ) -> None:
        who = caller_of(request)
        self._audit.record(who, action, name, before=_plain(before), after=_plain(after))


def _plain(view: ToolServerView | None) -> object:
    """Return what a view says of the definition, for the audit log: references and no values."""
    if view is None:
        return None
    return {"spec": view.spec, "secrets": view.secrets, "source": view.source}


def _tagged(view: ToolServerView) -> Reply:
    reply = json_reply(view)
    reply.headers["etag"] = f'"{view.version}"'
    return reply
