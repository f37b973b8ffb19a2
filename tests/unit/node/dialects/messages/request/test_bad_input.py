"""Whatever a body holds, it is read or refused with a place, and nothing half-read reaches an engine."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

READER = MessagesReader(ReaderOptions(), ThoughtSeals(PlainVault()))
CACHED = {"type": "ephemeral"}
SCHEMA = {"type": "object"}
FULL: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be kind.", "cache_control": CACHED}],
    "tools": [
        {
            "name": "Read",
            "description": "Reads.",
            "input_schema": SCHEMA,
            "strict": True,
            "input_examples": [{"a": 1}],
            "allowed_callers": ["direct"],
            "eager_input_streaming": True,
        },
        {"name": "Later", "input_schema": SCHEMA, "defer_loading": True},
        {"type": "memory_20250818", "name": "memory"},
    ],
    "tool_choice": {"type": "tool", "name": "Read", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 2_000, "display": "omitted"},
    "output_config": {"effort": "high", "task_budget": {"type": "tokens", "total": 9}},
    "context_management": {
        "edits": [
            {
                "type": "clear_thinking_20251015",
                "keep": {"type": "thinking_turns", "value": 1},
            },
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 10},
                "keep": {"type": "tool_uses", "value": 0},
                "clear_at_least": {"type": "input_tokens", "value": 0},
                "exclude_tools": ["Later"],
                "clear_tool_inputs": ["Read"],
            },
        ]
    },
    "metadata": {"user_id": "u"},
    "stop_sequences": ["END"],
    "temperature": 0.5,
    "stream": True,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go.", "citations": []}]},
        {
            "role": "system",
            "content": [
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "Later"}},
                {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "Later"}},
            ],
            "clear_at": "never",
            "output_config": {"effort": "low"},
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "So."},
                {"type": "tool_use", "id": "a", "name": "Read", "input": {"a": 1}},
                {"type": "tool_use", "id": "b", "name": "Read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "is_error": True,
                    "content": [
                        {"type": "text", "text": "x"},
                        {"type": "tool_reference", "tool_name": "Later"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "A"},
                        },
                    ],
                },
                {"type": "tool_result", "tool_use_id": "a", "content": "y"},
                {
                    "type": "document",
                    "title": "t",
                    "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                },
                {
                    "type": "search_result",
                    "title": "t",
                    "source": "s",
                    "content": [{"type": "text", "text": "x"}],
                },
            ],
        },
    ],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
WRONG: tuple[Any, ...] = (True, -3, 1.5, "", "\x00", [], {}, [None], {"type": "x"}, [[1]])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value inside."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        rows = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inside in rows:
            found += places(inside, (*path, key))
    return found


PLACES = places(FULL)


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    body = copy.deepcopy(FULL)
    spot: Any = body
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = value
    return body


def check(body: dict[str, Any]) -> SmgError | None:
    """Read a body both ways; what comes out is whole, or an error of the client's with a place."""
    refused = None
    for read in (READER.read, READER.read_count):
        try:
            read(copy.deepcopy(body))
        except SmgError as error:
            refused = error
    if refused is not None:
        assert refused.status == 400
        assert refused.where
    else:
        prompt = READER.read(copy.deepcopy(body)).request.prompts[0]
        assert isinstance(prompt, ChatPrompt)
        assert prompt == READER.read_count(copy.deepcopy(body)).prompt
        assert_whole(prompt)
    return refused


def assert_whole(prompt: ChatPrompt) -> None:
    waiting: list[str] = []
    for turn in prompt.turns:
        assert isinstance(turn, Turn)
        assert turn.content is None or isinstance(turn.content, str | tuple)
        if turn.role == "assistant":
            waiting = [call.call_id for call in turn.calls]
        elif turn.role == "tool":
            assert turn.answers_call == waiting.pop(0)
        elif turn.role == "user":
            assert not waiting


def test_a_body_with_everything_in_it_is_read() -> None:
    assert check(FULL) is None


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_a_wrong_value_anywhere_is_refused_with_a_place_or_read(path: tuple[Any, ...]) -> None:
    for value in WRONG:
        check(changed(path, value))


@given(path=st.sampled_from(PLACES), value=JSON)
def test_any_value_anywhere_is_refused_with_a_place_or_read(
    path: tuple[Any, ...], value: Any
) -> None:
    check(changed(path, value))


