"""Tool calls: playbooks of what a server answers, and what is sent next; every course has an end."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from smg_node.mcp.failures import Failure, FailureKind, bare_status, lost
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN, Revision
from smg_node.mcp.session.session import Outcome, RequestIds, Session, Success
from smg_node.mcp.session.tool_call import (
    UNHEARD_MAX,
    Arguments,
    CallStep,
    Ended,
    Relist,
    Reopen,
    Send,
    ToolCall,
    declined,
    read_arguments,
)
from smg_node.mcp.tools.tool_result import CallResult

DONE = {"content": [{"type": "text", "text": "x"}]}
ELICITATION = {"method": "elicitation/create", "params": {"message": "sure?"}}


def session(revision: Revision = NEWEST_MODERN, session_id: str = "") -> Session:
    made = Session(revision, RequestIds("a.1"), by_http=True)
    made.session_id = session_id
    return made


def ok(**fields: Any) -> Success:
    return Success(Raw(json.dumps(fields).encode()))


def error(code: int, status: int = 0) -> Failure:
    return Failure(FailureKind.PROTOCOL, code, "no", status=status)


def call() -> ToolCall:
    return ToolCall("t", Arguments(Raw(b'{"a":1}'), {"a": 1}))


def sent(step: CallStep) -> Send:
    assert isinstance(step, Send), step
    return step


def ended(step: CallStep) -> CallResult | Failure:
    assert isinstance(step, Ended), step
    return step.outcome


def test_a_plain_call() -> None:
    machine = call()
    assert machine.first() == Send("tools/call", {"name": "t", "arguments": Raw(b'{"a":1}')})
    assert isinstance(ended(machine.heard(session(), ok(**DONE))), CallResult)


@pytest.mark.parametrize("failure", [bare_status(404), error(-32001, 404)])
def test_a_session_that_is_gone_is_opened_anew_once(failure: Failure) -> None:
    machine = call()
    old = session(NEWEST_HANDSHAKE, "s-1")
    assert machine.heard(old, failure) == Reopen(keep_verdict=True)
    assert machine.again() == machine.first()
    assert ended(machine.heard(old, failure)) == failure


def test_without_a_session_a_404_is_only_that() -> None:
    assert ended(call().heard(session(), bare_status(404))) == bare_status(404)


def test_headers_that_do_not_fit_are_listed_anew_once() -> None:
    machine = call()
    assert machine.heard(session(), error(-32020, 400)) == Relist()
    assert machine.again() == machine.first()
    assert ended(machine.heard(session(), error(-32020, 400))) == error(-32020, 400)
    old = session(NEWEST_HANDSHAKE)
    assert ended(call().heard(old, error(-32020, 400))) == error(-32020, 400)


def test_a_refused_revision_is_asked_for_anew_once() -> None:
    machine = call()
    assert machine.heard(session(), error(-32022, 400)) == Reopen(keep_verdict=False)
    assert ended(machine.heard(session(), error(-32022, 400))) == error(-32022, 400)


def test_a_server_that_cannot_be_opened_anew_ends_the_call() -> None:
    failure = lost("gone", sent=False)
    assert ended(call().again(failure)) == failure


@pytest.mark.parametrize("failure", [lost("broke", sent=True), bare_status(503), error(-32602)])
def test_other_failures_end_it(failure: Failure) -> None:
    assert ended(call().heard(session(), failure)) == failure


def test_what_a_person_is_asked_is_declined_with_the_state_as_it_was() -> None:
    machine = call()
    step = sent(
        machine.heard(
            session(),
            ok(resultType="input_required", inputRequests={"k": ELICITATION}, requestState="s"),
        )
    )
    assert step.params["inputResponses"] == {"k": {"action": "decline"}}
    assert step.params["requestState"] == "s"
    assert step.params["name"] == "t"
    again = sent(
        machine.heard(session(), ok(resultType="input_required", inputRequests={"k": ELICITATION}))
    )
    assert "requestState" not in again.params


def test_what_was_never_offered_ends_the_call() -> None:
    asked = {"k": {"method": "sampling/createMessage"}}
    step = call().heard(session(), ok(resultType="input_required", inputRequests=asked))
    failure = ended(step)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.REFUSED
    assert isinstance(declined({"k": 3}), Failure)


def test_an_answerer_may_answer_or_end_it() -> None:
    asked = ok(resultType="input_required", inputRequests={"k": ELICITATION})
    yes = ToolCall(
        "t", Arguments(Raw(b"{}"), {}), lambda keys: {key: {"action": "accept"} for key in keys}
    )
    assert sent(yes.heard(session(), asked)).params["inputResponses"] == {"k": {"action": "accept"}}
    failure = lost("no", sent=True)
    no = ToolCall("t", Arguments(Raw(b"{}"), {}), lambda keys: failure)
    assert ended(no.heard(session(), asked)) == failure


def test_rounds_wait_longer_and_have_an_end() -> None:
    machine = call()
    waits: list[float] = []
    step: CallStep = machine.first()
    while isinstance(step, Send):
        waits.append(step.after_s)
        step = machine.heard(session(), ok(resultType="input_required", requestState="s"))
    assert waits == [0.0, 0.05, 0.1, 0.2, *[0.25] * 7]
    failure = ended(step)
    assert isinstance(failure, Failure)
    assert "rounds" in failure.message


def test_a_task_is_asked_for_until_it_is_over() -> None:
    machine = call()
    step = sent(machine.heard(session(), ok(resultType="task", taskId="7", pollIntervalMs=1500)))
    assert step == Send("tasks/get", {"taskId": "7"}, 1.5, is_call=False)
    assert machine.task_id == "7"
    sent(machine.heard(session(), ok(taskId="7", status="working")))
    asked = ok(taskId="7", status="input_required", inputRequests={"k": ELICITATION})
    update = sent(machine.heard(session(), asked))
    assert update.method == "tasks/update"
    assert update.params == {"taskId": "7", "inputResponses": {"k": {"action": "decline"}}}
    assert sent(machine.updated(ok())).method == "tasks/get"
    assert sent(machine.heard(session(), asked)).method == "tasks/get", "it is answered already"
    assert isinstance(
        ended(machine.heard(session(), ok(taskId="7", status="completed", result=DONE))), CallResult
    )


def test_a_task_that_is_lost_ends_the_call() -> None:
    machine = call()
    machine.heard(session(), ok(resultType="task", taskId="7"))
    assert ended(machine.heard(session(NEWEST_HANDSHAKE, "s"), bare_status(404))) == bare_status(
        404
    )
    assert ended(machine.updated(bare_status(500))) == bare_status(500)


AWAY = [lost("broke", sent=True), lost("refused", sent=False), bare_status(503), bare_status(502)]


@pytest.mark.parametrize("failure", AWAY)
def test_a_task_is_asked_for_again_where_the_connection_broke(failure: Failure) -> None:
    machine = call()
    machine.heard(session(), ok(resultType="task", taskId="7"))
    pauses = []
    for _ in range(UNHEARD_MAX):
        step = sent(machine.heard(session(), failure))
        assert (step.method, step.params, step.is_call) == ("tasks/get", {"taskId": "7"}, False)
        pauses.append(step.after_s)
    assert pauses == sorted(pauses)
    assert 60 < sum(pauses) < 120
    ended_with = ended(machine.heard(session(), failure))
    assert isinstance(ended_with, Failure)
    assert ended_with.message.startswith(failure.message)


def test_a_task_that_is_heard_of_again_may_be_lost_as_often_as_before() -> None:
    machine = call()
    machine.heard(session(), ok(resultType="task", taskId="7"))
    for _ in range(3):
        for _ in range(UNHEARD_MAX):
            sent(machine.heard(session(), lost("broke", sent=True)))
        sent(machine.heard(session(), ok(taskId="7", status="working")))
    assert isinstance(
        ended(machine.heard(session(), ok(taskId="7", status="completed", result=DONE))), CallResult
    )


def test_a_server_that_says_when_to_come_again_is_not_asked_sooner() -> None:
    machine = call()
    machine.heard(session(), ok(resultType="task", taskId="7"))
    assert sent(machine.heard(session(), bare_status(429, 12.0))).after_s == 12.0
    assert sent(machine.heard(session(), bare_status(429, 86_400.0))).after_s == 20.0


@pytest.mark.parametrize("failure", [bare_status(401), bare_status(500), error(-32602, 400)])
def test_what_says_no_of_a_task_ends_the_call(failure: Failure) -> None:
    machine = call()
    machine.heard(session(), ok(resultType="task", taskId="7"))
    assert ended(machine.heard(session(), failure)) == failure


@pytest.mark.parametrize(
    ("text", "values"),
    [("", {}), ("  ", {}), ("{}", {}), ('{"a": 9007199254740993}', {"a": 9007199254740993})],
)
def test_arguments_are_kept_as_they_were_written(text: str, values: dict[str, Any]) -> None:
    read = read_arguments(text)
    assert isinstance(read, Arguments)
    assert read.values == values
    assert bytes(read.text) == (text.strip() or "{}").encode()


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", '"x"', "{", '{"a": NaN}', '{"a":"\\ud800"}', "\ud800"]
)
def test_what_is_no_object_is_not_sent(text: str) -> None:
    failure = read_arguments(text)
    assert isinstance(failure, Failure)
    assert (failure.code, failure.sent) == (-32602, False)


OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from(
    [
        ok(resultType="input_required", requestState="s"),
        ok(resultType="input_required", inputRequests={"k": ELICITATION}),
        ok(resultType="task", taskId="7"),
        ok(taskId="7", status="input_required", inputRequests={"k": ELICITATION}),
        error(-32020, 400),
        error(-32022, 400),
        bare_status(404),
        lost("broke", sent=True),
        ok(),
    ]
)


@given(st.lists(OUTCOMES, max_size=30))
def test_any_answers_lead_to_a_step(outcomes: list[Outcome]) -> None:
    machine = call()
    step: CallStep = machine.first()
    for outcome in outcomes:
        match step:
            case Ended():
                break
            case Send(method="tasks/update"):
                step = machine.updated(outcome)
            case Send():
                step = machine.heard(session(NEWEST_MODERN, "s"), outcome)
            case Reopen() | Relist():
                step = machine.again()
    assert isinstance(step, Send | Reopen | Relist | Ended)
