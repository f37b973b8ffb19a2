"""State write: one acknowledged write of replicated state, and the cell it is about. Pure."""

from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = tuple[str, str]
"""A namespace or table, and a key in it."""


@dataclass(frozen=True, slots=True)
class Write:
    """One acknowledged write; `value` is None for a removal."""

    cell: Cell
    owner: str
    hlc: int
    seen: int
    value: bytes | None
    at_us: int
    boot: int = 0

    @property
    def order(self) -> tuple[int, str]:
        """What decides between two writes of one cell."""
        return (self.hlc, self.owner)
