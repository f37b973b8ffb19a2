"""Definitions interface: the limit of a key, or none, as the escrow core sees it."""

from typing import Protocol

from smg_mesh.escrow.limit_model import Limit


class Limits(Protocol):
    """Limits as this node knows them now."""

    def get(self, key: str) -> Limit | None:
        """Return the limit of that key, made on demand for one of many; None if there is none."""
        ...

    def basis(self) -> bytes:
        """Return 8 bytes that are the same wherever the same is defined."""
        ...


class NoLimits:
    """Definitions without any limit."""

    def get(self, key: str) -> Limit | None:
        """Return nothing."""
        return None

    def basis(self) -> bytes:
        """Return zeros."""
        return bytes(8)
