"""Blocks of runs: what each kind of tool and each kind of failure looks like to a client of Messages."""

import json
from types import MappingProxyType
from typing import Any

import pytest

from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    FinishReason,
    Listed,
    RunEnd,
    RunStart,
    Usage,
)
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, RunError, RunResult, Source
from smg_node.dialects.dialect import Unknown
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.tool_runs.block_names import SEALED_RESULTS
from smg_node.dialects.options import ReaderOptions
from support.answers.messages_answers import body as whole
from support.answers.messages_answers import frames, streamed
from support.answers.run_blocks import GO, SEALS, SERVERS, Somebody, use
from support.clients import messages_judge as judge

DIALECT = MessagesDialect(ReaderOptions(tool_servers=True), SEALS, lambda: 0.0)
FIND = ToolOwner("docs", "find")
OWN = RunError("mcp_tool_execution_error", content=({"type": "text", "text": "no"},))


def presenter_for(wish: dict[str, Any], caller: Unknown) -> MessagesPresenter:
    found = DIALECT.presenter(DIALECT.read(wish, caller), caller)
    assert isinstance(found, MessagesPresenter)
    return found


def presenter(messages: list[Any] | None = None, **more: Any) -> MessagesPresenter:
    rows = [{"role": role, "content": content} for role, content in messages or [GO]]
    wish = {"model": "m", "max_tokens": 64, "messages": rows, **SERVERS, **more}
    return presenter_for(wish, Somebody())


def ran(
    owner: ToolOwner, result: RunResult, *, call_id: str = "call_0", said: str = '{"q":"a"}'
) -> list[Event]:
    return [
        BlockStart(0, 0, "call", owner.tool, call_id, owner=owner),
        Delta(0, 0, said, 3),
        BlockEnd(0, 0, "call", said, owner.tool, call_id, owner=owner),
        RunStart(0, 0),
        RunEnd(0, 0, result, spoken=True),
    ]


def answer(*events: Event, reason: FinishReason = "stop") -> list[Event]:
    begin = Begin("0123456789abcdef" * 2, "m", 5, 30)
    return [begin, *events, Finish(0, reason), Usage(30, 9, 20, 2), End()]


def message(events: list[Event], **more: Any) -> dict[str, Any]:
    """Return the message, which is the same to the official client streamed and whole."""
    raw = streamed(presenter(**more), events)
    told = judge.read_beta_stream(raw)
    read = judge.read_beta_whole(whole(presenter(**more), events))
    assert told["content"] == read["content"]
    assert told["stop_reason"] == read["stop_reason"]
    assert told["usage"].get("server_tool_use") == read["usage"].get("server_tool_use")
    return read


def content(owner: ToolOwner, result: RunResult, **more: Any) -> list[dict[str, Any]]:
    return list(message(answer(*ran(owner, result)), **more)["content"])


def test_a_run_of_a_servers_tool_is_its_call_and_its_result() -> None:
    call, result = content(FIND, RunResult("found"))
    assert call.pop("id").startswith("mcptoolu_")
    assert call == {
        "type": "mcp_tool_use",
        "name": "find",
        "server_name": "docs",
        "input": {"q": "a"},
    }
    assert result.pop("tool_use_id").startswith("mcptoolu_")
    assert result == {
        "type": "mcp_tool_result",
        "is_error": False,
        "content": [{"type": "text", "text": "found"}],
    }


def test_the_frames_of_a_run_are_a_call_in_deltas_and_a_whole_result() -> None:
    shown = frames(streamed(presenter(), answer(*ran(FIND, RunResult("found")))))
    assert [each["type"] for each in shown] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert shown[1]["content_block"]["input"] == {}
    assert "".join(each["delta"]["partial_json"] for each in shown[2:4]) == '{"q":"a"}'
    assert shown[5]["content_block"]["content"] == [{"type": "text", "text": "found"}]


def test_a_call_is_told_whole_when_its_run_starts() -> None:
    begin, *started, end = answer(*ran(FIND, RunResult("found")))[:6]
    one = presenter()
    shown = frames(one.frames([begin, *started]))
    assert [each["type"] for each in shown[-2:]] == ["content_block_delta", "content_block_stop"]
    pieces = [each["delta"]["partial_json"] for each in shown if "delta" in each]
    assert "".join(pieces) == '{"q":"a"}'
    (result, _) = frames(one.frames([end]))
    assert result["content_block"]["type"] == "mcp_tool_result"


