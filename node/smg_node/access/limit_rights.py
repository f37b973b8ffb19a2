"""Limit rights: which limits a caller may see and set: all, or those of its own tenant and of that tenant's keys. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from smg_node.access.identity import Identity
from smg_node.core.access.permissions import Permission
from smg_node.core.errors import ErrorKind, SmgError

_EACH: Final = "*"


@dataclass(frozen=True, slots=True)
class LimitRights:
    """What one caller, who has the permissions `held`, may do with limits; `tenant_of` returns whose a key is."""

    identity: Identity
    held: frozenset[Permission]
    tenant_of: Callable[[str], str | None]

    @property
    def sees_all(self) -> bool:
        """Whether the limits of all tenants are the caller's to see."""
        return "look" in self.held

    @property
    def sets_all(self) -> bool:
        """Whether the limits of all tenants are the caller's to set, at will."""
        return "limits" in self.held

    def owns(self, names: Mapping[str, str]) -> bool:
        """Whether a limit for these names is one of the caller's tenant alone; FORBIDDEN `no_tenant` for a caller
        without one.
        """
        own = self.identity.tenant
        if not own:
            raise SmgError(
                ErrorKind.FORBIDDEN, "the credential sent belongs to no tenant", code="no_tenant"
            )
        if "tenant" in names:
            return names["tenant"] == own
        return "key" in names and self.tenant_of(names["key"]) == own

    def check_seen(self, names: Mapping[str, str], scope: str) -> None:
        """Return if the caller may see a limit; NOT_FOUND, as if there were none, otherwise."""
        if not self.sees_all and not self.owns(names):
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"there is no limit for {scope[:200]}",
                where="scope",
                code="limit_not_found",
            )

    def check_set(self, names: Mapping[str, str]) -> None:
        """Return if the caller may set a limit, at will or only lower; FORBIDDEN `other_tenant` otherwise."""
        if self.sets_all:
            return
        if not self.owns(names) or any(name.endswith(_EACH) for name in names.values()):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"the credential sent sets limits of its own tenant, {self.identity.tenant}, and of its keys only, each"
                " by its name",
                where="scope",
                code="other_tenant",
            )
