"""Seed finder: the interface of what shows addresses of peers that no name leads to, such as the pods of a label."""

from collections.abc import Sequence
from typing import Protocol

from smg_mesh.swim.messages import Address


class FindError(Exception):
    """Nothing was found, and why, in words for operators."""


class SeedFinder(Protocol):
    """Place to look for peers. It is asked like a name: again in every round, and never twice at a time."""

    @property
    def text(self) -> str:
        """What operators know it by, unlike every other seed."""
        ...

    async def find(self) -> Sequence[Address]:
        """Return where peers may be, at least one address, this node's own among them or not; FindError says why not."""
        ...

    async def close(self) -> None:
        """Close what is open; it may be asked again afterwards."""
        ...
