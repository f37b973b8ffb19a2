"""Retry of engine calls that broke: call again, continue the answer elsewhere, or give up. Pure.

    no token yet             again, on another worker, up to `attempts` calls in all; it costs the
                             model's budget, unless the worker is gone
    some tokens came         continue on another worker, `continuations` times at most; the budget is
                             not asked, because the client has half an answer and no other way
                             to the rest
    the client's own fault   never

A worker that stayed silent to the time limit shortens the limit of the next one: all of it the
first time, half of it after one silence, a third after two. A worker that broke at once costs none
of it.

A continuing call that breaks before its first token is retried like a first one. So an answer takes
at most `attempts` x (1 + `continuations`) calls.

Some requests kill the engine that runs them. A worker that is gone within a second of being given its only
request may have died of it: when another one does the same, no third is tried.
"""

from typing import Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.ports import Rng
from smg_node.engines.transport.grpc_status import (
    CLOSED_CODE,
    FIRST_EVENT_CODE,
    UNREACHABLE_CODE,
    Verdict,
    verdict,
)
from smg_node.engines.transport.transport import TransportError
from smg_node.routing.retry_budget import RetryBudget, RetryOptions, backoff_s

DEADLY_WITHIN_S: Final = 1.0
DEATHS_MAX: Final = 2
STALLED_CODE: Final = "upstream_stalled"
_GONE: Final = frozenset({UNREACHABLE_CODE, CLOSED_CODE, STALLED_CODE})
"""Codes of a worker that is not there, or as good as: calling it again at once is useless."""


class Broken(msgspec.Struct, frozen=True):
    """An engine call that ended with an error. `said` is whether any token came of it.

    `alone`: its worker had no other call of this node. `took_s` is its duration in seconds.
    """

    worker: str
    error: SmgError
    said: bool
    alone: bool
    took_s: float


class Again(msgspec.Struct, frozen=True):
    """Decision to call another worker, `pause_s` from now."""

    pause_s: float


class GiveUp(msgspec.Struct, frozen=True):
    """Decision not to retry; the reason is "" where the error speaks for itself."""

    reason: str = ""


class Avoid(msgspec.Struct, frozen=True):
    """Workers that failed a leg. Of `failed` ones one may be chosen again where no other can be.

    Those of `gone` are waited for, and called again only when the wait is over.
    """

    failed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.failed or self.gone)


NOBODY: Final = Avoid()


class Attempts(msgspec.Struct):
    """Calls of one leg, and of those that continue it. The call in progress is number `tries`."""

    options: RetryOptions
    budget: RetryBudget
    tries: int = 1
    continuations: int = 0
    died: frozenset[str] = frozenset()
    """Workers that may have died of it."""
    avoid: Avoid = NOBODY
    made: int = 1
    """Calls in all."""
    silences: int = 0
    """Calls of `tries` that ended because nothing had come within the limit."""

    def judge(self, broken: Broken, *, now_s: float, left_s: float, rng: Rng) -> Again | GiveUp:
        """Return the decision on the call in progress, which broke; `left_s` is until the deadline."""
        error = broken.error
        ours, gone = error.code == CLOSED_CODE, error.code in _GONE
        if verdict(error) is Verdict.NEITHER and not ours:
            return GiveUp()
        self._remember(broken)
        if len(self.died) >= DEATHS_MAX:
            return GiveUp(f"{len(self.died)} engines were gone within a second of being given it")
        if error.code == FIRST_EVENT_CODE:
            self.silences += 1
        if broken.said:
            if self.continuations >= self.options.continuations:
                return GiveUp(f"it has gone on elsewhere {self.continuations} times already")
            self.continuations += 1
            self.tries = self.silences = 0
        if self.tries >= self.options.attempts:
            return GiveUp(f"{self.tries} attempts failed")
        # Whoever is not there is no more loaded by a call that goes elsewhere: the budget is against storms.
        if not (self.continuations or gone or self.budget.take(now_s)):
            return GiveUp("too many calls are being tried again just now")
        pause_s = 0.0 if ours or not self.tries else self._backoff_s(rng)
        if pause_s >= left_s:
            return GiveUp("the request's time is up")
        self.tries += 1
        self.made += 1
        return Again(pause_s)

    def fork(self) -> "Attempts":
        """Return a copy of the history, for one of several legs that continue from here."""
        return Attempts(
            self.options,
            self.budget,
            self.tries,
            self.continuations,
            self.died,
            self.avoid,
            self.made,
            self.silences,
        )

    def _backoff_s(self, rng: Rng) -> float:
        options = self.options
        return backoff_s(self.tries, rng, first_s=options.first_s, most_s=options.most_s)

    def _remember(self, broken: Broken) -> None:
        error, avoid, worker = broken.error, self.avoid, frozenset((broken.worker,))
        if error.code in _GONE:
            self.avoid = Avoid(avoid.failed, avoid.gone | worker)
        else:
            self.avoid = Avoid(avoid.failed | worker, avoid.gone)
        if broken.alone and broken.took_s <= DEADLY_WITHIN_S and _died(error):
            self.died |= worker


def _died(error: SmgError) -> bool:
    """Whether the engine was there when the call reached it, and is gone now."""
    if error.code != UNREACHABLE_CODE:
        return False
    cause = error.__cause__
    return not (isinstance(cause, TransportError) and "failed to connect" in cause.message.lower())
