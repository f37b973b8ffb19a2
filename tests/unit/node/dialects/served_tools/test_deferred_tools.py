"""Deferred tools for workers and vendors: each is told of one when its model knows it, or by the vendor's own word."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    with_loaded_tools,
)
from smg_node.dialects.chat.writer import chat_fields
from smg_node.dialects.provider_dialect import WriterOptions
from smg_node.providers.provider_dialects import provider_dialect
from support.providers.strict_messages import refusal

SEARCH = Tool("tool_search", "Finds tools.")
TIDES = Tool("tides", "Tells tides.", {"type": "object"}, deferred=True)
WEATHER = Tool("weather", "Tells weather.", {"type": "object"}, deferred=True)
ASKED = Turn("user", "Tides?")
SOUGHT = Turn("assistant", None, calls=(ToolCall("call_1", "tool_search", '{"query":"tides"}'),))
FOUND = Turn("tool", "tides: tells them", answers_call="call_1", references=("tides",))


def request(*turns: Turn, choice: ToolChoice | None = None, **prompt: Any) -> GenerateRequest:
    tools = prompt.pop("tools", (SEARCH, TIDES, WEATHER))
    asked = ChatPrompt(turns or (ASKED,), tools, choice or ToolChoice(), **prompt)
    return GenerateRequest("m", (asked,), Sampling(max_tokens=64), True)


def vendor(dialect: str, model: str, issuer: str) -> Callable[[GenerateRequest], dict[str, Any]]:
    writer = provider_dialect(dialect, model, issuer)
    return lambda asked: writer.write(asked, WriterOptions(model, issuer)).fields


WRITERS: dict[str, Callable[[GenerateRequest], dict[str, Any]]] = {
    "worker": chat_fields,
    "chat": vendor("chat", "gpt-x", "openai"),
    "responses": vendor("responses", "gpt-x", "openai"),
    "gemini": vendor("generate_content", "gemini-3-flash", "google"),
    "converse": vendor("converse", "amazon.nova", "bedrock"),
    "messages": vendor("messages", "other", "moonshot"),
}


def names(body: Any) -> list[str]:
    """Return the names of the functions in the tools of a body, in whatever form."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("name"), str):
                found.append(value["name"])
            else:
                for each in value.values():
                    walk(each)
        elif isinstance(value, list | tuple):
            for each in value:
                walk(each)

    for key in ("tools", "toolConfig"):
        tools = body.get(key)
        walk(tools.get("tools") if key == "toolConfig" and tools else tools)
    return found


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_a_tool_is_told_when_it_was_found_behind_the_others(
    writer: Callable[[GenerateRequest], dict[str, Any]],
) -> None:
    assert names(writer(request())) == ["tool_search"]
    assert "weather" not in json.dumps(writer(request()))
    assert names(writer(request(ASKED, SOUGHT, FOUND))) == ["tool_search", "tides"]
    called = Turn("assistant", None, calls=(ToolCall("call_2", "weather", "{}"),))
    rain = Turn("tool", "rain", answers_call="call_2")
    later = writer(request(ASKED, SOUGHT, FOUND, called, rain))
    assert names(later) == ["tool_search", "tides", "weather"]
    assert names(writer(request(choice=ToolChoice("named", "weather")))) == [
        "tool_search",
        "weather",
    ]


def test_a_choice_allows_nothing_that_is_left_out() -> None:
    allowed = ToolChoice("required", allowed=("tool_search", "tides"))
    body = WRITERS["responses"](request(choice=allowed))
    assert body["tool_choice"]["tools"] == [{"type": "function", "name": "tool_search"}]
    only = WRITERS["responses"](request(choice=ToolChoice("auto", allowed=("tides",))))
    assert only["tool_choice"] == "none"


def anthropic(asked: GenerateRequest, *quirks: str) -> dict[str, Any]:
    options = WriterOptions("claude-x", "anthropic", quirks=frozenset(quirks))
    body = provider_dialect("messages", "claude-x", "anthropic").write(asked, options).fields
    assert refusal(body) == ""
    return body


def later(body: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in body["tools"] if tool.get("defer_loading")]


def test_anthropic_is_told_of_all_of_them_and_by_reference_what_was_found() -> None:
    first, second = anthropic(request()), anthropic(request(ASKED, SOUGHT, FOUND))
    assert first["tools"] == second["tools"]
    assert names(first) == ["tool_search", "tides", "weather"]
    assert later(first) == ["tides", "weather"]
    assert second["messages"][-1]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [{"type": "tool_reference", "tool_name": "tides"}],
        }
    ]


def test_anthropic_gets_no_reference_to_what_it_is_not_told_of() -> None:
    gone = Turn("tool", "tides, gone", answers_call="call_1", references=("tides", "gone"))
    [result] = anthropic(request(ASKED, SOUGHT, gone))["messages"][-1]["content"]
    assert result["content"] == [
        {"type": "text", "text": "tides, gone"},
        {"type": "tool_reference", "tool_name": "tides"},
    ]
    allowed = ToolChoice(allowed=("tool_search", "weather"))
    [result] = anthropic(request(ASKED, SOUGHT, FOUND, choice=allowed))["messages"][-1]["content"]
    assert result["content"] == [{"type": "text", "text": "tides: tells them"}]


def test_anthropic_is_told_plainly_of_what_was_called_or_must_be() -> None:
    assert later(anthropic(request(choice=ToolChoice("named", "tides")))) == ["weather"]
    called = Turn("assistant", None, calls=(ToolCall("call_2", "weather", "{}"),))
    rain = Turn("tool", "rain", answers_call="call_2")
    assert later(anthropic(request(ASKED, called, rain))) == ["tides"]


def test_where_none_would_be_left_or_the_model_lacks_the_word_they_are_left_out() -> None:
    assert "tools" not in anthropic(request(tools=(TIDES, WEATHER)))
    assert names(anthropic(request(), "no_deferred_tools")) == ["tool_search"]


TOOLS = st.builds(Tool, st.sampled_from("abcdef"), deferred=st.booleans())


@given(
    st.lists(TOOLS, unique_by=lambda tool: tool.name),
    st.lists(st.lists(st.sampled_from("abcxyz"), max_size=3).map(tuple), max_size=4),
)
def test_nothing_that_is_not_deferred_is_lost_and_later_turns_only_add(
    tools: list[Tool], referred: list[tuple[str, ...]]
) -> None:
    turns = [Turn("tool", "x", references=names) for names in referred]
    shown: list[str] = []
    for count in range(len(turns) + 1):
        prompt = ChatPrompt((ASKED, *turns[:count]), tuple(tools))
        longer = [tool.name for tool in with_loaded_tools(prompt).tools]
        assert longer[: len(shown)] == shown
        assert [tool.name for tool in tools if not tool.deferred] == [
            name for name in longer if not next(t for t in tools if t.name == name).deferred
        ]
        shown = longer
    if not any(tool.deferred for tool in tools):
        plain = ChatPrompt((ASKED,), tuple(tools))
        assert with_loaded_tools(plain) is plain
