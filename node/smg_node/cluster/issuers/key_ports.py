"""Key ports: the replicated keys of issuers and denials as this room uses them, and what a fetch gives."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from smg_mesh.shared import AccessDefinition, Denial, IssuerKeySet
from smg_node.access.tokens.issuer import Issuer


class IssuerError(Exception):
    """An issuer did not give what was asked for. The message is for operators: one line, nothing secret."""


@dataclass(frozen=True, slots=True)
class FetchedKeys:
    """A key set as it is shared, and for how long its issuer lets it be kept; -1 if it did not say."""

    document: bytes
    max_age_ms: int


Fetch: TypeAlias = Callable[[Issuer], Awaitable[FetchedKeys]]
"""Returns the keys that an issuer has now; IssuerError."""


class SharedKeySets(Protocol):
    """Port to the replicated key sets; `smg_mesh.shared.AccessState.keys` fits."""

    def get(self, alias: str, source: str) -> IssuerKeySet | None:
        """Return the set of an issuer that was fetched from that source."""
        ...

    def put(self, keys: IssuerKeySet) -> None:
        """Let all nodes know a set; ValueError, StateError."""
        ...

    def remove(self, alias: str) -> None:
        """Forget the keys of an issuer from all sources, on all nodes."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` the aliases whose set changed."""
        ...


class SharedDenials(Protocol):
    """Port to the replicated denials; `smg_mesh.shared.AccessState.denials` fits."""

    def get(self, alias: str, subject: str) -> Denial | None:
        """Return what is said of a subject."""
        ...

    def all(self) -> Sequence[Denial]:
        """Return all, sorted by issuer and subject."""
        ...

    def put(self, denial: Denial, *, wall_ms: int) -> None:
        """Refuse a subject's tokens everywhere; ValueError, StateError."""
        ...

    def remove(self, alias: str, subject: str) -> Denial:
        """Refuse them no longer; LookupError."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` the aliases of which a denial changed."""
        ...


class SharedDefinitions(Protocol):
    """Port to the replicated definitions of issuers or roles; those of `smg_mesh.shared.AccessState` fit."""

    def get(self, alias: str) -> AccessDefinition | None:
        """Return what counts under a name."""
        ...

    def all(self) -> Sequence[AccessDefinition]:
        """Return all, sorted by name."""
        ...

    def set(self, alias: str, value: object, *, version: int | None) -> AccessDefinition:
        """Define it on all nodes; StateError."""
        ...

    def remove(self, alias: str, *, version: int | None) -> None:
        """Take a definition away; StateError."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` the names whose definition changed."""
        ...


class AccessHoldings(Protocol):
    """Port to all of them; `smg_mesh.shared.AccessState` fits."""

    @property
    def definitions(self) -> SharedDefinitions:
        """The definitions of issuers."""
        ...

    @property
    def roles(self) -> SharedDefinitions:
        """The definitions of roles."""
        ...

    @property
    def keys(self) -> SharedKeySets:
        """The key sets."""
        ...

    @property
    def denials(self) -> SharedDenials:
        """The denials."""
        ...


def source_of(issuer: Issuer) -> str:
    """Return what tells the keys of an issuer from those of another one of its alias: nodes' settings may differ."""
    return f"{issuer.issuer} {issuer.keys_url}".strip()
