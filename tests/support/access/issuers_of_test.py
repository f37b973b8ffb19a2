"""Issuers of a test: what the service of issuers asks of the process that it is in."""

from collections.abc import Collection, Mapping
from typing import Final

from smg_node.access.roles import Roles
from smg_node.access.tokens.issuer import Issuer
from smg_node.cluster.issuers.access_service import IssuerParts
from smg_node.cluster.issuers.issuer_definitions import Definitions, NodeTerms, merged
from smg_node.cluster.issuers.role_definitions import merged_roles
from support.access.key_world import KeyWorld

LENT: Final = "/run/secrets/issuer"
"""A file that the node lends to definitions."""


OWN_ROLES: Final = {"on-call": ["look"]}
"""Roles of the node's own settings."""


class IssuersOfTest:
    """The issuers of a process, as a test says."""

    def __init__(self, world: KeyWorld, parts: IssuerParts | None = None) -> None:
        self._world = world
        self._parts = parts
        self._own = dict(world.issuers)

    @property
    def unreadable(self) -> Mapping[str, str]:
        return self._merged().unreadable

    def issuers(self) -> Mapping[str, Issuer]:
        found = self._merged().issuers
        self._world.issuers = dict(found)
        return found

    def own(self) -> Mapping[str, Collection[str]]:
        return {name: {role for _, role in self._own[name].role_map} for name in self._world.own}

    def terms(self) -> NodeTerms:
        return NodeTerms(frozenset({LENT}), self.roles)

    def parts(self) -> IssuerParts | None:
        return self._parts

    @property
    def roles(self) -> Roles:
        return self._roles()[0]

    @property
    def unreadable_roles(self) -> Mapping[str, str]:
        return self._roles()[1]

    def own_roles(self) -> Mapping[str, Collection[str]]:
        return OWN_ROLES

    def _roles(self) -> tuple[Roles, Mapping[str, str]]:
        return merged_roles(OWN_ROLES, self._world.states["node-a"].roles.all())

    def _merged(self) -> Definitions:
        own = [self._own[name] for name in self._world.own]
        return merged(own, self._world.states["node-a"].definitions.all(), self.terms())
