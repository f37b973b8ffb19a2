"""Choices among tools of which this node runs some: the client's own, a server's, and built-in ones."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, ToolChoice
from smg_node.core.generation.tool_serving import ChosenTool, ServedChoice, ToolServing
from support.answers.run_blocks import GO, SERVERS, request

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
CODE = {"type": "code_execution_20250522", "name": "code_execution"}
OWN = {"name": "look", "input_schema": {"type": "object"}}


def settled(choice: dict[str, Any], **more: Any) -> tuple[ToolChoice, ToolServing]:
    found = request(GO, tool_choice=choice, **more)
    (prompt,) = found.prompts
    assert isinstance(prompt, ChatPrompt)
    assert found.serving is not None
    return prompt.choice, found.serving


def insisted(serving: ToolServing) -> list[str]:
    return [one.kind for one in serving.builtins if one.insisted]


@pytest.mark.parametrize("kind", ["auto", "none"])
def test_a_choice_that_asks_for_nothing_leaves_all_of_them(kind: str) -> None:
    choice, serving = settled({"type": kind})
    assert choice.mode == kind
    assert serving.choice is None


def test_a_choice_of_the_clients_own_tool_leaves_none_of_ours() -> None:
    choice, serving = settled({"type": "tool", "name": "look"})
    assert (choice.mode, choice.name, choice.allowed) == ("named", "look", ("look",))
    assert serving.choice == ServedChoice()


def test_a_choice_of_a_built_in_tool_insists_on_it() -> None:
    choice, serving = settled(
        {"type": "tool", "name": "web_search"}, tools=[SEARCH, CODE, OWN], mcp_servers=[]
    )
    assert (choice.mode, choice.allowed) == ("required", ())
    assert serving.choice == ServedChoice((ChosenTool(builtin="web_search"),))
    assert insisted(serving) == ["web_search"]


def test_any_other_name_is_that_of_a_servers_tool() -> None:
    choice, serving = settled({"type": "tool", "name": "find", "disable_parallel_tool_use": True})
    assert (choice.mode, choice.allowed, choice.parallel) == ("required", (), False)
    assert serving.choice == ServedChoice((ChosenTool("docs", "find"),))


def test_any_call_may_be_of_all_of_them() -> None:
    choice, serving = settled({"type": "any"})
    assert (choice.mode, choice.allowed) == ("required", None)
    assert serving.choice is None
    assert insisted(serving) == []


def test_any_call_insists_on_the_only_tool() -> None:
    _, serving = settled({"type": "any"}, tools=[SEARCH], mcp_servers=[])
    assert insisted(serving) == ["web_search"]


def test_what_was_removed_is_not_chosen() -> None:
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}
    found = request(GO, ("system", [removal]), ("user", "x"), tool_choice={"type": "any"})
    (prompt,) = found.prompts
    assert isinstance(prompt, ChatPrompt)
    assert prompt.choice.allowed == ()
    assert found.serving is not None
    assert found.serving.choice == ServedChoice(
        (ChosenTool("docs"), ChosenTool(builtin="web_search"))
    )


def test_a_choice_of_a_tool_that_nobody_has_is_refused() -> None:
    with pytest.raises(SmgError) as caught:
        settled({"type": "tool", "name": "find"}, tools=[SEARCH, OWN], mcp_servers=[])
    assert caught.value.where == "tool_choice"


def test_a_choice_without_any_tools_is_refused() -> None:
    with pytest.raises(SmgError) as caught:
        request(GO, tool_choice={"type": "any"}, **{**SERVERS, "tools": [], "mcp_servers": []})
    assert caught.value.where == "tool_choice"


# ── Changes in the middle of a conversation ──────────────────────────────────


def change(kind: str, tool: str = "", server: str = "docs") -> dict[str, Any]:
    reference: dict[str, Any] = {"type": "mcp_toolset_reference", "server_name": server}
    if tool:
        reference = {"type": "mcp_tool_reference", "server_name": server, "name": tool}
    return {"type": f"tool_{kind}", "tool": reference}


@pytest.mark.parametrize(
    ("changes", "told", "names", "excluded"),
    [
        ([change("removal", "find")], "no longer available: find", None, ("find",)),
        (
            [change("removal", "find"), change("addition", "find")],
            "no longer available: find\navailable again: find",
            None,
            (),
        ),
        (
            [change("removal"), change("addition", "find")],
            "no longer available: all tools of docs\navailable again: find",
            ("find",),
            (),
        ),
        (
            [change("removal"), change("addition")],
            "no longer available: all tools of docs\navailable again: all tools of docs",
            None,
            (),
        ),
    ],
)
def test_tools_of_servers_are_taken_away_and_given_back(
    changes: list[Any], told: str, names: Any, excluded: tuple[str, ...]
) -> None:
    found = request(GO, ("system", changes), ("user", "x"))
    (prompt,) = found.prompts
    assert isinstance(prompt, ChatPrompt)
    assert prompt.turns[1].content == told
    assert found.serving is not None
    (server,) = found.serving.servers
    assert (server.tools and server.tools.names, server.excluded) == (names, excluded)


def test_a_server_whose_tools_are_all_taken_away_is_not_asked() -> None:
    found = request(GO, ("system", [change("removal")]), ("user", "x"))
    assert found.serving is not None
    assert found.serving.servers == ()


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        (change("removal", "find", "other"), "messages[1].content[0].tool.server_name"),
        (
            {"type": "tool_removal", "tool": {"type": "mcp_tool_reference", "server_name": "docs"}},
            "messages[1].content[0].tool.name",
        ),
    ],
)
def test_a_change_that_is_wrong_is_named_by_its_path(changed: Any, where: str) -> None:
    with pytest.raises(SmgError) as caught:
        request(GO, ("system", [changed]), ("user", "x"))
    assert caught.value.where == where