@given(st.dictionaries(st.sampled_from(sorted(FULL)), JSON))
def test_any_body_is_refused_with_a_place_or_read(body: dict[str, Any]) -> None:
    check(body)


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("max_tokens",), None, "max_tokens"),
        (("max_tokens",), "9", "max_tokens"),
        (("messages",), [], "messages"),
        (("messages", 0, "role"), "developer", "messages[0].role"),
        (("messages", 0, "content"), 5, "messages[0].content"),
        (("messages", 0, "content"), [], "messages[0].content"),
        (("messages", 0, "content", 0, "text"), None, "messages[0].content[0].text"),
        (("messages", 0, "content", 0, "type"), "image_url", "messages[0].content[0].type"),
        (("messages", 2, "content", 3, "input"), "x", "messages[2].content[3].input"),
        (("messages", 2, "content", 4, "id"), "a", "messages[2].content[4].id"),
        (("messages", 3, "content", 0, "tool_use_id"), "c", "messages[3].content[0].tool_use_id"),
        (("messages", 3, "content", 0, "tool_use_id"), "a", "messages[3].content[1].tool_use_id"),
        (("messages", 3, "content", 0, "is_error"), 1, "messages[3].content[0].is_error"),
        (
            ("messages", 3, "content", 0, "content", 1, "tool_name"),
            "Gone",
            "messages[3].content[0].content[1].tool_name",
        ),
        (
            ("messages", 1, "content", 0, "tool", "name"),
            "Gone",
            "messages[1].content[0].tool.name",
        ),
        (("system", 0, "type"), "image", "system[0].type"),
        (("system", 0, "cache_control"), {"type": "eternal"}, "system[0].cache_control.type"),
        (("tools", 0, "name"), "a b", "tools[0].name"),
        (("tools", 1, "name"), "Read", "tools[1].name"),
        (("tools", 0, "input_schema"), [], "tools[0].input_schema"),
        (("tools", 2, "type"), "poem_20260101", "tools[2].type"),
        (("tools", 2, "name"), "notes", "tools[2].name"),
        (("tools", 0, "allowed_callers"), ["code_execution_20260521"], "tools[0].allowed_callers"),
        (("tool_choice", "name"), "Gone", "tool_choice"),
        (("thinking", "budget_tokens"), 1_023, "thinking.budget_tokens"),
        (("thinking", "type"), "hard", "thinking.type"),
        (("output_config", "effort"), "none", "output_config.effort"),
        (
            ("output_config", "format"),
            {"type": "json_schema", "schema": {"type": "x"}},
            "output_config.format.schema.type",
        ),
        (("stop_sequences",), "END", "stop_sequences"),
        (("metadata", "user_id"), "x" * 1_025, "metadata.user_id"),
        (("stream",), "yes", "stream"),
        (("service_tier",), "fast", "service_tier"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(
    path: tuple[Any, ...], value: Any, where: str
) -> None:
    refused = check(changed(path, value))
    assert refused is not None
    assert refused.where == where


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("thread", {"type": "create"}, "thread_unsupported_request"),
        ("thread", "x", "thread_unsupported_request"),
        ("container", "c", "unsupported_parameter"),
        ("compaction", {}, "unsupported_parameter"),
        ("skills", [], "unsupported_parameter"),
        ("mcp_servers", [{}], "unsupported_tool"),
        ("cache_salt", "x", "unsupported_parameter"),
    ],
)
def test_what_would_change_the_answer_is_refused(key: str, value: Any, code: str) -> None:
    refused = check({**FULL, key: value})
    assert refused is not None
    assert (refused.where, refused.code) == (key, code)


def test_a_thread_is_refused_first_whatever_else_is_wrong() -> None:
    refused = check({"thread": {"type": "create"}, "max_tokens": "x"})
    assert refused is not None
    assert refused.code == "thread_unsupported_request"


def test_what_others_pay_for_or_prefer_is_taken_without_effect() -> None:
    wishes = {
        "speed": "fast",
        "inference_geo": "eu",
        "user_profile_id": "p",
        "workspace_id": "w",
        "billing_policy": {"type": "billing_policy"},
        "fallbacks": "default",
        "fallback_credit_token": "t",
        "mcp_servers": [],
    }
    assert READER.read({**FULL, **wishes}).request == READER.read(copy.deepcopy(FULL)).request
