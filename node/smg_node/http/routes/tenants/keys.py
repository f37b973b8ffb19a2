"""Key routes: create, list and revoke API keys: of all tenants, or of the caller's own."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.access.key_rights import KeyRights
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import number_field, query_switch, read_fields
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.keys import (
    EXPIRES_IN_MAX_S,
    KEYS_META,
    KeyRequest,
    KeyView,
)
from smg_node.http.ports.node import MemberRow
from smg_node.http.routes.tenants.key_body import FIELDS, read_restrictions
from smg_node.http.routes.tenants.key_import import KeyImportRoutes
from smg_node.http.routes.tenants.key_owner import read_owner

_LIVING: Final = ("alive", "suspect")
_FIELDS: Final = ("tenant", "role", "name", "expires_in_s", *FIELDS)


def is_closed(parts: HttpParts) -> bool:
    """Whether a credential is needed: an admin key, an issuer of tokens or a rule for certificates exists."""
    return bool(parts.authenticator.closed or parts.options.certificates)


class KeyRoutes:
    """Serves the API keys."""

    def __init__(self, parts: HttpParts, bodies: BodyReader) -> None:
        self._parts = parts
        self._keys = parts.keys
        self._audit = parts.audit
        self._bodies = bodies
        self.imports: Final = KeyImportRoutes(
            parts.keys,
            parts.audit,
            bodies,
            self._rights,
            self._not_reading,
            lambda: is_closed(parts),
        )

    async def keys(self, request: HttpRequest) -> Reply:
        """List the keys, with `?all=true` the revoked ones too; never a key itself."""
        rights = self._rights(request)
        rows = self._keys.keys(revoked=query_switch(request, "all"))
        own = [row for row in rows if rights.sees(row.tenant)]
        return json_reply({"closed": is_closed(self._parts), "keys": own})

    async def create(self, request: HttpRequest) -> Reply:
        """Create a key; this answer is the only place where its text is shown."""
        rights, closed = self._rights(request), is_closed(self._parts)
        body = await read_fields(self._bodies, request, _FIELDS)
        made = self._keys.create(self._wish(body, rights))
        self._audit.record(caller_of(request), "key.create", made.view.id, after=made.view)
        closes = made.closes and not closed
        said = {**msgspec.to_builtins(made.view), "key": made.text, "closes": closes}
        if unknown := self._not_reading(made.form):
            said["unknown_on"] = unknown
        reply = json_reply(said, 201)
        reply.headers["cache-control"] = "no-store"
        return reply

    async def revoke(self, request: HttpRequest) -> Reply:
        """Revoke a key on every node; with `?force=true` also the last admin key."""
        key_id, force = request.values["id"], query_switch(request, "force")
        self._check_revoked(key_id, self._rights(request), force=force)
        done = self._keys.revoke(key_id, force=force)
        after = {**_plain(done.now), "opens": done.opens and not is_closed(self._parts)}
        self._audit.record(
            caller_of(request), "key.revoke", done.now.id, before=done.before, after=after
        )
        return json_reply(after)

    def _wish(self, body: Mapping[str, Any], rights: KeyRights) -> KeyRequest:
        tenant, role, name = read_owner(body, rights)
        said = number_field(body, "expires_in_s", low=1, high=EXPIRES_IN_MAX_S, whole=True)
        expires_in_s = None if said is None else int(said)
        only = read_restrictions(body)
        rights.check_restrictions(only)
        return KeyRequest(
            tenant,
            role,
            name,
            expires_in_s,
            only,
            until_ms=rights.until_ms,
            # Whoever has the keys of all tenants sees to them himself.
            tenant_keys_max=None if rights.everywhere else self._parts.options.tenant_keys_max,
        )

    def _not_reading(self, form: int) -> list[str]:
        """Return the living members of an older version, to whom a key of that form is an unknown one."""
        if form == 1:
            return []
        return [
            row.name
            for row in self._parts.cluster.members()
            if row.state in _LIVING and not row.me and _form_of(row) < form
        ]

    def _rights(self, request: HttpRequest) -> KeyRights:
        return KeyRights(request.identity, self._parts.options.roles)

    def _check_revoked(self, key_id: str, rights: KeyRights, *, force: bool) -> None:
        """Return if a key may be revoked; NOT_FOUND for one that the caller may not even see."""
        found = self._keys.key(key_id)
        if found is None or rights.everywhere:
            sees = rights.everywhere
        else:
            sees = rights.sees(found.tenant)
        if not sees:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"no key has the id {key_id[:64]!r}",
                where="id",
                code="key_not_found",
            )
        if found is not None:
            rights.check_revoked(found.role)
            if force and found.role == "admin":
                rights.check_opened()


def _form_of(member: MemberRow) -> int:
    said = member.meta.get(KEYS_META)
    return said if isinstance(said, int) else 1


def _plain(view: KeyView) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = msgspec.to_builtins(view)
    return shown
