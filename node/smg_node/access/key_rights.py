"""Key rights: which keys a caller may see, make and revoke: none of another tenant, and none that may more than it.

A caller with the permission `keys` has the keys of all tenants, one with `keys.own` those of its own. Neither
makes a key that may more than itself, by its role or by what it is restricted to, and neither revokes one whose role
may more: whoever could revoke the last admin key could open the cluster. Pure.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from smg_node.access.identity import Identity
from smg_node.access.restrictions import Restrictions, is_within
from smg_node.access.roles import Roles
from smg_node.core.access.permissions import PERMISSIONS, Permission
from smg_node.core.errors import ErrorKind, SmgError, invalid

_ADMIN: Final = "admin"


@dataclass(frozen=True, slots=True)
class KeyRights:
    """What one caller may do with keys."""

    identity: Identity
    roles: Roles

    @property
    def everywhere(self) -> bool:
        """Whether the keys of all tenants are the caller's to see."""
        return "keys" in self.roles.of(self.identity.role)

    @property
    def tenant(self) -> str:
        """The one tenant whose keys the caller has; "" for all. FORBIDDEN `no_tenant` for a caller that has none."""
        if self.everywhere:
            return ""
        if not self.identity.tenant:
            raise SmgError(
                ErrorKind.FORBIDDEN, "the credential sent belongs to no tenant", code="no_tenant"
            )
        return self.identity.tenant

    def sees(self, tenant: str) -> bool:
        """Whether keys of that tenant are the caller's to see."""
        return self.everywhere or tenant == self.tenant

    def tenant_of(self, asked: str | None) -> str | None:
        """Return the tenant of a new key: the one asked for, or the caller's own; FORBIDDEN for another's."""
        own = self.tenant
        if not own:
            return asked
        if asked not in (None, own):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"the credential sent makes keys of its own tenant, {own}, only",
                where="tenant",
                code="other_tenant",
            )
        return own

    def role_of(self, asked: str) -> str:
        """Return the role of a new key; INVALID_REQUEST for one that does not exist, FORBIDDEN for one that may more
        than the caller.
        """
        if asked not in self.roles.names:
            listed = ", ".join(self.given)
            raise invalid(f"role must be one of {listed}", "role")
        if asked not in self.given:
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"the credential sent has role {self.identity.role}, and a key of role {asked} may more",
                where="role",
                code="role_may_more",
            )
        return asked

    def check_mapped(self, roles: Iterable[str]) -> None:
        """Return if credentials of others may be worth these roles by the caller's word, as an issuer's tokens are, or
        may be taken away by it; FORBIDDEN `role_may_more` for one that may more than the caller.

        Tokens are restricted to nothing: FORBIDDEN `key_may_more` for a caller that is.
        """
        if self.identity.restrictions is not None:
            raise SmgError(
                ErrorKind.FORBIDDEN,
                "the credential sent is restricted, and an issuer's tokens are not",
                code="key_may_more",
            )
        for role in roles:
            if not self.roles.is_within(role, self.identity.role):
                raise SmgError(
                    ErrorKind.FORBIDDEN,
                    f"the credential sent has role {self.identity.role}, and credentials of role {role} may more",
                    code="role_may_more",
                )

    def check_permissions(self, permissions: Collection[Permission]) -> None:
        """Return if a role may have these by the caller's word, or lose them by it; FORBIDDEN `role_may_more` for more
        than the caller has, `key_may_more` for a caller that is restricted.
        """
        if self.identity.restrictions is not None:
            raise SmgError(
                ErrorKind.FORBIDDEN,
                "the credential sent is restricted, and a role is not",
                code="key_may_more",
            )
        held = self.roles.of(self.identity.role)
        more = [one for one in PERMISSIONS if one in permissions and one not in held]
        if more:
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"the credential sent has role {self.identity.role}, which has not the permission {more[0]}",
                where="permissions",
                code="role_may_more",
            )

    @property
    def given(self) -> tuple[str, ...]:
        """The roles of keys that the caller may make."""
        return self.roles.given_by(self.identity.role, beyond_tenant=self.everywhere)

    def check_restrictions(self, asked: Restrictions | None) -> None:
        """Return if a new key may be restricted to this; FORBIDDEN `key_may_more` if it may be used where the caller's
        own may not.
        """
        if not is_within(asked, self.identity.restrictions):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                "the credential sent is restricted, and a key that it makes must be restricted at least so far",
                code="key_may_more",
            )

    @property
    def until_ms(self) -> int:
        """When keys that the caller makes end at the latest, in Unix milliseconds; 0 for never.

        A key makes none that outlives it, or its end would mean nothing. Who signs in by a token or a certificate is known
        to others, who let him in again.
        """
        return 0 if self.identity.subject else self.identity.expires_ms

    def check_opened(self) -> None:
        """Return if the caller may open the cluster, where everybody on this machine is an administrator; FORBIDDEN
        `key_may_more` for one that may less than that.
        """
        may_all = self.roles.is_within(_ADMIN, self.identity.role)
        if not may_all or self.identity.restrictions is not None:
            raise SmgError(
                ErrorKind.FORBIDDEN,
                "that opens the cluster, and only an administrator without restrictions may open it",
                code="key_may_more",
            )

    def check_revoked(self, role: str) -> None:
        """Return if a key of that role may be revoked; FORBIDDEN `key_may_more` for one that may more than the
        caller.
        """
        if not self.roles.is_within(role, self.identity.role):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"the credential sent has role {self.identity.role}, and that key may more",
                where="id",
                code="key_may_more",
            )


def check_end(expires_ms: int | None, until_ms: int, where: str) -> None:
    """Return if a new key may end then, None where nobody asked for an end, and its maker's key ends at `until_ms`, 0 for
    never; FORBIDDEN `key_outlives_maker` says `where` that was asked for.
    """
    if until_ms and expires_ms is not None and expires_ms > until_ms:
        raise SmgError(
            ErrorKind.FORBIDDEN,
            f"the key sent ends {(expires_ms - until_ms + 999) // 1000} s earlier, and makes none that outlives it;"
            " without an end asked for, a key ends with the one that made it",
            where=where,
            code="key_outlives_maker",
        )
