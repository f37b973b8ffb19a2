"""Cold work limit: bounds the uncached requests one node sends to a worker between two reports of
its engine. Pure.

A worker that is idle, or has just come, looks best to every node at once. Until its engine speaks again, and
what the other nodes sent is known, one node sends it at most its fair share of cold requests twice over, and
four in any case.
"""

from typing import Final

from smg_node.routing.pool import Candidate

AT_LEAST: Final = 4
SHARES: Final = 2.0
WINDOW_S: Final = 2.0
"""A worker that says nothing is believed to have coped with what it got that long ago."""
_WORKERS_MAX: Final = 8_192
"""Twice as many as there can be; what is remembered of those that are gone is dropped then."""


class _Since:
    """Requests that one worker was sent since its window began, and the number all were sent before
    it.
    """

    __slots__ = ("count", "sampled_s", "total", "until_s")

    def __init__(self, total: int, sampled_s: float, began_s: float) -> None:
        self.total = total
        self.count = 0
        self.sampled_s = sampled_s
        self.until_s = began_s + WINDOW_S


class Burst:
    """Per-worker counts of cold requests of one policy."""

    def __init__(self) -> None:
        self._total = 0
        self._sent: dict[str, _Since] = {}

    def takes(self, one: Candidate, candidates: int, now_s: float) -> bool:
        """Whether that worker, one of so many, may be sent one more."""
        since = self._sent.get(one.worker)
        if since is None or since.count < AT_LEAST or _over(since, one, now_s):
            return True
        return since.count < SHARES * (self._total - since.total) / candidates

    def send(self, one: Candidate, candidates: int, now_s: float) -> bool:
        """Note that the worker is sent one, if it may be; return whether it may. Both of the others in one look."""
        since = self._sent.get(one.worker)
        if since is None or _over(since, one, now_s):
            self.sent(one, now_s)
            return True
        count = since.count
        if count >= AT_LEAST and count >= SHARES * (self._total - since.total) / candidates:
            return False
        since.count = count + 1
        self._total += 1
        return True

    def sent(self, one: Candidate, now_s: float) -> None:
        """Note that the worker was sent one."""
        since = self._sent.get(one.worker)
        if since is None or now_s >= since.until_s or since.sampled_s != one.sampled_s:
            if len(self._sent) >= _WORKERS_MAX:
                self._sent.clear()
            since = self._sent[one.worker] = _Since(self._total, one.sampled_s, now_s)
        since.count += 1
        self._total += 1


def _over(since: _Since, one: Candidate, now_s: float) -> bool:
    return now_s >= since.until_s or since.sampled_s != one.sampled_s
