"""Journeys and outcomes for tests, small ones and the largest there can be."""

from smg_node.core.generation.outcome import Outcome
from smg_node.core.journey import RATED_MAX, STEPS_MAX, Broke, Chosen, Journey, Rated
from smg_node.pipeline.observability.journey_log import Journal, ended_as

BEGAN_MS = 1_754_000_000_000


def outcome(kind: str = "ok", **changes: object) -> Outcome:
    given: dict[str, object] = {
        "dialect": "chat",
        "model": "m",
        "worker": "w-1",
        "kind": kind,
        "error_code": "",
        "status": 200,
        "streamed": True,
        "prompt_tokens": 4600,
        "cached_tokens": 4096,
        "completion_tokens": 96,
        "received_s": 10.0,
        "first_token_s": 10.118,
        "ended_s": 12.41,
        **changes,
    }
    return Outcome(**given)  # type: ignore[arg-type]  # a test's own words


def chosen(worker: str = "w-1", at_ms: int = 4, **changes: object) -> Chosen:
    given: dict[str, object] = {
        "choice": 0,
        "why": "first",
        "policy": "cache_aware",
        "of": 2,
        "rated": [Rated("w-1", 0.081, 0.018, 4096.0), Rated("w-2", 0.575, 0.0, 0.0)],
        "dropped": (("w-3", "breaker open"),),
        "prompt_tokens": 4600,
        **changes,
    }
    return Chosen(BEGAN_MS + at_ms, worker=worker, **given)  # type: ignore[arg-type]  # as above


def broke(worker: str = "w-1", at_ms: int = 1210, **changes: object) -> Broke:
    given: dict[str, object] = {
        "choice": 0,
        "code": "engine_unreachable",
        "message": "the connection was lost",
        "emitted": 41,
        "then": "continued elsewhere",
        **changes,
    }
    return Broke(BEGAN_MS + at_ms, worker=worker, **given)  # type: ignore[arg-type]  # as above


def crowded(worker: str, at_ms: int = 4) -> Chosen:
    """A decision among as many candidates as are kept, with as many that were none."""
    rated = [
        Rated(f"w-{number:012x}", 0.1 + number / 7, 0.01 * number, 64.0 * number)
        for number in range(RATED_MAX)
    ]
    dropped = tuple((f"w-{number:012x}", "breaker open") for number in range(RATED_MAX))
    return chosen(worker, at_ms, of=64, rated=rated, dropped=dropped)


def vast(request_id: str) -> Journey:
    """A journey with as many steps as are kept, all of them crowded, and engines that say much."""
    journey = Journey(request_id, "a", "chat", "m" * 500, began_ms=BEGAN_MS)
    for number in range(STEPS_MAX // 2):
        journey.add(crowded(f"w-{number}", number))
        journey.add(broke(f"w-{number}", number, message="é" * 5000, then="again " * 100))
    for _ in range(5):
        journey.add(broke())
    return journey


def told(journal: Journal, request_id: str, began_ms: int = BEGAN_MS, answer: str = "") -> Journey:
    """Let a request begin, be placed twice and end; return its journey as it is told then."""
    journey = journal.begin(request_id, "chat", "m", began_ms)
    journey.answer = answer
    journey.add(chosen())
    journey.add(broke())
    journey.add(chosen("w-2", 1214, why="continue", of=1, prompt_tokens=4641))
    journal.end(journey, outcome(), began_ms + 2410)
    return ended_as(journey, outcome(), began_ms + 2410)
