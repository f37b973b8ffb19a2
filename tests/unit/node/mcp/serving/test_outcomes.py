from typing import Any

import msgspec
import pytest

from smg_node.mcp.failures import (
    Failure,
    FailureKind,
    bare_status,
    lost,
    refused,
    timed_out,
    too_large,
    unreadable,
)
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN
from smg_node.mcp.serving.incoming import Incoming
from smg_node.mcp.serving.outcomes import input_required, reply_of
from smg_node.mcp.serving.replies import Refusal, Result, batch_body, frame, progress_frame
from smg_node.mcp.tools.tool_result import CallResult, InputRequired

OLD = Incoming(b'"a"', "tools/call", {}, NEWEST_HANDSHAKE)
NEW = Incoming(b"7", "tools/call", {}, NEWEST_MODERN)


def told(reply: Result | Refusal) -> Any:
    return msgspec.json.decode(reply.body)


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (bare_status(503), "tool failed: the server answered 503 Service Unavailable"),
        (timed_out("no answer"), "tool failed: no answer"),
        (lost("it broke", sent=True), "tool failed: it broke"),
        (refused("too many calls"), "not run: too many calls"),
        (unreadable("no result"), "tool failed: no result"),
        (too_large(5), "tool failed: the answer is larger than 5 bytes (mcp.answer_bytes_max)"),
    ],
)
def test_what_went_wrong_on_the_way_is_a_text_for_the_model(failure: Failure, text: str) -> None:
    for request in (OLD, NEW):
        reply = reply_of(request, failure)
        assert reply.status == 200
        result = told(reply)["result"]
        assert result.pop("resultType", None) == ("complete" if request is NEW else None)
        assert result == {"content": [{"type": "text", "text": text}], "isError": True}


@pytest.mark.parametrize(
    ("code", "said", "old", "new"),
    [
        (-32602, -32602, 200, 400),
        (-32021, -32021, 200, 400),
        (-32603, -32603, 200, 200),
        (-32042, -32042, 200, 200),
        (401, 401, 200, 200),
        (-32020, -32603, 200, 200),
        (-32022, -32603, 200, 200),
        (-32601, -32603, 200, 200),
    ],
)
def test_an_error_of_the_server_stays_one_unless_it_is_about_our_conversation(
    code: int, said: int, old: int, new: int
) -> None:
    failure = Failure(FailureKind.PROTOCOL, code, "no", error_data=b'{"a":1}')
    for request, status in ((OLD, old), (NEW, new)):
        reply = reply_of(request, failure)
        assert reply.status == status
        error = told(reply)["error"]
        assert error["code"] == said
        assert error.get("data") == ({"a": 1} if code == said else None)


def test_a_result_is_given_as_it_came() -> None:
    result = CallResult(({"type": "text", "text": "x"},), b'{"n": 9007199254740993}', True)
    assert told(reply_of(OLD, result))["result"] == {
        "content": [{"type": "text", "text": "x"}],
        "structuredContent": {"n": 9007199254740993},
        "isError": True,
    }


def test_what_is_structured_is_an_object_before_the_modern_era() -> None:
    result = CallResult((), b"[1]")
    assert "structuredContent" not in told(reply_of(OLD, result))["result"]
    assert told(reply_of(NEW, result))["result"]["structuredContent"] == [1]


def test_what_is_asked_back_has_a_state_only_where_there_is_one() -> None:
    reply = told(input_required(NEW, InputRequired({"k": {}}, None)))
    assert reply["result"] == {"resultType": "input_required", "inputRequests": {"k": {}}}
    reply = told(input_required(NEW, InputRequired({}, "s")))
    assert reply["result"] == {"resultType": "input_required", "requestState": "s"}


def test_events_and_batches() -> None:
    assert frame(b"{}") == b"event: message\ndata: {}\n\n"
    event = progress_frame("t", 1.0, None, "a\nb").split(b"data: ")[1]
    assert event.endswith(b"\n\n")
    assert msgspec.json.decode(event)["params"] == {
        "progressToken": "t",
        "progress": 1.0,
        "message": "a\nb",
    }
    batch = batch_body([Result(b"1", {}), Refusal(-32600, "no")])
    assert [one["id"] for one in msgspec.json.decode(batch)] == [1, None]
