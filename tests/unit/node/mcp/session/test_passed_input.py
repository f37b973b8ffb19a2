"""Input that a server wants and the caller's own client gives: the call ends, and goes on with answers."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from smg_node.mcp.failures import HEADER_MISMATCH, Failure, FailureKind
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN
from smg_node.mcp.session.session import RequestIds, Session, Success
from smg_node.mcp.session.tool_call import (
    Arguments,
    CallStep,
    Ended,
    PassedInput,
    Relist,
    Send,
    ToolCall,
)
from smg_node.mcp.tools.tool_result import CallResult, InputRequired

QUESTION = {"sure": {"method": "elicitation/create", "params": {"message": "sure?"}}}
CAN = {"elicitation": {"form": dict[str, Any]()}}


def ok(**fields: Any) -> Success:
    return Success(Raw(json.dumps(fields).encode()))


def call(
    wanted: list[InputRequired],
    answers: dict[str, Any] | None = None,
    state: str | None = None,
) -> ToolCall:
    passed = PassedInput(wanted.append, CAN, answers, state)
    return ToolCall("t", Arguments(Raw(b"{}"), {}), passed=passed)


def sent(step: CallStep) -> Send:
    assert isinstance(step, Send), step
    return step


def test_a_call_ends_when_the_server_asks_and_its_caller_hears_what() -> None:
    wanted: list[InputRequired] = []
    machine = call(wanted)
    assert sent(machine.first()).params == {"name": "t", "arguments": Raw(b"{}")}
    asked = ok(resultType="input_required", inputRequests=QUESTION, requestState="s")
    step = machine.heard(Session(NEWEST_MODERN, RequestIds("a"), by_http=True), asked)
    assert isinstance(step, Ended)
    assert wanted == [InputRequired(QUESTION, "s")]


def test_a_call_goes_on_with_answers_and_state() -> None:
    wanted: list[InputRequired] = []
    machine = call(wanted, {"sure": {"action": "accept"}}, "s")
    params = sent(machine.first()).params
    assert params["inputResponses"] == {"sure": {"action": "accept"}}
    assert params["requestState"] == "s"
    session = Session(NEWEST_MODERN, RequestIds("a"), by_http=True)
    mismatch = Failure(FailureKind.PROTOCOL, HEADER_MISMATCH, "no", status=400)
    assert machine.heard(session, mismatch) == Relist()
    assert sent(machine.again()).params == params, "it was never worked on"
    step = machine.heard(session, ok(content=[]))
    assert step == Ended(CallResult())
    assert not wanted


def test_a_server_that_only_gives_a_state_is_asked_again_without_its_caller() -> None:
    wanted: list[InputRequired] = []
    machine = call(wanted, {"sure": {}}, "s1")
    session = Session(NEWEST_MODERN, RequestIds("a"), by_http=True)
    step = sent(machine.heard(session, ok(resultType="input_required", requestState="s2")))
    assert step.params["requestState"] == "s2"
    assert "inputResponses" not in step.params
    assert not wanted


def test_the_clients_capabilities_are_told_beside_ours_in_the_modern_era() -> None:
    def told(session: Session) -> Any:
        request = session.request("tools/call", {"name": "t"}, capabilities=CAN)
        return json.loads(request.body)["params"]["_meta"]

    name = "io.modelcontextprotocol/clientCapabilities"
    both = told(Session(NEWEST_MODERN, RequestIds("a"), by_http=True))[name]
    assert set(both) == {"elicitation", "extensions"}
    again = Session(NEWEST_MODERN, RequestIds("a"), by_http=True).request("tools/list", {})
    assert "elicitation" not in json.loads(again.body)["params"]["_meta"][name]
    assert name not in told(Session(NEWEST_HANDSHAKE, RequestIds("a"), by_http=True))


@given(
    st.lists(
        st.sampled_from(
            [
                ok(content=[]),
                ok(resultType="input_required", inputRequests=QUESTION),
                ok(resultType="input_required", requestState="s"),
                ok(resultType="task", taskId="1"),
                ok(taskId="1", status="input_required", inputRequests=QUESTION),
                ok(taskId="1", status="completed", result={"content": []}),
                Failure(FailureKind.PROTOCOL, HEADER_MISMATCH, "no", status=400),
            ]
        ),
        min_size=40,
        max_size=40,
    )
)
def test_every_course_has_an_end_and_its_caller_is_asked_once_at_most(
    answers: list[Success | Failure],
) -> None:
    wanted: list[InputRequired] = []
    machine = call(wanted)
    session = Session(NEWEST_MODERN, RequestIds("a"), by_http=True)
    step: CallStep = machine.first()
    for answer in answers:
        if isinstance(step, Ended):
            break
        if isinstance(step, Relist):
            step = machine.again()
        elif isinstance(step, Send) and step.method == "tasks/update":
            step = machine.updated(answer)
        else:
            step = machine.heard(session, answer)
    assert len(wanted) <= 1
    assert not wanted or isinstance(step, Ended)
