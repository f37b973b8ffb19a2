"""Role service: answers the HTTP surface about roles, and defines those of the cluster."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from smg_mesh.shared import StateError
from smg_node.access.roles import Roles
from smg_node.access.tokens.issuer import Issuer
from smg_node.cluster.issuers.key_ports import SharedDefinitions
from smg_node.cluster.issuers.role_definitions import PERMISSIONS_FIELD, ROLES_MAX, words_of
from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS, Permission
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.ports.access import RoleChange, RoleView
from smg_node.http.ports.shared_state import StaleValueError


class RolesHere(Protocol):
    """Port to the roles of this process, and to the issuers whose tokens have them."""

    @property
    def roles(self) -> Roles:
        """All roles that count here."""
        ...

    @property
    def unreadable_roles(self) -> Mapping[str, str]:
        """Definitions of the cluster that are not followed here, and why."""
        ...

    def own_roles(self) -> Mapping[str, Collection[str]]:
        """Return the roles of this node's own settings by name, with the permissions of each."""
        ...

    def issuers(self) -> Mapping[str, Issuer]:
        """Return the issuers by name."""
        ...


class ClusterRoles:
    """Roles as this node sees them, and changes those of the cluster."""

    def __init__(self, here: RolesHere, definitions: SharedDefinitions) -> None:
        self._here: Final = here
        self._definitions: Final = definitions

    def roles(self) -> Sequence[RoleView]:
        """Return all roles; see `RoleService`."""
        shared = {one.alias: str(one.version) for one in self._definitions.all()}
        return [self._view(name, shared) for name in self._here.roles.names]

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by name."""
        return dict(sorted(self._here.unreadable_roles.items()))

    def worth(self, name: str) -> Collection[Permission]:
        """Return the permissions that a name has by now, or again; see `RoleService`."""
        own, held = self._here.own_roles().get(name, ()), self._definitions.get(name)
        # Others may follow what this node does not.
        said = words_of(held.value) if held is not None else ()
        return self._here.roles.of(name) | {one for one in PERMISSIONS if one in own or one in said}

    def users(self, name: str) -> Sequence[str]:
        """Return the issuers whose tokens may have a role, sorted."""
        found = self._here.issuers().items()
        return sorted(alias for alias, one in found if name in dict(one.role_map).values())

    def define(
        self, name: str, permissions: Collection[Permission], *, version: int | None
    ) -> RoleChange:
        """Define a role on all nodes; see `RoleService`."""
        others = [one for one in self._definitions.all() if one.alias != name]
        if len(others) >= ROLES_MAX:
            raise invalid(f"the cluster defines {ROLES_MAX} roles already", "name", "invalid_role")
        kept = {PERMISSIONS_FIELD: [one for one in PERMISSIONS if one in permissions]}
        return self._write(name, kept, version)

    def remove(self, name: str, *, version: int | None) -> RoleChange:
        """Take the cluster's definition of a role away; see `RoleService`."""
        if self._definitions.get(name) is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"the cluster defines no role {name[:64]!r}; those of a node's own settings are taken out of there",
                where="name",
                code="role_not_found",
            )
        return self._write(name, None, version)

    def _write(self, name: str, value: object, version: int | None) -> RoleChange:
        before = self._found(name)
        try:
            if value is None:
                self._definitions.remove(name, version=version)
            else:
                self._definitions.set(name, value, version=version)
        except StateError as error:
            if error.reason == "stale":
                held = self._definitions.get(name)
                now = "0" if held is None else str(held.version)
                raise StaleValueError(f"role {name}", now, self._found(name)) from error
            code = f"state_{error.reason}"
            raise SmgError(ErrorKind.OVERLOADED, str(error), code=code) from error
        return RoleChange(before, self._found(name))

    def _found(self, name: str) -> RoleView | None:
        return next((one for one in self.roles() if one.name == name), None)

    def _view(self, name: str, shared: Mapping[str, str]) -> RoleView:
        held = self._here.roles.of(name)
        permissions = [one for one in PERMISSIONS if one in held]
        if name in BUILT_IN:
            return RoleView(name, permissions, "built-in")
        if name in shared:
            return RoleView(name, permissions, "cluster", shared[name])
        return RoleView(name, permissions, "node")
