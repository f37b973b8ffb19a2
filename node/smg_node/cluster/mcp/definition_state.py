"""Definition state: ports to the shared state that definitions of servers of tools are in."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from smg_node.cluster.mcp.definitions import SharedValue


class ServerStore(Protocol):
    """Port to the shared definitions; `smg_mesh.shared.ProvidersView` fits."""

    def all(self) -> "Sequence[SharedValue]":
        """Return all values, sorted by key."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell of changes."""
        ...


class DefinitionState(Protocol):
    """Port to the shared state that definitions are in."""

    @property
    def providers(self) -> ServerStore:
        """The definitions, among those of providers."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any member sealed; None if this node has not the key."""
        ...
