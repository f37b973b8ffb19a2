"""Run record: every order of what may happen to one run."""

import itertools
from typing import Any, get_args

import pytest

from smg_node.mcp.catalog.hints import Hints
from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.failures import Failure, FailureKind, bare_status, lost, refused, timed_out
from smg_node.mcp.run_record import (
    MAY_HAVE_RUN,
    MAY_HAVE_RUN_TWICE,
    RunRecord,
    may_repeat,
    recovery,
)
from smg_node.mcp.server_spec import Replay, ServerSpec
from smg_node.mcp.tools.tool_result import CallResult

OUTCOMES: list[CallResult | Failure] = [
    CallResult(),
    CallResult(is_error=True),
    lost("reset", sent=True),
    lost("no route", sent=False),
    timed_out("too slow"),
    timed_out("too slow", sent=False),
    bare_status(503),
    refused("no"),
]


def spec(replay: Replay) -> ServerSpec:
    return ServerSpec(ServerDefinition("s", url="http://s.test"), replay=replay)


@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_every_order_ends_after_two_calls_at_most_and_nothing_is_hidden(
    repeats: bool, told: bool
) -> None:
    for first, second in itertools.product(OUTCOMES, OUTCOMES):
        record = RunRecord("r/c", repeats=repeats)
        happened: list[CallResult | Failure] = []
        ended: CallResult | Failure | None = None
        for outcome in (first, second):
            if told:
                record.sending()
                assert record.state == "sent"
            happened.append(outcome)
            ended = record.heard(outcome)
            if ended is not None:
                break
        assert ended is not None, "there is no third call"
        assert record.state == "done"
        may_have = [one for one in happened if isinstance(one, Failure) and one.sent]
        lost_ones = [one for one in may_have if one.kind in (FailureKind.LOST, FailureKind.TIMEOUT)]
        if isinstance(ended, Failure) and ended.kind in (FailureKind.LOST, FailureKind.TIMEOUT):
            assert (MAY_HAVE_RUN in ended.message or MAY_HAVE_RUN_TWICE in ended.message) == bool(
                lost_ones
            )
        if isinstance(ended, Failure) and lost_ones:
            assert "may have run" in ended.message
            assert ended.row.lead != "not run"
        if len(happened) == 2 and not repeats:
            assert isinstance(first, Failure)
            assert not first.sent, "what may have run is not sent again"


def test_what_was_never_sent_is_called_once_more() -> None:
    record = RunRecord("k", repeats=False)
    assert record.heard(lost("no route", sent=False)) is None
    assert record.state == "meant"
    ended = record.heard(lost("no route", sent=False))
    assert isinstance(ended, Failure)
    assert ended.message == "no route"


def test_what_may_have_run_is_not_sent_again_and_says_so() -> None:
    record = RunRecord("k", repeats=False)
    record.sending()
    ended = record.heard(lost("reset", sent=True))
    assert isinstance(ended, Failure)
    assert ended.message == f"reset; {MAY_HAVE_RUN}"


def test_a_tool_that_may_repeat_is_sent_twice_at_most() -> None:
    record = RunRecord("k", repeats=True)
    record.sending()
    assert record.heard(lost("reset", sent=True)) is None
    record.sending()
    ended = record.heard(lost("reset", sent=True))
    assert isinstance(ended, Failure)
    assert MAY_HAVE_RUN_TWICE in ended.message


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (refused("it was taken away"), f"reset; {MAY_HAVE_RUN}: it was taken away"),
        (lost("no route", sent=False), f"no route; {MAY_HAVE_RUN}"),
        (Failure(FailureKind.HTTP, 503, "status 503"), f"status 503; {MAY_HAVE_RUN_TWICE}"),
    ],
)
def test_what_may_have_run_is_said_whatever_its_repetition_comes_to(
    second: Failure, said: str
) -> None:
    record = RunRecord("k", repeats=True)
    record.sending()
    assert record.heard(lost("reset", sent=True)) is None
    ended = record.heard(second)
    assert isinstance(ended, Failure)
    assert ended.message == said


def test_a_time_that_ran_out_is_no_reason_to_send_again() -> None:
    record = RunRecord("k", repeats=True)
    ended = record.heard(timed_out("60 s without progress"))
    assert isinstance(ended, Failure)
    assert MAY_HAVE_RUN in ended.message


@pytest.mark.parametrize(
    ("replay", "hints", "repeats"),
    [
        ("never", Hints(True, True), False),
        ("hinted", Hints(), False),
        ("hinted", Hints(read_only=True), True),
        ("hinted", Hints(idempotent=True), True),
        ("always", Hints(), True),
    ],
)
def test_the_operator_says_what_may_be_sent_again(replay: Any, hints: Hints, repeats: bool) -> None:
    assert replay in get_args(Replay)
    assert may_repeat(spec(replay), hints) is repeats


def test_whoever_finds_a_record_knows_what_to_do() -> None:
    assert [recovery(state, repeats=True) for state in ("meant", "sent", "done")] == [
        "run",
        "repeat",
        "show",
    ]
    assert recovery("sent", repeats=False) == "give_up"
    assert recovery("sent", repeats=True, sends=2) == "give_up"
