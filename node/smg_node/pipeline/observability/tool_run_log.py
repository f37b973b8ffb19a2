"""Tool run log: bounded record of what became of the calls of models, for the journeys of their requests.

It is there from the first run on. No argument and no output is recorded.
"""

from collections import OrderedDict
from typing import Final

from smg_node.core.journey import Ran

REQUESTS_MAX: Final = 1_000
"""About 150 bytes for each of their runs."""
RUNS_MAX: Final = 64
"""Runs kept of one request; what comes after that is not told."""


class ToolRunLog:
    """The runs of the latest requests that had some."""

    def __init__(self, *, requests_max: int = REQUESTS_MAX) -> None:
        self._requests_max = requests_max
        self._kept: OrderedDict[str, list[Ran]] = OrderedDict()

    def add(self, request_id: str, ran: Ran) -> None:
        """Keep a run; the oldest request goes where there are too many."""
        runs = self._kept.get(request_id)
        if runs is None:
            runs = self._kept[request_id] = []
            if len(self._kept) > self._requests_max:
                self._kept.popitem(last=False)
        if len(runs) < RUNS_MAX:
            runs.append(ran)

    def of(self, request_id: str) -> tuple[Ran, ...]:
        """Return the runs of a request, in the order in which they ended."""
        return tuple(self._kept.get(request_id, ()))
