"""Administrators: whether anybody could still administer a node that needs credentials, and by which of them. Pure.

An administrator is who may everything. Where nothing closes a node that is whoever is on its machine. The first thing that
closes it takes that away, so there should be a key, an issuer or a rule for certificates by which somebody is let in.
"""

from collections.abc import Collection, Mapping
from typing import Final

from smg_node.access.roles import Roles
from smg_node.http.http_parts import HttpParts

_ADMIN: Final = "admin"
_SOCKET: Final = "unix:"


def has_administrator(
    parts: HttpParts, issuers: Mapping[str, Collection[str]], roles: Roles | None = None
) -> bool:
    """Return whether somebody may administer this node once credentials are needed: by a good key, a certificate, a token of
    `issuers`, the roles that each maps to by its name, or on its machine by the socket of operators; with `roles` in place
    of those that count now.
    """
    options = parts.options
    if options.admin_listen.startswith(_SOCKET):
        return True
    keys = [
        one.role
        for one in parts.keys.keys(revoked=False)
        if one.state == "active" and (not one.routes or _ADMIN in one.routes)
    ]
    rules = [one.role for one in options.certificates]
    tokens = [role for roles in issuers.values() for role in roles]
    known = options.roles if roles is None else roles
    return any(known.is_within(_ADMIN, role) for role in {*keys, *rules, *tokens})
