"""Role definitions: roles of this node's own settings and those of the cluster as one. Pure.

A definition of the cluster counts in place of a role of the same name in a node's settings. One that this release cannot
read whole is no role here: of a role whose permissions are not all known nobody can say that it may less than another.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from smg_mesh.shared import AccessDefinition
from smg_node.access.roles import Roles
from smg_node.config.schema.suggestions import did_you_mean
from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS, Permission, is_role_name

ROLES_MAX: Final = 64
"""Of a cluster's, as of a node's own settings."""
PERMISSIONS_FIELD: Final = "permissions"


def merged_roles(
    own: Mapping[str, Collection[str]], shared: Sequence[AccessDefinition]
) -> tuple[Roles, Mapping[str, str]]:
    """Return the roles that count, and why definitions of the cluster do not, by name."""
    found, unreadable = dict(own), dict[str, str]()
    for definition in shared:
        try:
            found[definition.alias] = read_role(definition.alias, definition.value)
        except ValueError as error:
            # It may be less than what the node's own file says.
            found.pop(definition.alias, None)
            unreadable[definition.alias] = str(error)
    return Roles(found), unreadable


def read_role(name: str, value: object) -> tuple[Permission, ...]:
    """Return the permissions of a definition, in their usual order; ValueError for one that is not understood whole."""
    if not is_role_name(name) or name in BUILT_IN:
        raise ValueError(f"{name[:64]!r} is no name that a role of one's own can have")
    fields: Mapping[Any, Any] = value if isinstance(value, dict) else {}
    given = fields.get(PERMISSIONS_FIELD)
    if len(fields) != 1 or not isinstance(given, list) or not given:
        raise ValueError("a role is defined by its permissions, and by nothing else")
    for word in given:
        if word not in PERMISSIONS:
            hint = did_you_mean(word, PERMISSIONS) if isinstance(word, str) else ""
            raise ValueError(f"there is no permission {str(word)[:64]!r}{hint}")
    return tuple(one for one in PERMISSIONS if one in given)


def words_of(value: object) -> Sequence[object]:
    """Return what a definition lists as permissions, however much of it is not understood here; nothing if it lists none."""
    fields: Mapping[Any, Any] = value if isinstance(value, dict) else {}
    given = fields.get(PERMISSIONS_FIELD)
    return given if isinstance(given, list) else ()
