"""Tool choices that name tools which this node runs."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.tool_serving import ChosenTool, ServedChoice, ToolServing
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.response_request import ResponseRequest
from support.answers.responses import ask_of

SERVED = ReaderOptions(tool_servers=True)
CLOCK = {"type": "mcp", "server_label": "clock", "allowed_tools": ["times"]}
WEB = {"type": "web_search"}
FUNCTION = {"type": "function", "name": "f"}
CRM = {"type": "namespace", "name": "crm", "description": "d", "tools": [FUNCTION]}


def chosen(choice: Any, *tools: Any) -> tuple[ResponseRequest, ToolServing]:
    ask = ask_of(SERVED, tools=list(tools or (CLOCK, WEB, FUNCTION, CRM)), tool_choice=choice)
    assert ask.serving is not None
    return ask, ask.serving


@pytest.mark.parametrize(
    ("choice", "mode", "allowed", "tools"),
    [
        ("auto", "auto", None, None),
        ("none", "none", None, None),
        ("required", "required", None, None),
        ({"type": "mcp", "server_label": "clock"}, "required", (), [ChosenTool("clock")]),
        (
            {"type": "mcp", "server_label": "clock", "name": "times"},
            "required",
            (),
            [ChosenTool("clock", "times")],
        ),
        ({"type": "web_search_preview"}, "required", (), [ChosenTool(builtin="web_search")]),
        ({"type": "function", "name": "f"}, "named", None, []),
        ({"type": "namespace", "name": "crm"}, "required", ("crm__f",), []),
    ],
)
def test_a_choice_says_which_tools_of_ours_are_left(
    choice: Any, mode: str, allowed: Any, tools: Any
) -> None:
    ask, serving = chosen(choice)
    assert (ask.choice.mode, ask.choice.allowed) == (mode, allowed)
    assert serving.choice == (None if tools is None else ServedChoice(tuple(tools)))


def test_allowed_tools_may_be_the_clients_and_ours() -> None:
    entries = [{"type": "function", "name": "f"}, {"type": "mcp", "server_label": "clock"}, WEB]
    for mode in ("auto", "required"):
        ask, serving = chosen({"type": "allowed_tools", "mode": mode, "tools": entries})
        assert (ask.choice.mode, ask.choice.allowed) == (mode, ("f",))
        assert serving.choice == ServedChoice(
            (ChosenTool("clock"), ChosenTool(builtin="web_search"))
        )
        assert not serving.builtins[0].insisted
    ask, serving = chosen({"type": "allowed_tools", "mode": "required", "tools": [WEB]})
    assert (ask.choice.mode, ask.choice.allowed) == ("required", ())
    assert serving.builtins[0].insisted
    ask, serving = chosen({"type": "allowed_tools", "mode": "auto", "tools": entries[:1]})
    assert serving.choice == ServedChoice()


def test_who_insists_on_a_built_in_tool_is_known() -> None:
    assert chosen(WEB)[1].builtins[0].insisted
    assert chosen("required", WEB)[1].builtins[0].insisted
    for tools in ((WEB, FUNCTION), (WEB, CLOCK), (WEB, {"type": "file_search"})):
        assert not any(one.insisted for one in chosen("required", *tools)[1].builtins)
    assert not chosen("auto", WEB)[1].builtins[0].insisted


@pytest.mark.parametrize(
    ("choice", "where"),
    [
        ({"type": "mcp"}, "tool_choice.server_label"),
        ({"type": "mcp", "server_label": "x"}, "tool_choice.server_label"),
        ({"type": "mcp", "server_label": "clock", "name": "zones"}, "tool_choice.name"),
        ({"type": "mcp", "server_label": "clock", "name": 1}, "tool_choice.name"),
        ({"type": "file_search"}, "tool_choice.type"),
        ({"type": "computer"}, "tool_choice.type"),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "x"}]},
            "tool_choice.tools[0].server_label",
        ),
    ],
)  # fmt: skip
def test_what_is_not_there_cannot_be_chosen(choice: Any, where: str) -> None:
    with pytest.raises(SmgError) as found:
        chosen(choice)
    assert (found.value.status, found.value.where) == (400, where)
