"""Who was hurt when: what a client saw go wrong is excused only if it was busy with somebody who was hurt meanwhile."""

from typing import Final

STORE: Final = "the store"
CROWD: Final = "the crowd"


def disk_of(node: str) -> str:
    """Return as whom a node's disk is noted: while the node is hurt nobody can know what waits there."""
    return f"the disk of {node}"


class Excuses:
    """Times, in seconds on one clock, in which something could not be what it should."""

    def __init__(self) -> None:
        self._times: dict[str, list[tuple[float, float | None]]] = {}

    def begin(self, who: str, now_s: float) -> None:
        """Note that somebody is hurt from now on; it must not be hurt already."""
        times = self._times.setdefault(who, [])
        assert not times or times[-1][1] is not None
        times.append((now_s, None))

    def end(self, who: str, now_s: float) -> None:
        """Note that it is well again."""
        from_s, until_s = self._times[who][-1]
        assert until_s is None
        self._times[who][-1] = from_s, now_s

    def cover(self, who: str, from_s: float, until_s: float) -> bool:
        """Return whether it was hurt at any moment from one time until another, both included."""
        return any(
            began_s <= until_s and (ended_s is None or ended_s >= from_s)
            for began_s, ended_s in self._times.get(who, ())
        )
