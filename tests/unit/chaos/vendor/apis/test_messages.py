"""Messages of stand-ins: events as they really come, and what is refused."""

import json
from typing import Any

import pytest

from support.providers.stand_ins import Desk, sse

PATH = "/v1/messages"
MODEL = "claude-haiku-4-5"
TOOLS: Any = [{"name": "clock", "input_schema": {"type": "object"}}]
THINKS: Any = {"type": "enabled", "budget_tokens": 1_024}
USE: Any = {"type": "tool_use", "id": "t1", "name": "clock", "input": {}}
RESULT: Any = {"type": "tool_result", "tool_use_id": "t1", "content": "noon"}
Q: Any = {"role": "user", "content": "q"}


def asked(text: Any = "hello", **fields: Any) -> Any:
    turns = [{"role": "user", "content": text}]
    return {"model": MODEL, "max_tokens": 2_000, "messages": turns, **fields}


def says(*blocks: Any) -> Any:
    return {"role": "assistant", "content": list(blocks)}


def gives(*blocks: Any) -> Any:
    return {"role": "user", "content": list(blocks)}


def events(text: str, kind: str = "anthropic", path: str = PATH, **fields: Any) -> list[Any]:
    return sse(Desk(kind).streamed(path, asked(text, stream=True, **fields)))


def test_a_ping_comes_in_an_open_block_before_its_first_delta() -> None:
    types = [event["type"] for event in events("words=2")]
    assert types == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_a_tool_block_begins_with_an_empty_delta_and_may_be_all_in_one() -> None:
    deltas = [
        event["delta"]["partial_json"]
        for event in events("call clock", tools=TOOLS)
        if event["type"] == "content_block_delta"
    ]
    assert deltas == ["", "{}"]


def test_a_thought_is_signed_by_a_delta_and_a_redacted_one_has_none() -> None:
    thought = [
        event["delta"]["type"]
        for event in events("hello", thinking=THINKS)
        if event["type"] == "content_block_delta" and event["index"] == 0
    ]
    assert thought == [*["thinking_delta"] * 4, "signature_delta"]
    redacted = events("redact", thinking=THINKS)
    assert redacted[1]["content_block"]["type"] == "redacted_thinking"
    assert not [event for event in redacted if event.get("index") == 0 and "delta" in event]


def test_the_usage_of_the_start_is_early_and_that_of_the_end_may_be_sparse() -> None:
    early, sparse = set(), set()
    for number in range(30):
        told = events(f"question {number}")
        early.add(told[0]["message"]["usage"]["output_tokens"])
        sparse.add(tuple(told[-2]["usage"]))
        assert told[-2]["usage"]["output_tokens"] == 5
    assert len(early) > 10
    assert all(1 <= tokens <= 88 for tokens in early)
    assert ("output_tokens",) in sparse
    assert len(sparse) == 2


@pytest.mark.parametrize(
    ("text", "fields", "reason"),
    [
        ("hello", {}, "end_turn"),
        ("words=50", {"max_tokens": 7}, "max_tokens"),
        ("call clock", {"tools": TOOLS}, "tool_use"),
        ("hello", {"stop_sequences": ["said"]}, "stop_sequence"),
        ("refuse", {}, "refusal"),
    ],
)
def test_each_ending_has_its_reason(text: str, fields: Any, reason: str) -> None:
    whole = Desk("anthropic").told(PATH, asked(text, **fields))
    assert whole["stop_reason"] == reason
    assert whole["stop_sequence"] == ("said" if reason == "stop_sequence" else None)
    assert ("stop_details" in whole) == (reason == "refusal")
    assert events(text, **fields)[-2]["delta"]["stop_reason"] == reason


