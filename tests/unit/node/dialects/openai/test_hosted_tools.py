"""Hosted tools: left out and named, whatever the API; refused only where a choice insists on one."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from openai.types.responses.tool_choice_types_param import ToolChoiceTypesParam
from openai.types.responses.tool_param import ToolParam

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Tool, ToolChoice
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.response_request import ResponseRequest
from support.answers.responses import ask_of

_SERVED = {"function", "custom", "namespace"}


def words(hint: Any) -> Iterator[str]:
    for each in get_args(hint):
        if type(each) is str:
            yield each
        else:
            yield from words(each)


def types_of(declaration: Any) -> set[str]:
    return set(words(get_type_hints(declaration, include_extras=True)["type"]))


OFFICIAL = sorted(set().union(*map(types_of, get_args(ToolParam))) - _SERVED)
CHOSEN = sorted(types_of(ToolChoiceTypesParam) | set(OFFICIAL))
"""Every hosted type of the official SDK."""
LATER = ["web_search_2027_01_31", "file_search_2026_12_01"]
FLAT = {"type": "function", "name": "f"}
CHAT = {"type": "function", "function": {"name": "f"}}


def chat(options: ReaderOptions | None = None, /, **parameters: Any) -> GenerateRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **parameters}
    return ChatDialect(options or ReaderOptions()).read(body).request


def prompt(request: GenerateRequest) -> ChatPrompt:
    (prompt,) = request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


def refusal(read: Any, *options: ReaderOptions, **parameters: Any) -> tuple[str | None, str]:
    with pytest.raises(SmgError) as caught:
        read(*options, **parameters)
    return caught.value.where, caught.value.code


def test_the_official_types_are_many() -> None:
    assert {"apply_patch", "computer", "local_shell", "mcp", "shell", "tool_search"} < set(OFFICIAL)
    assert {"web_search", "web_search_2025_08_26", "web_search_preview"} < set(OFFICIAL)


@pytest.mark.parametrize("kind", OFFICIAL + LATER)
@pytest.mark.parametrize("unknown", ["forward", "reject"])
def test_a_hosted_tool_is_left_out_and_named(kind: str, unknown: Any) -> None:
    options = ReaderOptions(unknown_parameters=unknown)
    hosted = {"type": kind, "server_label": "s", "environment": {"type": "local"}}
    ask = ask_of(options, tools=[FLAT, hosted], tool_choice="auto")
    assert (ask.tools, ask.ignored) == ((Tool("f"),), (f"tools[1].{kind}",))
    assert ask.echo["tools"][1] == hosted
    asked = chat(options, tools=[hosted, CHAT], tool_choice="required")
    assert prompt(asked).tools == (Tool("f"),)
    assert asked.ignored == (f"tools[0].{kind}",)


@pytest.mark.parametrize("kind", CHOSEN + LATER)
def test_a_choice_that_insists_on_a_hosted_tool_is_refused(kind: str) -> None:
    named, only = {"type": kind}, [{"type": kind}]
    flat = {"type": "allowed_tools", "mode": "required", "tools": only}
    nested = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": only}}
    tools: dict[str, Any] = {"tools": [FLAT, *only]}
    assert refusal(ask_of, **tools, tool_choice=named) == ("tool_choice.type", "unsupported_tool")
    assert refusal(ask_of, **tools, tool_choice=flat) == (
        "tool_choice.tools[0].type",
        "unsupported_tool",
    )
    tools = {"tools": [CHAT, *only]}
    assert refusal(chat, **tools, tool_choice=named) == ("tool_choice.type", "unsupported_tool")
    assert refusal(chat, tool_choice=nested, **tools) == (
        "tool_choice.allowed_tools.tools[0].type",
        "unsupported_tool",
    )


@pytest.mark.parametrize("read", [ask_of, chat])
def test_nothing_can_be_required_where_every_tool_is_hosted(read: Any) -> None:
    tools = [{"type": "web_search"}]
    assert refusal(read, tools=tools, tool_choice="required") == ("tool_choice", "unsupported_tool")
    for choice in ("none", "auto"):
        made = read(tools=tools, tool_choice=choice)
        assert made.ignored == ("tools[0].web_search",)


def choice_of(asked: ResponseRequest | GenerateRequest) -> ToolChoice:
    return asked.choice if isinstance(asked, ResponseRequest) else prompt(asked).choice


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_hosted_tool_among_those_allowed_is_left_out(mode: Any) -> None:
    search = {"type": "web_search"}
    flat = {"type": "allowed_tools", "mode": mode, "tools": [search, FLAT]}
    ask = ask_of(tool_choice=flat, tools=[FLAT, search])
    assert choice_of(ask) == ToolChoice(mode, allowed=("f",))
    assert ask.ignored == ("tools[1].web_search", "tool_choice.tools[0].web_search")
    nested = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [CHAT, search]}}
    asked = chat(tool_choice=nested, tools=[CHAT, search])
    assert choice_of(asked) == ToolChoice(mode, allowed=("f",))
    assert asked.ignored == ("tool_choice.allowed_tools.tools[1].web_search", "tools[1].web_search")


def test_nothing_is_called_where_only_hosted_tools_may_be() -> None:
    search = [{"type": "web_search"}]
    flat = {"type": "allowed_tools", "mode": "auto", "tools": search}
    assert choice_of(ask_of(tools=[FLAT], tool_choice=flat)) == ToolChoice("none")
    nested = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": search}}
    assert choice_of(chat(tools=[CHAT], tool_choice=nested)) == ToolChoice("none")


def test_a_type_that_nobody_knows_is_as_an_unknown_parameter() -> None:
    strange = {"type": "telepathy", "range": "far"}
    assert ask_of(tools=[strange]).ignored == ("tools[0].telepathy",)
    assert chat(tools=[strange]).ignored == ("tools[0].telepathy",)
    for read in (ask_of, chat):
        strict = ReaderOptions(unknown_parameters="reject")
        assert refusal(read, strict, tools=[strange]) == ("tools[0].type", "unsupported_tool")


@pytest.mark.parametrize("key", ["function", "parameters", "input_schema", "tools"])
def test_a_definition_of_a_misspelled_type_is_refused(key: str) -> None:
    wrong = {"type": "functoin", key: {}}
    for read in (ask_of, chat):
        assert refusal(read, tools=[wrong]) == ("tools[0].type", "unsupported_tool")


def test_options_of_a_search_are_a_hosted_tool_of_chats() -> None:
    asked = chat(web_search_options={"search_context_size": "low"})
    assert asked.ignored == ("web_search_options",)
    assert refusal(chat, web_search_options=5) == ("web_search_options", "invalid_type")


def test_secrets_of_a_server_of_tools_are_not_shown_again() -> None:
    tool = {"type": "mcp", "server_label": "s", "server_url": "https://tools.example/mcp"}
    secret = {**tool, "headers": {"x-key": "k"}, "authorization": "token"}
    assert ask_of(tools=[secret]).echo["tools"] == [tool]
