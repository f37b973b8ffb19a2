"""Run report: the outcome of a relayed request, told to journal, metrics and usage when it is over."""

from typing import Final, NamedTuple

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.outcome import Bill, Outcome, OutcomeKind
from smg_node.core.journey import Broke, Journey
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.relay.relay_context import Asks, OwnCall, RelayParts

_CLIENTS: Final = frozenset({ErrorKind.INVALID_REQUEST, ErrorKind.TOO_LARGE})
"""Kinds of what a worker says of the request and not of itself: no other one is asked."""


class RunEnd(NamedTuple):
    """How a run ended. `used` are tokens of the prompt, of its cached part, and of the answer."""

    asks: Asks
    context: RequestContext
    model: str
    worker: str
    failure: SmgError | None
    over: bool
    used: tuple[int, int, int]
    first_s: float | None
    attempts: int
    bills: tuple[Bill, ...] = ()
    split: str = ""
    own: OwnCall | None = None
    """The call of own engines that ended it, if one did."""


def report(parts: RelayParts, journey: Journey, end: RunEnd) -> None:
    """Tell all who want to know."""
    kind, code, status = _verdict(end)
    context, own = end.context, end.own
    prompt_tokens, cached_tokens, completion_tokens = end.used
    outcome = Outcome(
        dialect=end.asks.dialect,
        model=end.model,
        worker=end.worker,
        kind=kind,
        error_code=code,
        status=status,
        streamed=end.asks.streamed,
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        completion_tokens=completion_tokens,
        tenant=context.tenant,
        key_id=context.key_id,
        received_s=context.received_s,
        first_token_s=end.first_s if own is None else own.first_s,
        ended_s=parts.clock.monotonic_s(),
        attempts=end.attempts,
        bills=end.bills,
        split=end.split,
        continuations=0 if own is None else own.continuations,
        oddities={} if own is None else own.oddities,
    )
    parts.journal.end(journey, outcome, parts.clock.now_ms())
    if context.outcomes is None:
        parts.on_outcome(outcome)
    else:
        context.outcomes.append(outcome)


def is_clients(error: SmgError) -> bool:
    """Whether an error says something of the request, or of its client, and nothing of who was asked.

    What a provider's own limit refuses is no such error: another target may have more.
    """
    if isinstance(error, LimitedError):
        return not error.provider
    return error.kind in _CLIENTS


def note_broken(
    journey: Journey, worker: str, error: SmgError, why: str | None, now_ms: int
) -> None:
    """Note in a journey that a call broke, and why it was given up; None where it is tried again."""
    then = "tried again" if why is None else f"given up: {why}" if why else "given up"
    broke = Broke(
        at_ms=now_ms, choice=0, worker=worker, code=error.code, message=error.message, then=then
    )
    journey.add(broke)


def _verdict(end: RunEnd) -> tuple[OutcomeKind, str, int]:
    if end.failure is not None:
        kind: OutcomeKind = "refused" if end.failure.status < 500 else "failed"
        return kind, end.failure.code, end.failure.status
    if end.over:
        return "ok", "", 200
    return "client_gone", "client_gone", 499