@pytest.mark.parametrize(
    "result",
    [
        RunResult("no", OWN),
        RunResult("tool failed: x", RunError("mcp_protocol_error", -32603, "x")),
        RunResult("tool failed: gone", RunError("http_error", 502, "gone")),
        RunResult("half", cut=True),
    ],
)
def test_a_failed_run_is_an_error_with_its_text(result: RunResult) -> None:
    shown = content(FIND, result)[1]
    assert shown["is_error"] is True
    assert shown["content"] == [{"type": "text", "text": result.text}]


def test_a_result_without_text_has_no_content() -> None:
    assert content(FIND, RunResult(""))[1]["content"] == []


def test_a_search_shows_what_it_found_and_carries_what_the_model_saw() -> None:
    sources = (Source("https://a.test", "A", "…", age="2 days"), Source("https://b.test", "B"))
    events = answer(*ran(ToolOwner("web", "s", "web_search"), RunResult("[1] A", sources=sources)))
    told = message(events)
    call, result = told["content"]
    assert call["type"] == "server_tool_use"
    assert call["name"] == "web_search"
    assert call["id"].startswith("srvtoolu_")
    first, second = result["content"]
    sealed = first.pop("encrypted_content")
    assert first == {
        "type": "web_search_result",
        "url": "https://a.test",
        "title": "A",
        "page_age": "2 days",
    }
    assert (second["url"], second["page_age"]) == ("https://b.test", None)
    assert SEALS.opened(sealed, tenant="t", model=SEALED_RESULTS) == "[1] A"
    assert told["usage"]["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 0}


def test_a_search_that_failed_is_no_use() -> None:
    told = message(answer(*ran(ToolOwner("web", "s", "web_search"), RunResult("x", OWN))))
    assert "server_tool_use" not in told["usage"] or told["usage"]["server_tool_use"] is None


@pytest.mark.parametrize(
    ("shape", "error", "code"),
    [
        ("web_search", RunError("http_error", 429, "slow"), "too_many_requests"),
        ("web_search", RunError("mcp_protocol_error", -32602, "bad"), "invalid_tool_input"),
        (
            "web_search",
            RunError("mcp_protocol_error", -32001, "max_uses is 1"),
            "max_uses_exceeded",
        ),
        ("web_search", OWN, "unavailable"),
        ("web_fetch", OWN, "url_not_accessible"),
        ("web_fetch", RunError("http_error", 504, "late"), "url_not_accessible"),
        ("web_fetch", RunError("http_error", 502, "gone"), "unavailable"),
        ("code_interpreter", RunError("http_error", 504, "late"), "execution_time_exceeded"),
        ("code_interpreter", RunError("http_error", 502, "gone"), "unavailable"),
        ("tool_search", RunError("http_error", 504, "late"), "execution_time_exceeded"),
        ("tool_search", RunError("mcp_protocol_error", -32602, "bad"), "invalid_tool_input"),
    ],
)
def test_each_failure_of_a_server_tool_has_the_word_that_its_clients_know(
    shape: Any, error: RunError, code: str
) -> None:
    shown = content(ToolOwner("s", "t", shape), RunResult("x", error))[1]
    assert shown["content"]["error_code"] == code
    assert shown["content"]["type"].endswith("_tool_result_error")


def test_code_shows_what_it_printed_and_how_it_ended() -> None:
    owner = ToolOwner("box", "run", "code_interpreter")
    call, result = content(owner, RunResult("1\n"))
    assert call["name"] == "code_execution"
    assert result == {
        "type": "code_execution_tool_result",
        "tool_use_id": call["id"],
        "content": {
            "type": "code_execution_result",
            "stdout": "1\n",
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
    }
    failed = content(owner, RunResult("NameError", OWN))[1]["content"]
    assert (failed["stdout"], failed["stderr"], failed["return_code"]) == ("", "NameError", 1)


def test_a_page_is_a_document() -> None:
    owner = ToolOwner("web", "get", "web_fetch")
    result = RunResult("Page", action={"url": "https://a.test"})
    told = message(answer(*ran(owner, result)))
    shown = told["content"][1]["content"]
    assert shown["url"] == "https://a.test"
    assert shown["content"]["source"]["data"] == "Page"
    assert told["usage"]["server_tool_use"] == {"web_search_requests": 0, "web_fetch_requests": 1}


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("tool_search_tool_regex_20251119", "tool_search_tool_regex"),
        ("tool_search_tool_bm25", "tool_search_tool_bm25"),
    ],
)
def test_a_search_for_tools_has_the_name_that_the_request_gave_it(spelled: str, name: str) -> None:
    tools = [SERVERS["tools"][0], {"type": spelled, "name": name}]
    found = RunResult("…", found=(ListedTool("docs__find"),))
    call, result = content(ToolOwner("", "search", "tool_search"), found, tools=tools)
    assert call["name"] == name
    assert result["content"] == {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "docs__find"}],
    }


