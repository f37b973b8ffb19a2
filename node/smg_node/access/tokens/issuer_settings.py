"""Issuer settings: the issuers of a node as values, from its configuration."""

from typing import TYPE_CHECKING

from smg_node.access.roles import Roles
from smg_node.access.tokens.issuer import Introspection, Issuer

if TYPE_CHECKING:
    from smg_node.config.sections.auth import Auth
    from smg_node.config.sections.auth_issuers import TokenIntrospection


def issuers_of(auth: "Auth", known: Roles) -> tuple[Issuer, ...]:
    """Return the configured issuers, in their order; `known` are the roles that there are."""
    return tuple(
        Issuer(
            alias=alias,
            issuer=one.issuer,
            audiences=one.audiences,
            roles=one.roles,
            role_map=tuple(one.role_map.items()),
            tenant=one.tenant,
            tenant_fixed=one.tenant_fixed,
            tenant_prefix=one.tenant_prefix,
            algorithms=one.algorithms,
            token_types=one.token_types,
            leeway_s=one.leeway_s,
            keys_url=one.keys_url,
            authority=str(one.authority or ""),
            token_file=str(one.token_file or ""),
            keys_max_age_s=one.keys_max_age_s,
            introspection=_introspection(one.introspection),
            known_roles=known,
        )
        for alias, one in auth.issuers.items()
    )


def _introspection(told: "TokenIntrospection") -> Introspection | None:
    if not told.url:
        return None
    return Introspection(told.url, told.client_id, str(told.client_secret_file))
