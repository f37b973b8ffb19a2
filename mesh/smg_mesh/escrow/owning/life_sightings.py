"""Life sightings: since when an owner sees each life, to know which of them began in a window or just before it.

Such a life has less of what stands than is usual, and only it knows how much.
"""

from collections.abc import Collection, Sequence

from smg_mesh.escrow.limit_model import Life


class Sightings:
    """Since when each life is seen (wall clock)."""

    def __init__(self) -> None:
        self._alive: Sequence[Life] = ()
        self._since_ms: dict[Life, int] = {}
        self._latest_ms = 0

    def see(self, alive: Sequence[Life], wall_ms: int) -> None:
        """Learn which members live."""
        if alive is self._alive:
            return
        self._alive = alive
        self._since_ms = {life: self._since_ms.get(life, wall_ms) for life in alive}
        self._latest_ms = max(self._since_ms.values(), default=0)

    def after(self, from_ms: int) -> Collection[Life]:
        """Return those that live and were seen first after that moment."""
        if self._latest_ms <= from_ms:
            return ()
        return [life for life, since_ms in self._since_ms.items() if since_ms > from_ms]