def test_an_invocation_tells_its_cost_in_headers_or_in_its_last_event() -> None:
    desk, path = Desk("bedrock_invoke"), "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0"
    body = {key: value for key, value in asked().items() if key != "model"}
    body["anthropic_version"] = "x"
    reply = desk.ask(f"{path}/invoke", body)
    heads = {key: value for key, value in reply.headers.items() if "token-count" in key}
    assert heads == {
        "x-amzn-bedrock-input-token-count": "11",
        "x-amzn-bedrock-output-token-count": "4",
    }
    stream = desk.streamed(f"{path}/invoke-with-response-stream", body)
    assert stream.count(b'"bytes"') == len(events("hello"))


REFUSED: list[tuple[Any, str]] = [
    ({"max_tokens": None}, "max_tokens: Field required"),
    ({"max_tokens": 0}, "greater than or equal to 1"),
    ({"max_tokens": 64_001}, "64001 > 64000"),
    ({"messages": []}, "at least one message is required"),
    ({"messages": [says({"type": "text", "text": "a"})]}, 'first message must use the "user" role'),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages.0.role"),
    ({"messages": [gives()]}, "all messages must have non-empty content"),
    ({"messages": [{"role": "user", "content": ""}]}, "must be non-empty"),
    ({"messages": [{"role": "user", "content": "  "}]}, "must contain non-whitespace text"),
    ({"messages": [Q, says({"type": "text", "text": "a "})]}, "cannot end with trailing whitespace"),
    ({"messages": [Q, gives(RESULT)]}, "unexpected `tool_use_id`"),
    ({"messages": [Q, says(USE), Q]}, "without `tool_result` blocks immediately after: t1"),
    ({"messages": [Q, says(USE)]}, "without `tool_result` blocks immediately after: t1"),
    ({"messages": [Q, says(USE), gives({"type": "text", "text": "a"}, RESULT)]}, "immediately after: t1"),
    ({"messages": [Q, says({"type": "thinking", "thinking": "x", "signature": "AAAA"})]}, "Invalid `signature`"),
    ({"messages": [Q, says({"type": "thinking", "thinking": "x"})]}, "signature: Field required"),
    ({"messages": [Q, says({"type": "redacted_thinking", "data": "AAAA"})]}, "Invalid `data`"),
    ({"messages": [Q, says({**USE, "input": "{}"})]}, "input: Input should be a valid dictionary"),
    ({"frequency_penalty": 1}, "frequency_penalty: Extra inputs are not permitted"),
    ({"anthropic_version": "x"}, "anthropic_version: Extra inputs are not permitted"),
    ({"temperature": 1.5}, "temperature: must be between 0 and 1"),
    ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "greater than or equal to 1024"),
    ({"thinking": {"type": "enabled", "budget_tokens": 2_000}}, "must be greater than `thinking.budget_tokens`"),
    ({"thinking": THINKS, "temperature": 0.5}, "may only be set to 1"),
    ({"thinking": THINKS, "tools": TOOLS, "tool_choice": {"type": "any"}}, "forces tool use"),
    ({"tool_choice": {"type": "any"}}, "only be specified while providing tools"),
    ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "x"}}, "Tool 'x' not found"),
    ({"tools": [*TOOLS, *TOOLS]}, "Tool names must be unique"),
    ({"tools": [{"name": "x"}]}, "input_schema: Field required"),
    ({"stop_sequences": [" "]}, "must contain non-whitespace"),
    ({"system": [{"type": "text", "text": ""}]}, "must be non-empty"),
    (
        {"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 5},
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_what_anthropic_refuses_is_refused(fields: Any, words: str) -> None:
    status, error = Desk("anthropic").refused(PATH, asked(**fields))
    assert (status, error["error"]["type"]) == (400, "invalid_request_error")
    assert words in error["error"]["message"]


NEW: list[tuple[Any, str]] = [
    ({"temperature": 0.5}, "not supported by this model"),
    (
        {"messages": [Q, says({"type": "text", "text": "a"})]},
        "does not support assistant message prefill",
    ),
]


@pytest.mark.parametrize(("fields", "words"), NEW)
def test_new_models_refuse_what_older_ones_take(fields: Any, words: str) -> None:
    assert Desk("anthropic").ask(PATH, asked(**fields)).status == 200
    status, error = Desk("anthropic").refused(PATH, asked(**fields) | {"model": "claude-sonnet-5"})
    assert status == 400
    assert words in error["error"]["message"]


def test_turns_of_one_role_are_joined_unless_it_is_strict() -> None:
    body = asked() | {"messages": [Q, {"role": "user", "content": "again"}]}
    whole = Desk("anthropic").told(PATH, body)
    assert whole["content"][0]["text"] == "You said: again (turns=1)"
    status, error = Desk("anthropic", strict=True).refused(PATH, body)
    assert status == 400
    assert "roles must alternate" in error["error"]["message"]


@pytest.mark.parametrize(
    ("thinking", "strict", "status"),
    [
        (THINKS, False, 400),
        ({"type": "adaptive"}, False, 200),
        ({"type": "adaptive"}, True, 400),
        ({"type": "disabled"}, True, 200),
    ],
)
def test_a_lost_thought_is_refused_where_the_vendor_minds(
    thinking: Any, status: int, *, strict: bool
) -> None:
    body = asked(tools=TOOLS, thinking=thinking) | {"messages": [Q, says(USE), gives(RESULT)]}
    assert Desk("anthropic", strict=strict).ask(PATH, body).status == status


DRESSES: list[tuple[str, str, Any, int]] = [
    ("vertex_anthropic", "rawPredict", {"anthropic_version": "v"}, 200),
    ("vertex_anthropic", "rawPredict", {}, 400),
    ("vertex_anthropic", "rawPredict", {"anthropic_version": "v", "model": MODEL}, 400),
    ("vertex_anthropic", "rawPredict", {"anthropic_version": "v", "stream": False}, 200),
    ("bedrock_invoke", "invoke", {"anthropic_version": "v"}, 200),
    ("bedrock_invoke", "invoke", {"anthropic_version": "v", "anthropic_beta": ["a"]}, 200),
    ("bedrock_invoke", "invoke", {"anthropic_version": "v", "anthropic_beta": "a"}, 400),
    ("bedrock_invoke", "invoke", {"anthropic_version": "v", "model": MODEL}, 400),
    ("bedrock_invoke", "invoke", {"anthropic_version": "v", "stream": True}, 400),
]


@pytest.mark.parametrize(("kind", "verb", "fields", "status"), DRESSES)
def test_each_hosting_has_its_dress_of_the_body(
    kind: str, verb: str, fields: Any, status: int
) -> None:
    body = {"max_tokens": 9, "messages": [Q], **fields}
    path = f"/v1/projects/p/locations/eu/publishers/anthropic/models/{MODEL}:{verb}"
    if kind == "bedrock_invoke":
        path = "/model/eu.anthropic.claude-sonnet-5/invoke"
    assert Desk(kind).ask(path, body).status == status


def test_signatures_go_to_any_hosting_of_claude_and_are_as_large_as_asked_for() -> None:
    whole = Desk("anthropic", seal_bytes=48_000).told(
        PATH, asked("call clock", tools=TOOLS, thinking=THINKS)
    )
    thought, use = whole["content"]
    assert len(thought["signature"]) > 64_000
    turns = [Q, says(thought, use), gives({**RESULT, "tool_use_id": use["id"]})]
    body = asked(tools=TOOLS, thinking=THINKS) | {"messages": turns}
    assert Desk("foundry").ask("/anthropic/v1/messages", body).status == 200
    changed = json.loads(json.dumps(body))
    changed["messages"][1]["content"][0]["thinking"] += "."
    assert Desk("anthropic").ask(PATH, changed).status == 400


def test_betas_open_their_fields() -> None:
    body = asked(context_management={"edits": []})
    assert Desk("anthropic").ask(PATH, body).status == 400
    assert Desk("anthropic").ask(PATH, body, {"anthropic-beta": "context-management"}).status == 200