def test_a_tool_that_messages_has_no_block_for_is_one_of_its_server() -> None:
    call, result = content(ToolOwner("kb", "look", "file_search"), RunResult("found"))
    assert (call["type"], call["server_name"], call["name"]) == ("mcp_tool_use", "kb", "look")
    assert result["type"] == "mcp_tool_result"


def test_a_text_that_cites_what_a_search_found_says_so() -> None:
    sources = (Source("https://a.test", "A", "a" * 200),)
    search = ran(ToolOwner("web", "s", "web_search"), RunResult("[1] A", sources=sources))
    annotations: tuple[dict[str, Any], ...] = (
        {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 3},
        {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 9},
        {"type": "url_citation", "url": "https://b.test", "title": "B"},
        {"type": "file_citation", "file_id": "f"},
    )
    told = message(
        answer(
            *search,
            BlockStart(0, 1, "text", round=2),
            Delta(0, 1, "So [1] \n", 1),
            BlockEnd(0, 1, "text", "So [1] \n", annotations=annotations, round=2),
        )
    )
    location = {"type": "web_search_result_location", "encrypted_index": ""}
    assert told["content"][2]["citations"] == [
        {**location, "url": "https://a.test", "title": "A", "cited_text": "a" * 150},
        {**location, "url": "https://b.test", "title": "B", "cited_text": ""},
    ]


# ── Listings ─────────────────────────────────────────────────────────────────

LISTED = Listed("docs", (ListedTool("find", "F", {"type": "object"}), ListedTool("read")))


def test_a_server_that_was_asked_is_listed_first() -> None:
    told = message(answer(LISTED, Listed("web", (ListedTool("x"),)), *ran(FIND, RunResult("r"))))
    assert told["content"][0] == {
        "type": "mcp_tool_listing",
        "mcp_server_name": "docs",
        "tools": [
            {"name": "find", "description": "F", "input_schema": {"type": "object"}},
            {"name": "read", "description": None, "input_schema": {}},
        ],
    }
    assert [block["type"] for block in told["content"]] == [
        "mcp_tool_listing",
        "mcp_tool_use",
        "mcp_tool_result",
    ]


def test_a_pinned_listing_is_not_told_again() -> None:
    pinned = [{"type": "mcp_toolset", "mcp_server_name": "docs", "tools": []}]
    assert message(answer(LISTED), tools=pinned)["content"] == [{"type": "text", "text": ""}]


def test_older_clients_are_told_no_listing() -> None:
    class Older(Unknown):
        headers = MappingProxyType({"anthropic-beta": "mcp-client-2025-11-20"})

    wish = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "x"}]}
    one = presenter_for({**wish, **SERVERS}, Older())
    assert b"mcp_tool_listing" not in streamed(one, answer(LISTED))


# ── How answers end and go on ────────────────────────────────────────────────


def test_an_answer_that_had_its_rounds_pauses() -> None:
    assert (
        message(answer(*ran(FIND, RunResult("r")), reason="pause"))["stop_reason"] == "pause_turn"
    )


def test_the_result_of_a_call_that_the_client_has_comes_alone() -> None:
    messages = [GO, ("assistant", [use("mcptoolu_9")])]
    events = answer(*ran(FIND, RunResult("late"), call_id="mcptoolu_9"))
    (shown,) = message(events, messages=messages)["content"]
    assert shown == {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_9",
        "is_error": False,
        "content": [{"type": "text", "text": "late"}],
    }


def test_arguments_that_are_no_json_are_told_as_they_are() -> None:
    events = answer(*ran(FIND, RunResult("r"), said="not json"))
    assert json.loads(whole(presenter(), events))["content"][0]["input"] == {
        "INVALID_JSON": "not json"
    }


def test_an_answer_of_no_tokens_shows_nothing() -> None:
    events = answer(LISTED, *ran(FIND, RunResult("r")))
    assert json.loads(whole(presenter(max_tokens=0), events))["content"] == []
    raw = streamed(presenter(max_tokens=0), events)
    assert b"content_block_start" not in raw
