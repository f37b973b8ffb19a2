"""Roles: names for sets of permissions, four that are built in and those of an operator's own.

    user          the data routes, for its tenant
    tenant_admin  besides, keys and limits of its own tenant
    operator      the data routes, and all that is only looked at
    admin         everything

A role that is not known here has no permissions: a key of such a role opens nothing. Pure.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS, TENANTS, Permission

_NONE: Final[frozenset[Permission]] = frozenset()


class Roles:
    """The roles that are known here: the built-in ones, and an operator's own."""

    def __init__(self, own: Mapping[str, Collection[str]] | None = None) -> None:
        """Take own roles with the names of their permissions; a built-in role cannot be defined again."""
        said = own or {}
        assert not BUILT_IN.keys() & said.keys(), "built-in roles cannot be defined again"
        self._permissions: Final = {
            **BUILT_IN,
            **{
                name: frozenset(one for one in PERMISSIONS if one in given)
                for name, given in said.items()
            },
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all roles, the built-in ones first."""
        return tuple(self._permissions)

    def of(self, role: str) -> frozenset[Permission]:
        """Return the permissions of a role; none for an unknown one."""
        return self._permissions.get(role, _NONE)

    def given_by(self, maker: str, *, beyond_tenant: bool) -> tuple[str, ...]:
        """Return the roles of keys that the holder of role `maker` may make: none may more than it.

        Without `beyond_tenant` they are only such as reach nothing but their tenant.
        """
        most = self.of(maker) if beyond_tenant else self.of(maker) & TENANTS
        return tuple(role for role, held in self._permissions.items() if held and held <= most)

    def needs_tenant(self, role: str) -> bool:
        """Whether a key of that role is of no use without a tenant."""
        return self.of(role) <= TENANTS

    def best(self, roles: Iterable[str]) -> str:
        """Return the role with the most permissions that reach beyond a tenant, and of such the one with the most of all.

        ValueError for no roles; of several that are alike the first.
        """
        return max(roles, key=lambda role: (len(self.of(role) - TENANTS), len(self.of(role))))

    def is_within(self, role: str, maker: str) -> bool:
        """Whether a role may nothing that the role `maker` may not."""
        return self.of(role) <= self.of(maker)


BUILT_IN_ROLES: Final = Roles()
