"""Ports to values that the cluster shares, and to definitions: of providers, routes, prices and servers of tools."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class SharedValue(Protocol):
    """A value as the cluster holds it."""

    @property
    def key(self) -> str:
        """Its key."""
        ...

    @property
    def value(self) -> Any:
        """In JSON types."""
        ...

    @property
    def version(self) -> int:
        """The hybrid time of the write."""
        ...

    @property
    def owner(self) -> str:
        """The node it was written on."""
        ...

    @property
    def time_ms(self) -> int:
        """When, by that node's clock."""
        ...


class DefinitionStore(Protocol):
    """Port to the shared definitions; `smg_mesh.shared.ProvidersView` fits."""

    def get(self, key: str) -> SharedValue | None:
        """Return what counts under a key."""
        ...

    def all(self) -> Sequence[SharedValue]:
        """Return all values, sorted by key."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell of changes."""
        ...


class StrangeValue(Protocol):
    """A value that this release cannot read."""

    @property
    def key(self) -> str:
        """Its key."""
        ...

    @property
    def version(self) -> int:
        """The hybrid time of the write."""
        ...


class WritableDefinitions(Protocol):
    """Port to the shared definitions, for writing; `smg_mesh.shared.ProvidersView` fits."""

    def get(self, key: str) -> SharedValue | None:
        """Return what counts under a key."""
        ...

    def unreadable(self) -> Sequence[StrangeValue]:
        """Return what this version cannot read."""
        ...

    def set(self, key: str, value: object, *, version: int | None) -> SharedValue:
        """Write a value; StateError otherwise."""
        ...

    def remove(self, key: str, *, version: int | None) -> None:
        """Take a value away; StateError otherwise."""
        ...


class DefinitionState(Protocol):
    """Port to the shared state that definitions are in."""

    @property
    def providers(self) -> DefinitionStore:
        """The definitions."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any member sealed; None if this node has not the key."""
        ...
