"""TLS material: what one end of a stream shows and trusts."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Material:
    """PEM: the chain of certificates shown, its private key, the authorities trusted."""

    certificate: bytes
    key: bytes = field(repr=False)
    authorities: bytes


class MaterialSource(Protocol):
    """Source of the material."""

    def read(self) -> Material:
        """Return what is in force now: the same object as long as nothing has changed."""
        ...
