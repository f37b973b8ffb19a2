"""Access state: definitions of issuers, their keys, and denials of subjects, which lie in one namespace.

A node of a release without this namespace does not hold it: it has it from others once it is newer.
"""

from typing import Final

from smg_mesh.crdt.namespace import Namespace
from smg_mesh.state.access.denials import Denial, Denials
from smg_mesh.state.access.issuer_definitions import IssuerDefinition, IssuerDefinitions
from smg_mesh.state.access.issuer_keys import IssuerKeys, IssuerKeySet

__all__ = ["AccessState", "Denial", "Denials", "IssuerDefinition", "IssuerKeySet", "IssuerKeys"]


class AccessState:
    """All views of the namespace `access`."""

    def __init__(self, namespace: Namespace) -> None:
        self.definitions: Final = IssuerDefinitions(namespace)
        self.keys: Final = IssuerKeys(namespace)
        self.denials: Final = Denials(namespace)
