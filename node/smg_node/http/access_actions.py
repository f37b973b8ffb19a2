"""Access actions: the functions behind the routes about issuers, denials and roles, loaded with the first request."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.middleware.middleware import Action

if TYPE_CHECKING:
    from smg_node.http.routes.cluster.access import AccessRoutes
    from smg_node.http.routes.cluster.roles import RoleRoutes


def access_actions(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    """Return the action of every name of these routes in the route table."""

    @cache
    def access() -> "AccessRoutes":
        from smg_node.http.routes.cluster.access import AccessRoutes

        assert parts.token_access is not None, "the process that has this route has the service"
        return AccessRoutes(parts, parts.token_access(), bodies)

    @cache
    def roles() -> "RoleRoutes":
        from smg_node.http.routes.cluster.roles import RoleRoutes

        assert parts.role_access is not None, "the process that has this route has the service"
        return RoleRoutes(parts, parts.role_access(), bodies)

    return {
        "access_issuers": lambda request: access().issuers(request),
        "define_issuer": lambda request: access().define(request),
        "remove_issuer": lambda request: access().remove(request),
        "access_denials": lambda request: access().denials(request),
        "deny_access": lambda request: access().deny(request),
        "undo_denial": lambda request: access().undo(request),
        "access_roles": lambda request: roles().roles(request),
        "define_role": lambda request: roles().define(request),
        "remove_role": lambda request: roles().remove(request),
    }
