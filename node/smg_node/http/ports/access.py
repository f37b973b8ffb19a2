"""Access port: issuers of tokens, refused subjects, and roles, as the HTTP surface shows and changes them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec

from smg_node.core.access.permissions import Permission

SUBJECT_MAX: Final = 1_024
FOR_MAX_S: Final = 366 * 86_400
"""No token lives longer; what is longer is for the issuer to do."""


class IssuerKeyView(msgspec.Struct, frozen=True):
    """A key that tokens may be signed with; `kid` is "" for none."""

    kid: str
    algorithms: Sequence[str]


class SkippedKeyView(msgspec.Struct, frozen=True):
    """A key of the issuer's set that is not used, and why."""

    kid: str
    kind: str
    reason: str


class IssuerView(msgspec.Struct, frozen=True):
    """One issuer as this node sees it. Times are Unix milliseconds.

    `state`: its keys count (`fresh`), are too old (`stale`), or were never had. `fetched_by` fetched them, `refreshed_by`
    is the node whose duty that is now. `requests` and `last_error` are of this node. `source` is where it is defined: by
    the node's own settings, or by operators for the cluster, who find that in `spec` and name its `version`.
    """

    name: str
    issuer: str
    state: Literal["fresh", "stale", "never"]
    keys: Sequence[IssuerKeyView]
    skipped: Sequence[SkippedKeyView]
    fetched_ms: int | None
    fetched_by: str
    good_until_ms: int | None
    refreshed_by: str
    requests: int
    failures: int
    last_error: str
    last_error_ms: int | None
    introspection: bool
    introspection_error: str
    source: Literal["node", "cluster"] = "node"
    version: str = "0"
    spec: Mapping[str, Any] = {}


class IssuerChange(msgspec.Struct, frozen=True):
    """An issuer before a change and after, None where there was or is none."""

    before: IssuerView | None
    after: IssuerView | None


class DenialView(msgspec.Struct, frozen=True):
    """A subject of an issuer whose tokens are refused, of those issued before a time only where there is one.

    `active` is false once it is over.
    """

    issuer: str
    subject: str
    before_ms: int | None
    until_ms: int
    made_ms: int
    active: bool


class DenialChange(msgspec.Struct, frozen=True):
    """A denial before a change and after, None where there was or is none."""

    before: DenialView | None
    after: DenialView | None


class RoleView(msgspec.Struct, frozen=True):
    """One role: what it may, where it is defined, and the `version` of the cluster's definition, "0" for none."""

    name: str
    permissions: Sequence[Permission]
    source: Literal["built-in", "node", "cluster"]
    version: str = "0"


class RoleChange(msgspec.Struct, frozen=True):
    """A role before a change and after, None where there was or is none."""

    before: RoleView | None
    after: RoleView | None


class RoleService(Protocol):
    """Roles as this node knows them."""

    def roles(self) -> Sequence[RoleView]:
        """Return all roles, the built-in ones first."""
        ...

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by name."""
        ...

    def worth(self, name: str) -> Collection[Permission]:
        """Return the permissions that credentials of this role have by now, or again without the cluster's definition;
        none for an unknown name.
        """
        ...

    def users(self, name: str) -> Sequence[str]:
        """Return the names of the issuers whose tokens may have this role, sorted."""
        ...

    def define(
        self, name: str, permissions: Collection[Permission], *, version: int | None
    ) -> RoleChange:
        """Define a role on all nodes; INVALID_REQUEST for one too many, CONFLICT `stale` for another version."""
        ...

    def remove(self, name: str, *, version: int | None) -> RoleChange:
        """Take the cluster's definition away; NOT_FOUND `role_not_found`, CONFLICT `stale`."""
        ...


class AccessService(Protocol):
    """Issuers of this node, and denials of the cluster."""

    def issuers(self) -> Sequence[IssuerView]:
        """Return the configured issuers, sorted by name."""
        ...

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by name."""
        ...

    def check(self, alias: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a definition as it is kept; INVALID_REQUEST names the field that is wrong. Slow: for a thread."""
        ...

    def define(
        self, alias: str, checked: Mapping[str, Any], *, version: int | None
    ) -> IssuerChange:
        """Define an issuer on all nodes, as it was checked; CONFLICT `stale` for another version than there is."""
        ...

    def worth(self, alias: str) -> Collection[str]:
        """Return the roles that tokens of this name may have by now, or again without the cluster's definition; none for
        an unknown name.
        """
        ...

    def mapped(self) -> Mapping[str, Collection[str]]:
        """Return the roles that tokens of each issuer may have here, by its name."""
        ...

    def is_last(self, alias: str) -> bool:
        """Whether the cluster defines this one, and no other."""
        ...

    @property
    def has_own(self) -> bool:
        """Whether this node's own settings have an issuer, which closes it whatever the cluster defines."""
        ...

    def remove(self, alias: str, *, version: int | None) -> IssuerChange:
        """Take the cluster's definition away; NOT_FOUND `issuer_not_found`, CONFLICT `stale`."""
        ...

    def denials(self) -> Sequence[DenialView]:
        """Return all denials, sorted by issuer and subject."""
        ...

    def deny(self, issuer: str, subject: str, *, before_ms: int | None, for_s: int) -> DenialChange:
        """Refuse a subject's tokens on all nodes; NOT_FOUND `issuer_not_found`, CONFLICT if there is no room."""
        ...

    def undo(self, issuer: str, subject: str) -> DenialChange:
        """Refuse them no longer; NOT_FOUND `denial_not_found`."""
        ...
