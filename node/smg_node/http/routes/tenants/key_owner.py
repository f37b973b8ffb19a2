"""Key owner: tenant, role and name of a key that an administrator asks for."""

import re
from collections.abc import Mapping
from typing import Any, Final

from smg_node.access.identity import Role
from smg_node.access.key_rights import KeyRights
from smg_node.core.errors import invalid
from smg_node.http.message.field_reader import text_field

NAME_CHARACTERS_MAX: Final = 64
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)


def read_owner(body: Mapping[str, Any], rights: KeyRights) -> tuple[str, Role, str]:
    """Return tenant, role and name of a key that is to be; INVALID_REQUEST, FORBIDDEN for one that is not the caller's to
    make.
    """
    tenant = rights.tenant_of(text_field(body, "tenant", NAME_CHARACTERS_MAX))
    role = rights.role_of(_role(body))
    if tenant is None and rights.roles.needs_tenant(role):
        raise invalid(
            f"a key of role {role} needs a tenant", "tenant", "missing_required_parameter"
        )
    if tenant is not None and not _TENANT.fullmatch(tenant):
        raise invalid(
            "tenant must begin with a letter or digit, and have only those and . _ @ - in it",
            "tenant",
        )
    name = text_field(body, "name", NAME_CHARACTERS_MAX, empty=True) or ""
    if not name.isprintable():
        raise invalid("name must be printable", "name")
    return tenant or "", role, name


def _role(body: Mapping[str, Any]) -> str:
    said = "user" if body.get("role") is None else body["role"]
    return said if isinstance(said, str) else ""
