"""Open calls of all this node's processes per worker, summed so that they balance as one. Pure.

Every process reports all it has open; the node publishes the sum to other nodes, and each process
receives what all others have, in this node and elsewhere.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

Load: TypeAlias = tuple[int, int]
"""Requests, and their prompt tokens that are not processed yet."""
_NOTHING: Final[Load] = (0, 0)


class OpenCalls:
    """The sums of one node; a process is known by its name."""

    def __init__(self) -> None:
        self._of: dict[str, Mapping[str, Load]] = {}
        self._sums: dict[str, Load] = {}

    @property
    def total(self) -> Mapping[str, Load]:
        """Sum over all processes, by worker."""
        return self._sums

    def set(self, process: str, loads: Mapping[str, Load]) -> list[str]:
        """Take what a process has open now; return the workers for which that changed anything,
        sorted.
        """
        before = self._of.get(process, {})
        changed = sorted(
            worker
            for worker in {*before, *loads}
            if before.get(worker, _NOTHING) != loads.get(worker, _NOTHING)
        )
        for worker in changed:
            had, has = before.get(worker, _NOTHING), loads.get(worker, _NOTHING)
            requests, tokens = self._sums.get(worker, _NOTHING)
            self._note(worker, (requests - had[0] + has[0], tokens - had[1] + has[1]))
        if loads:
            self._of[process] = dict(loads)
        else:
            self._of.pop(process, None)
        return changed

    def others(self, process: str, worker: str) -> Load:
        """Return what all processes but this one have open at a worker."""
        requests, tokens = self._sums.get(worker, _NOTHING)
        own = self._of.get(process, {}).get(worker, _NOTHING)
        return (requests - own[0], tokens - own[1])

    def _note(self, worker: str, load: Load) -> None:
        assert load[0] >= 0, "nothing is taken away that was not there"
        if any(load):
            self._sums[worker] = load
        else:
            self._sums.pop(worker, None)
