"""Sessions: ids, meta fields and headers of requests by era; what each message of a server is to us."""

import json
from typing import Any

import pytest

from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN, Revision
from smg_node.mcp.session.session import (
    Answered,
    Notification,
    Progressed,
    RequestIds,
    Session,
    Success,
    ToolsChanged,
)
from smg_node.mcp.wire.messages import Message, read_messages

TRACE = {"traceparent": "00-1-2-01"}


def session(revision: Revision = NEWEST_HANDSHAKE, *, by_http: bool = True) -> Session:
    return Session(revision, RequestIds("a.1"), by_http=by_http)


def message(**fields: Any) -> Message:
    return read_messages(json.dumps(fields).encode())[0]


def test_no_id_is_used_twice_in_any_session_of_a_node() -> None:
    ids = RequestIds("a.1")
    sessions = [Session(NEWEST_HANDSHAKE, ids, by_http=True) for _ in range(3)]
    used = [one.request("tools/list", {}).id for _ in range(3) for one in sessions]
    assert used == [f"a.1.{number}" for number in range(1, 10)]


def test_a_modern_request_says_all_that_a_server_must_know() -> None:
    request = session(NEWEST_MODERN).request("tools/call", {"name": "t"}, trace=TRACE)
    meta = json.loads(request.body)["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "smg-node"
    capabilities = meta["io.modelcontextprotocol/clientCapabilities"]
    assert capabilities == {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert meta["progressToken"] == request.id
    assert meta["traceparent"] == request.headers["traceparent"] == "00-1-2-01"
    assert request.headers["mcp-method"] == "tools/call"


def test_a_handshake_request_has_the_session_in_its_headers() -> None:
    opened = session()
    opened.session_id = "s-1"
    request = opened.request("tools/list", {})
    assert request.headers["mcp-session-id"] == "s-1"
    assert request.headers["mcp-protocol-version"] == "2025-11-25"
    assert json.loads(request.body)["params"] == {"_meta": {"progressToken": request.id}}
    assert opened.stream_headers() == {
        "mcp-session-id": "s-1",
        "mcp-protocol-version": "2025-11-25",
    }


def test_initialize_offers_a_revision_and_nothing_else() -> None:
    request = session().initialize()
    assert json.loads(request.body)["params"] == {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": json.loads(request.body)["params"]["clientInfo"],
    }
    assert "mcp-protocol-version" not in request.headers


def test_a_method_of_the_other_era_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="server/discover"):
        session().request("server/discover", {})


def test_an_answer_ends_its_request_once() -> None:
    opened = session()
    id_ = opened.request("tools/list", {}).id
    heard = opened.heard(message(id=id_, result={"tools": []}))
    assert isinstance(heard, Answered)
    assert isinstance(heard.outcome, Success)
    assert opened.heard(message(id=id_, result={})) is None
    assert opened.heard(message(id="other", result={})) is None
    assert list(opened.open_requests) == []


def test_an_error_without_an_id_is_of_the_request_that_it_answers() -> None:
    opened = session()
    id_ = opened.request("tools/list", {}).id
    error = message(id=None, error={"code": -32600, "message": "no session"})
    assert opened.heard(error) is None
    heard = opened.heard(error, status=404, asked=id_)
    assert heard == Answered(id_, Failure(FailureKind.PROTOCOL, -32600, "no session", status=404))


def test_progress_counts_for_open_requests_only() -> None:
    opened = session()
    id_ = opened.request("tools/call", {"name": "t"}).id
    note = {"method": "notifications/progress", "params": {"progressToken": id_, "progress": 1}}
    assert opened.heard(message(**note)) == Progressed(id_, done=1.0)
    opened.close_request(id_)
    assert opened.heard(message(**note)) is None
    others: tuple[Any, ...] = ({}, {"progressToken": 3}, [], "x")
    for params in others:
        assert opened.heard(message(method="notifications/progress", params=params)) is None


def test_a_servers_own_requests_are_answered() -> None:
    opened = session()
    opened.session_id = "s-1"
    pong = opened.heard(message(id=7, method="ping"))
    assert isinstance(pong, Notification)
    assert json.loads(pong.body) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert pong.headers["mcp-session-id"] == "s-1"
    refusal = opened.heard(message(id="q", method="sampling/createMessage", params={}))
    assert isinstance(refusal, Notification)
    assert json.loads(refusal.body)["error"]["code"] == -32601


def test_other_notifications_are_nothing_to_us() -> None:
    opened = session()
    assert opened.heard(message(method="notifications/tools/list_changed")) == ToolsChanged()
    assert opened.heard(message(method="notifications/message", params={"level": "info"})) is None


@pytest.mark.parametrize(
    ("revision", "by_http", "told"),
    [
        (NEWEST_HANDSHAKE, True, True),
        (NEWEST_HANDSHAKE, False, True),
        (NEWEST_MODERN, False, True),
        (NEWEST_MODERN, True, False),
    ],
)
def test_who_is_told_of_a_cancelled_call(revision: Revision, by_http: bool, told: bool) -> None:
    opened = session(revision, by_http=by_http)
    id_ = opened.request("tools/call", {"name": "t"}).id
    notification = opened.cancel(id_, "late")
    assert (notification is not None) is told
    if notification is not None:
        params = json.loads(notification.body)["params"]
        assert params == {"requestId": id_, "reason": "late"}
    assert opened.cancel(id_, "late") is None
    assert opened.heard(message(id=id_, result={})) is None


def test_what_opens_a_session_is_never_cancelled() -> None:
    opened = session()
    assert opened.cancel(opened.initialize().id, "late") is None
    modern = session(NEWEST_MODERN, by_http=False)
    assert modern.cancel(modern.request("server/discover", {}).id, "late") is None
