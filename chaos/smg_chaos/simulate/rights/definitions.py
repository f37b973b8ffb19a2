"""Definitions of limits: their versions, which life goes by which, and the amounts in force.

A version counts from when it is made until no living node goes by it any more. In a window that
such a time touches, its amount may be used: a node goes by another one from its next window on.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from smg_chaos.simulate.rights.limit_versions import Versions
from smg_mesh.escrow.limit_model import Limit

_FOREVER_US: Final = 1 << 60


class Heard:
    """The limits that one life of a node goes by."""

    def __init__(self, limits: Iterable[Limit]) -> None:
        self.limits = {limit.key: limit for limit in limits}
        self._basis = b""

    def get(self, key: str) -> Limit | None:
        """Return the limit of that key."""
        return self.limits.get(key)

    def basis(self) -> bytes:
        """Return 8 bytes over all of them."""
        if not self._basis:
            said = "\n".join(repr(self.limits[key]) for key in sorted(self.limits))
            self._basis = blake2b(said.encode(), digest_size=8).digest()
        return self._basis

    def hear(self, limit: Limit) -> bool:
        """Go by a newer version; return whether it is one."""
        known = self.limits.get(limit.key)
        if known is not None and known.version >= limit.version:
            return False
        self.limits[limit.key] = limit
        self._basis = b""
        return True


@dataclass(slots=True)
class Ruling:
    """One version of a limit, and the times at which living nodes went by it."""

    limit: Limit
    from_us: int
    until_us: int = _FOREVER_US


class Definitions:
    """All versions of all limits of a world."""

    def __init__(self, limits: Iterable[Limit]) -> None:
        self.rulings = {limit.key: [Ruling(limit, 0)] for limit in limits}
        self._versions = {key: Versions(rulings[0].limit) for key, rulings in self.rulings.items()}

    def newest(self, key: str) -> Limit:
        """Return the last version that was made."""
        return self.rulings[key][-1].limit

    def write(self, key: str, amount: int, standing: float | None, *, wall_ms: int) -> Limit:
        """Return the next version of a limit, as the node that writes it at that time makes it."""
        return self._versions[key].write(amount, standing, wall_ms=wall_ms)

    def add(self, limit: Limit, now_us: int) -> None:
        """Take note of a new version."""
        self.rulings[limit.key].append(Ruling(limit, now_us))

    def held(self, now_us: int, goes_by: Callable[[Limit], bool]) -> None:
        """Take note of which versions are in use now.

        `goes_by` says whether any life goes by one.
        """
        for rulings in self.rulings.values():
            for ruling in rulings:
                if ruling is rulings[-1] or goes_by(ruling.limit):
                    ruling.until_us = _FOREVER_US
                elif ruling.until_us == _FOREVER_US:
                    ruling.until_us = now_us

    def in_force(self, key: str, begins_us: int, ends_us: int) -> list[Limit]:
        """Return the versions that may count in a window between these moments."""
        return [
            ruling.limit
            for ruling in self.rulings[key]
            if ruling.from_us < ends_us and ruling.until_us > begins_us
        ]
