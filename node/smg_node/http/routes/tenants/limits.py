"""Limit routes: show limits and their use, set and remove them."""

from collections.abc import Callable
from typing import Final

import msgspec

from smg_node.access.limit_rights import LimitRights
from smg_node.http.http_options import HttpOptions
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import expected_version, query_switch, read_fields
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.keys import KeyService
from smg_node.http.ports.limits import LimitService, LimitUse, LimitUses, LimitView
from smg_node.http.ports.shared_state import AuditService

SET: Final = "limit.set"
UNSET: Final = "limit.unset"


class LimitRoutes:
    """Serves the limits."""

    def __init__(
        self,
        node: str,
        limits: LimitService,
        keys: KeyService,
        audit: AuditService,
        bodies: BodyReader,
        options: Callable[[], HttpOptions],
    ) -> None:
        self._node = node
        self._limits = limits
        self._audit = audit
        self._bodies = bodies
        self._keys = keys
        self._options = options

    async def limits(self, request: HttpRequest) -> Reply:
        """List the limits as they are defined; with `?use=true` also their use in the whole
        cluster.
        """
        rights = self._rights(request)
        every = rights.sees_all
        shown: dict[str, object] = {
            "node": self._node,
            "limits": self._limits.limits() if every else self._limits.limits_of(rights.owns),
            "unreadable": self._limits.unreadable() if every else (),
        }
        if query_switch(request, "use"):
            said = await self._limits.use_of_all()
            shown |= {
                "uses": said.uses if every else self._own_uses(said, rights),
                "exact": said.exact,
                "inexact_reasons": said.inexact_reasons,
                "cut": said.cut,
                "silent": said.silent,
            }
        return json_reply(shown)

    async def limit(self, request: HttpRequest) -> Reply:
        """Show one limit and its use in the whole cluster.

        With `?rows=true` also the books of the nodes; with `?brief=true` no node is asked.
        """
        scope = request.values["scope"]
        self._rights(request).check_seen(self._limits.names(scope), scope)
        rows, brief = query_switch(request, "rows"), query_switch(request, "brief")
        view = self._limits.limit(scope)
        if brief:
            said = LimitUses(uses=(), exact=False)
        else:
            said = await self._limits.use(scope, rows=rows)
        shown = {
            "node": self._node,
            "limit": view,
            "uses": said.uses,
            "exact": said.exact,
            "inexact_reasons": said.inexact_reasons,
            "cut": said.cut,
            "silent": said.silent,
            **({"rows": said.rows} if rows else {}),
        }
        return _tagged(json_reply(shown), view)

    async def change(self, request: HttpRequest) -> Reply:
        """Set it on every node, if the version is the one that `If-Match` names."""
        version, scope = expected_version(request), request.values["scope"]
        rights = self._rights(request)
        rights.check_set(self._limits.names(scope))
        body = await read_fields(self._bodies, request, self._limits.fields)
        change = self._limits.change if rights.sets_all else self._limits.lower
        done = change(scope, body, version=version)
        assert done.now is not None
        self._audit.record(
            caller_of(request),
            SET,
            done.now.scope,
            before=_plain(done.before),
            after=_plain(done.now),
        )
        return _tagged(json_reply(done.now), done.now)

    async def unset(self, request: HttpRequest) -> Reply:
        """Remove it on every node, if the version is the one that `If-Match` names."""
        version = expected_version(request)
        done = self._limits.unset(request.values["scope"], version=version)
        assert done.before is not None
        self._audit.record(caller_of(request), UNSET, done.before.scope, before=_plain(done.before))
        return json_reply({"status": "unset", "limit": done.before, "now": done.now})

    def _rights(self, request: HttpRequest) -> LimitRights:
        held = self._options().roles.of(request.identity.role)
        return LimitRights(request.identity, held, self._tenant_of)

    def _tenant_of(self, key_id: str) -> str | None:
        found = self._keys.key(key_id)
        return None if found is None else found.tenant

    def _own_uses(self, said: LimitUses, rights: LimitRights) -> list[LimitUse]:
        """Return the uses of limits that are the caller's; a name that was cut in a key is nobody's."""
        return [use for use in said.uses if rights.owns(self._limits.names(_scope_of(use.key)))]


def _scope_of(key: str) -> str:
    """Return the scope in the key of a limit, `SCOPE#UNIT/WINDOW_MS`."""
    return key.rpartition("#")[0] or "global"


def _plain(view: LimitView | None) -> object:
    return None if view is None else msgspec.to_builtins(view)


def _tagged(reply: Reply, view: LimitView) -> Reply:
    reply.headers["etag"] = f'"{view.version}"'
    return reply
