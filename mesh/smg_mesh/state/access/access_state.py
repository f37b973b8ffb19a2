"""Access state: definitions of issuers and roles, keys of issuers, denials of subjects, all in one namespace.

A node of a release without this namespace does not hold it: it has it from others once it is newer. Keys and denials
are read, and their modules imported, with the first issuer.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Final

from smg_mesh.crdt.namespace import Namespace
from smg_mesh.state.access.access_definitions import AccessDefinition, AccessDefinitions
from smg_mesh.state.access.access_records import Denial, IssuerKeySet

if TYPE_CHECKING:
    from smg_mesh.state.access.denials import Denials
    from smg_mesh.state.access.issuer_keys import IssuerKeys

__all__ = ["AccessDefinition", "AccessState", "Denial", "IssuerKeySet"]


class AccessState:
    """All views of the namespace `access`."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace: Final = namespace
        self.definitions: Final = AccessDefinitions(namespace, "issuer")
        self.roles: Final = AccessDefinitions(namespace, "role")

    @cached_property
    def keys(self) -> "IssuerKeys":
        """The key sets of issuers."""
        from smg_mesh.state.access.issuer_keys import IssuerKeys

        return IssuerKeys(self._namespace)

    @cached_property
    def denials(self) -> "Denials":
        """The subjects whose tokens are refused."""
        from smg_mesh.state.access.denials import Denials

        return Denials(self._namespace)
