"""Eligibility filters of workers: ready, breaker closed, not stuck, not full, not overloaded. Pure.

The filters, in this order; only the last one is skipped where it would leave none:

    ready           registered, healthy, not draining
    not broken      its breaker lets calls through
    not stuck       it has sent something lately
    not full        fewer requests than it runs plus a short queue; all full: wait in the queue
    not overloaded  while another one is not
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smg_node.fleet.health.backpressure import NEVER
from smg_node.fleet.workers.worker import Worker

Allowed = Callable[[Worker], bool]
Refusing = Callable[[Worker], str]
"""Why a worker may not be chosen for a call; "" if it may."""


@dataclass(frozen=True, slots=True)
class EligibleWorkers:
    """Result of the filters. Empty and `busy`: there are workers, and all of them are full, by
    count or by report.

    `strained`: there are some, and all of them are overloaded. `broken` are those that only their
    breaker excludes. As long as no worker changes, the result holds until `until_s`.
    """

    candidates: Sequence[Worker]
    busy: bool
    strained: bool
    broken: Sequence[Worker]
    dropped: tuple[tuple[str, str], ...]
    until_s: float


def eligible(
    serving: Sequence[Worker], now_s: float, refusing: Refusing | None = None
) -> EligibleWorkers:
    """Return which of `serving` may be chosen at `now_s`; none that `refusing` has a reason against."""
    dropped: list[tuple[str, str]] = []
    free: list[Worker] = []
    broken: list[Worker] = []
    full = 0
    until_s = NEVER
    for worker in serving:
        load, breaker = worker.load, worker.breaker
        if not worker.routable:
            why = worker.shown_status.value
        elif refusing is not None and (refused := refusing(worker)):
            why = refused
        else:
            until_s = min(until_s, breaker.next_s(now_s))
            if not breaker.usable(now_s):
                why = breaker.why(now_s)
                if breaker.busy(now_s):
                    full += 1
                else:
                    broken.append(worker)
            elif load.stuck:
                why = "stuck"
            elif load.full:
                full += 1
                why = "full"
            else:
                free.append(worker)
                continue
        dropped.append((worker.id, why))
    calm = [worker for worker in free if not worker.load.overloaded]
    strained = bool(free) and not calm
    if calm and len(calm) < len(free):
        dropped += [(worker.id, "overloaded") for worker in free if worker.load.overloaded]
        free = calm
    return EligibleWorkers(free, bool(full) and not free, strained, broken, tuple(dropped), until_s)


def probe_of(sieved: EligibleWorkers, now_s: float) -> Worker | None:
    """Return the worker with an open breaker that a request without alternatives may probe, if
    there is one.

    Where all that are left are open, the one that opened first need not wait for its timeout.
    """
    if sieved.candidates or sieved.busy:
        return None
    by_age = sorted(sieved.broken, key=lambda worker: (worker.breaker.opened_s, worker.id))
    for worker in by_age:
        if worker.breaker.probe_free(now_s):
            return worker
    oldest = by_age[0] if by_age else None
    if oldest is not None and oldest.breaker.probe_free(now_s, alone=True):
        return oldest
    return None
