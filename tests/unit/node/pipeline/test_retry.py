"""What is done about a call that broke, by what it was and what came before."""

import random

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.transport.grpc_status import (
    CLOSED_CODE,
    DEADLINE_CODE,
    FIRST_EVENT_CODE,
    UNREACHABLE_CODE,
)
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.pipeline.retry import Again, Attempts, Broken, GiveUp
from smg_node.routing.retry_budget import RetryBudget, RetryOptions

RNG = random.Random(1)


def failed(
    code: str | None = None, kind: ErrorKind = ErrorKind.UPSTREAM_FAILED, status: int | None = None
) -> SmgError:
    return SmgError(kind, "it broke", code=code, status=status)


def attempts(**options: float) -> Attempts:
    return Attempts(RetryOptions(**options), RetryBudget())  # type: ignore[arg-type]  # its own fields


def judged(
    of: Attempts,
    error: SmgError | None = None,
    *,
    worker: str = "a",
    said: bool = False,
    alone: bool = False,
    took_s: float = 9.0,
    left_s: float = 60.0,
) -> Again | GiveUp:
    broken = Broken(worker, error or failed(), said, alone, took_s)
    return of.judge(broken, now_s=100.0, left_s=left_s, rng=RNG)


@pytest.mark.parametrize(
    "error",
    [
        failed(kind=ErrorKind.INVALID_REQUEST),
        failed(kind=ErrorKind.NOT_FOUND),
        failed(kind=ErrorKind.TOO_LARGE),
        failed(kind=ErrorKind.INTERNAL),
        failed(status=501),
        failed(DEADLINE_CODE, ErrorKind.UPSTREAM_TIMEOUT),
    ],
)
@pytest.mark.parametrize("said", [True, False])
def test_what_is_not_the_workers_fault_is_never_tried_again(error: SmgError, said: bool) -> None:
    it = attempts()
    assert judged(it, error, said=said) == GiveUp("")
    assert (it.made, it.tries, it.avoid) == (1, 1, attempts().avoid)


def test_three_calls_are_made_before_a_word_each_after_a_longer_pause() -> None:
    it = attempts(first_s=1.0, most_s=100.0)
    pauses = []
    for _ in range(2):
        then = judged(it)
        assert isinstance(then, Again)
        pauses.append(then.pause_s)
    assert 0 <= pauses[0] <= 1 < 2
    assert 0 <= pauses[1] <= 2
    assert judged(it) == GiveUp("3 attempts failed")
    assert it.made == 3


def test_only_calls_that_stayed_silent_leave_less_patience_and_a_word_gives_it_back() -> None:
    it = attempts(attempts=9)
    silence = failed(FIRST_EVENT_CODE, ErrorKind.UPSTREAM_TIMEOUT)
    seen = []
    for error in (failed(UNREACHABLE_CODE), silence, failed(), silence):
        assert isinstance(judged(it, error), Again)
        seen.append(it.silences)
    assert seen == [0, 1, 1, 2]
    assert it.fork().silences == 2
    assert judged(it, silence, said=True) == Again(0.0)
    assert it.silences == 0


def test_pressure_is_tried_again_elsewhere() -> None:
    it = attempts()
    assert isinstance(judged(it, failed(kind=ErrorKind.OVERLOADED)), Again)
    assert it.avoid.failed == {"a"}
    assert not it.avoid.gone


@pytest.mark.parametrize("code", [CLOSED_CODE, UNREACHABLE_CODE, "upstream_stalled"])
def test_a_worker_that_is_gone_is_waited_for_and_costs_no_budget(code: str) -> None:
    it = attempts()
    it.budget = RetryBudget(share=0, floor_per_s=0)
    assert isinstance(judged(it, failed(code)), Again)
    assert it.avoid.gone == {"a"}
    assert not it.avoid.failed


def test_where_the_budget_is_used_up_an_error_goes_to_the_client_at_once() -> None:
    it = attempts()
    it.budget = RetryBudget(share=0, floor_per_s=0.1, window_s=10)
    assert isinstance(judged(it), Again)
    assert judged(it) == GiveUp("too many calls are being tried again just now")


def test_an_answer_that_has_begun_goes_on_at_once_and_is_not_asked_for_its_budget() -> None:
    it = attempts()
    it.budget = RetryBudget(share=0, floor_per_s=0)
    assert judged(it, said=True) == Again(0.0)
    # The call that goes on may be tried three times like a first one.
    assert isinstance(judged(it), Again)
    assert isinstance(judged(it), Again)
    assert judged(it) == GiveUp("3 attempts failed")


def test_it_goes_on_twice_and_no_more() -> None:
    it = attempts()
    assert judged(it, said=True) == Again(0.0)
    assert isinstance(judged(it), Again)
    assert judged(it, said=True) == Again(0.0)
    assert judged(it, said=True) == GiveUp("it has gone on elsewhere 2 times already")
    assert judged(attempts(continuations=0), said=True) == GiveUp(
        "it has gone on elsewhere 0 times already"
    )


def test_a_pause_that_is_longer_than_the_time_left_is_not_begun() -> None:
    it = attempts(first_s=50.0, most_s=50.0)
    assert judged(it, left_s=0.001) == GiveUp("the request's time is up")


def test_a_request_that_two_engines_died_of_at_once_gets_no_third() -> None:
    it = attempts()
    dead = failed(UNREACHABLE_CODE)
    assert isinstance(judged(it, dead, alone=True, took_s=0.2), Again)
    last = judged(it, dead, worker="b", alone=True, took_s=0.9)
    assert last == GiveUp("2 engines were gone within a second of being given it")


@pytest.mark.parametrize(
    ("alone", "took_s", "worker", "error"),
    [
        (False, 0.2, "b", failed(UNREACHABLE_CODE)),
        (True, 1.1, "b", failed(UNREACHABLE_CODE)),
        (True, 0.2, "a", failed(UNREACHABLE_CODE)),
        (True, 0.2, "b", failed()),
    ],
    ids=["had others", "later", "the same one", "did not die"],
)
def test_other_deaths_say_nothing_of_the_request(
    alone: bool, took_s: float, worker: str, error: SmgError
) -> None:
    it = attempts()
    dead = failed(UNREACHABLE_CODE)
    assert isinstance(judged(it, dead, alone=True, took_s=0.2), Again)
    assert isinstance(judged(it, error, worker=worker, alone=alone, took_s=took_s), Again)


def test_an_engine_that_was_never_reached_did_not_die_of_it() -> None:
    it = attempts(attempts=9)
    for worker in "abc":
        error = failed(UNREACHABLE_CODE)
        error.__cause__ = TransportError(
            StatusCode.UNAVAILABLE, "failed to connect to all addresses; Connection refused"
        )
        assert isinstance(judged(it, error, worker=worker, alone=True, took_s=0.0), Again)


def test_legs_that_part_have_the_same_past_and_each_its_own_future() -> None:
    it = attempts()
    judged(it, said=True)
    one, other = it.fork(), it.fork()
    assert judged(one, said=True, worker="b") == Again(0.0)
    assert isinstance(judged(one, said=True), GiveUp)
    assert judged(other, said=True) == Again(0.0)
    assert one.avoid.failed == {"a", "b"}
    assert other.avoid.failed == {"a"}
    assert (it.continuations, it.made) == (1, 2)
