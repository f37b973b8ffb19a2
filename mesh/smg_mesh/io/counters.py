"""Counters: how often things happened, with one label, and a limit on how many there can be."""

from collections.abc import Mapping
from typing import Final

COUNTERS_MAX: Final = 1024
"""Details come from peers too (the name of an accuser); beyond this many they are counted together."""


class Counters:
    """(name, detail) → value."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], int] = {}

    def add(self, name: str, detail: str = "", value: int = 1) -> None:
        """Add `value`; a new detail beyond the limit counts as `other`."""
        key = (name, detail)
        if key not in self._values and detail and len(self._values) >= COUNTERS_MAX:
            key = (name, "other")
        self._values[key] = self._values.get(key, 0) + value

    def get(self, name: str, detail: str = "") -> int:
        """Return the value, 0 if nothing was counted."""
        return self._values.get((name, detail), 0)

    def all(self) -> Mapping[tuple[str, str], int]:
        """Return a copy of everything."""
        return dict(self._values)
