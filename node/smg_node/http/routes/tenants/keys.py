"""Key routes: create, list and revoke API keys, for administrators."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import number_field, query_switch, read_fields
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.keys import EXPIRES_IN_MAX_S, KeyRequest, KeyService, KeyView
from smg_node.http.ports.shared_state import AuditService
from smg_node.http.routes.tenants.key_import import KeyImportRoutes
from smg_node.http.routes.tenants.key_owner import read_owner

_FIELDS: Final = ("tenant", "role", "name", "expires_in_s")


class KeyRoutes:
    """Serves the API keys."""

    def __init__(self, keys: KeyService, audit: AuditService, bodies: BodyReader) -> None:
        self._keys = keys
        self._audit = audit
        self._bodies = bodies
        self.imports: Final = KeyImportRoutes(keys, audit, bodies)

    async def keys(self, request: HttpRequest) -> Reply:
        """List the keys, with `?all=true` the revoked ones too; never a key itself."""
        rows = self._keys.keys(revoked=query_switch(request, "all"))
        return json_reply({"closed": self._keys.closed, "keys": rows})

    async def create(self, request: HttpRequest) -> Reply:
        """Create a key; this answer is the only place where its text is shown."""
        made = self._keys.create(_wish(await read_fields(self._bodies, request, _FIELDS)))
        self._audit.record(caller_of(request), "key.create", made.view.id, after=made.view)
        said = {**msgspec.to_builtins(made.view), "key": made.text, "closes": made.closes}
        reply = json_reply(said, 201)
        reply.headers["cache-control"] = "no-store"
        return reply

    async def revoke(self, request: HttpRequest) -> Reply:
        """Revoke a key on every node; with `?force=true` also the last admin key."""
        force = query_switch(request, "force")
        done = self._keys.revoke(request.values["id"], force=force)
        after = {**_plain(done.now), "opens": done.opens}
        self._audit.record(
            caller_of(request), "key.revoke", done.now.id, before=done.before, after=after
        )
        return json_reply(after)


def _wish(body: Mapping[str, Any]) -> KeyRequest:
    tenant, role, name = read_owner(body)
    expires = number_field(body, "expires_in_s", low=1, high=EXPIRES_IN_MAX_S, whole=True)
    return KeyRequest(tenant, role, name, None if expires is None else int(expires))


def _plain(view: KeyView) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = msgspec.to_builtins(view)
    return shown
