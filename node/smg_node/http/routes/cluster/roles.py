"""Role routes: what each role may, and the roles that are defined for the whole cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.access.key_rights import KeyRights
from smg_node.access.roles import Roles
from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS, Permission, is_role_name
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.administrators import has_administrator
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import expected_version, query_switch, read_fields
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.access import RoleChange, RoleService

CHANGED: Final = "role.changed"
_FIELDS: Final = ("permissions",)
_CODE: Final = "invalid_role"
_LOCKED: Final = (
    "nobody could administer this node any more: no other key, issuer or certificate is good for that; make a key first"
    " (smg-admin keys create --role admin)"
)
_SHOWN: Final = 8
"""So many of those that have a role are named."""


class RoleRoutes:
    """Serves the roles."""

    def __init__(self, parts: HttpParts, roles: RoleService, bodies: BodyReader) -> None:
        self._parts = parts
        self._roles = roles
        self._bodies = bodies

    async def roles(self, request: HttpRequest) -> Reply:
        """List all roles, with the permissions of each."""
        return json_reply(
            {
                "node": self._parts.identity.node,
                "roles": self._roles.roles(),
                "unreadable": self._roles.unreadable(),
            }
        )

    async def define(self, request: HttpRequest) -> Reply:
        """Define a role on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        if name in BUILT_IN:
            raise invalid(f"{name} is built in and cannot be defined again", "name", _CODE)
        if not is_role_name(name):
            raise invalid(
                "a role is called by a small letter and at most 31 more, or digits, or any of _ . -",
                "name",
                _CODE,
            )
        asked = _permissions(await read_fields(self._bodies, request, _FIELDS))
        # What others may by that role, or may again, is taken away.
        self._rights(request).check_permissions({*asked, *self._roles.worth(name)})
        self._check_administered(name, asked)
        done = self._roles.define(name, asked, version=version)
        self._record(request, name, done)
        return json_reply(done.after)

    async def remove(self, request: HttpRequest) -> Reply:
        """Take the cluster's definition of a role away, if the version is the one that `If-Match` names; with
        `?force=true` also while keys, issuers or certificates have it, which open nothing by it any more.
        """
        name, version = request.values["name"], expected_version(request)
        forced = query_switch(request, "force")
        self._rights(request).check_permissions(self._roles.worth(name))
        used = self._used_by(name)
        self._check_issuers(request, used["issuers"])
        if any(used.values()) and not forced:
            raise SmgError(
                ErrorKind.CONFLICT, _in_use(name, used), where="name", code="role_in_use"
            )
        done = self._roles.remove(name, version=version)
        self._record(request, name, done)
        return json_reply({"status": "removed", "name": name, "now": done.after, "used_by": used})

    def _check_issuers(self, request: HttpRequest, aliases: Sequence[str]) -> None:
        """Return if the caller may take these issuers away: without one of its roles none of its tokens is taken;
        FORBIDDEN.
        """
        access = self._parts.token_access
        if not aliases or access is None:
            return
        mapped = access().mapped()
        for alias in aliases:
            self._rights(request).check_mapped({*mapped.get(alias, ()), *access().worth(alias)})

    def _check_administered(self, name: str, asked: Sequence[Permission]) -> None:
        """Return if somebody may administer this node once a role may no more than this, or if nobody may now; CONFLICT
        `nobody_administers`.
        """
        parts = self._parts
        roles = parts.options.roles
        lessens = roles.of(name) == frozenset(PERMISSIONS) and len(asked) < len(PERMISSIONS)
        if not lessens or not (parts.authenticator.closed or parts.options.certificates):
            return
        issuers = {} if parts.token_access is None else parts.token_access().mapped()
        own = {one: roles.of(one) for one in roles.names if one not in BUILT_IN}
        after = Roles({**own, name: asked})
        if not has_administrator(parts, issuers, after) and has_administrator(parts, issuers):
            raise SmgError(
                ErrorKind.CONFLICT, _LOCKED, where="permissions", code="nobody_administers"
            )

    def _used_by(self, name: str) -> Mapping[str, Sequence[str]]:
        """Return who has a role: good keys, issuers by their tokens, and rules of certificates."""
        options = self._parts.options
        keys = self._parts.keys.keys(revoked=False)
        return {
            "keys": [one.id for one in keys if one.role == name and one.state == "active"],
            "issuers": self._roles.users(name),
            "certificates": [one.match for one in options.certificates if one.role == name],
        }

    def _rights(self, request: HttpRequest) -> KeyRights:
        return KeyRights(request.identity, self._parts.options.roles)

    def _record(self, request: HttpRequest, name: str, done: RoleChange) -> None:
        self._parts.audit.record(
            caller_of(request), CHANGED, name, before=done.before, after=done.after
        )


def _permissions(body: Mapping[str, Any]) -> Sequence[Permission]:
    """Return the permissions in a definition; INVALID_REQUEST names the one that is wrong."""
    given = body.get("permissions")
    if not isinstance(given, list) or not given:
        raise invalid(
            f"permissions must be a list of at least one of {', '.join(PERMISSIONS)}",
            "permissions",
            _CODE,
        )
    for at, word in enumerate(given):
        if word not in PERMISSIONS:
            where = f"permissions[{at}]"
            raise invalid(f"{where}: there is no permission {str(word)[:64]!r}", where, _CODE)
    return [one for one in PERMISSIONS if one in given]


def _in_use(name: str, used: Mapping[str, Sequence[str]]) -> str:
    told = [
        f"{what} {', '.join(one[:64] for one in names[:_SHOWN])}{' …' * (len(names) > _SHOWN)}"
        for what, names in used.items()
        if names
    ]
    return (
        f"role {name[:64]} is in use by {'; '.join(told)}: without it those keys and certificates open nothing, and no"
        " token of those issuers is taken; give them another one first, or force it (?force=true, --force)"
    )
