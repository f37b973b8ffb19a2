"""Excuses: intervals in which a node, engine or store is faulty; errors there do not count."""

from typing import Final

STORE: Final = "the store"
CROWD: Final = "the crowd"


def disk_of(node: str) -> str:
    """Return the name that a node's disk has in the intervals.

    What waits there is unknown while the node is faulty.
    """
    return f"the disk of {node}"


class Excuses:
    """Times, in seconds on one clock, in which something could not be what it should."""

    def __init__(self) -> None:
        self._times: dict[str, list[tuple[float, float | None]]] = {}

    def begin(self, who: str, now_s: float) -> None:
        """Note that `who` is faulty from now on; it must not be faulty already."""
        times = self._times.setdefault(who, [])
        assert not times or times[-1][1] is not None
        times.append((now_s, None))

    def end(self, who: str, now_s: float) -> None:
        """Note that `who` works again."""
        from_s, until_s = self._times[who][-1]
        assert until_s is None
        self._times[who][-1] = from_s, now_s

    def cover(self, who: str, from_s: float, until_s: float) -> bool:
        """Return whether `who` was faulty at any moment of a closed interval."""
        return any(
            began_s <= until_s and (ended_s is None or ended_s >= from_s)
            for began_s, ended_s in self._times.get(who, ())
        )
