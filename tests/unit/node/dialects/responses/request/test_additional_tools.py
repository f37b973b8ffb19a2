"""Tools that items of the input, or of the history, declare: `additional_tools`, as Codex sends them."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Tool, ToolChoice
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.flat_names import NamespacedName
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.responses.request.tools import history_tools
from support.answers.responses import ask_of, items_from

USER = {"role": "user", "content": "hi"}


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, **more}


def space(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "", "tools": list(tools)}


def adds(*tools: Any) -> dict[str, Any]:
    return {"type": "additional_tools", "role": "developer", "tools": list(tools)}


CODEX = [
    adds(
        function("exec_command", description="Run.", parameters={"type": "object"}),
        {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
        space("multi_agent", function("spawn"), {"type": "custom", "name": "note"}),
        {"type": "web_search", "external_web_access": False},
    ),
    {"role": "developer", "content": "rules"},
    USER,
]


def test_the_model_is_shown_the_tools_of_an_item() -> None:
    ask = ask_of(input=CODEX, tools=[], tool_choice="auto")
    names = ["exec_command", "apply_patch", "multi_agent__spawn", "multi_agent__note"]
    assert [tool.name for tool in ask.tools] == names
    assert ask.tools[0] == Tool("exec_command", "Run.", {"type": "object"})
    assert ask.tools[0].where == "input[0].tools[0].parameters"
    assert ask.custom_tools == ("apply_patch", "multi_agent__note")
    assert ask.namespaced == {
        "multi_agent__spawn": NamespacedName("multi_agent", "spawn"),
        "multi_agent__note": NamespacedName("multi_agent", "note"),
    }
    wish = generate_request(ask, ask.items)
    assert wish.ignored == ("input[0].tools[3].web_search",)
    (prompt,) = wish.prompts
    assert isinstance(prompt, ChatPrompt)
    assert [tool.name for tool in prompt.tools] == names
    assert [turn.role for turn in prompt.turns] == ["developer", "user"]


def test_the_answer_repeats_the_tools_of_the_body_alone() -> None:
    assert "tools" not in ask_of(input=CODEX).echo
    assert ask_of(input=CODEX, tools=[]).echo["tools"] == []


@pytest.mark.parametrize(
    ("rows", "about"),
    [
        ([adds(function("f", description="new"))], ["new"]),
        ([adds(function("f", description="a")), adds(function("f", description="b"))], ["b"]),
        ([USER, adds(space("s", function("f", description="x")))], ["old", "x"]),
    ],
)
def test_the_latest_of_several_tools_with_one_name_counts(rows: Any, about: list[str]) -> None:
    ask = ask_of(input=[*rows, USER], tools=[function("f", description="old")])
    assert [tool.description for tool in ask.tools] == about


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "name": "spawn", "namespace": "multi_agent"},
        {"type": "function", "name": "spawn"},
    ],
)
def test_such_a_tool_can_be_chosen(choice: Any) -> None:
    ask = ask_of(input=CODEX, tool_choice=choice)
    assert ask.choice == ToolChoice("named", "multi_agent__spawn", where="tool_choice")
    assert ask_of(input=CODEX, tool_choice="required").choice.mode == "required"


@pytest.mark.parametrize(
    ("tools", "where", "code"),
    [
        ([{"name": "f"}], "input[1].tools[0].type", "missing_required_parameter"),
        ([function("a b")], "input[1].tools[0].name", "invalid_value"),
        ([function("f"), function("f")], "input[1].tools[1].name", "invalid_value"),
        ([5], "input[1].tools[0]", "invalid_type"),
        ([{"type": "no", "parameters": {}}], "input[1].tools[0].type", "unsupported_tool"),
        ([function("f"), function("g"), function("h")], "input[1].tools", "invalid_value"),
        ([function("f"), space("s", function("g"), function("h"))], "input", "invalid_value"),
    ],
)
def test_a_mistake_has_its_path(tools: Any, where: str, code: str) -> None:
    with pytest.raises(SmgError) as caught:
        ask_of(ReaderOptions(tools_max=2), input=[USER, adds(*tools)])
    assert (caught.value.where, caught.value.code) == (where, code)


def test_tools_of_the_history_come_after_those_of_the_body_and_change_none_of_them() -> None:
    ask = ask_of(tools=[function("f", description="own"), space("s", function("g"))])
    past = items_from(
        [
            adds(function("f", description="old"), function("h"), {"type": "custom", "name": "c"}),
            adds(space("s", function("g"), function("k"))),
        ]
    )
    found = history_tools(ask, past)
    assert [tool.name for tool in found.tools] == ["f", "s__g", "h", "c", "s__k"]
    assert found.tools[0].description == "own"
    assert found.custom_tools == ("c",)
    assert found.namespaced["s__k"] == NamespacedName("s", "k")
    assert history_tools(ask, ()) is ask


def test_a_name_that_the_body_has_is_not_taken_twice() -> None:
    ask = ask_of(tools=[function("s__k")])
    found = history_tools(ask, items_from([adds(space("s", function("k")))]))
    first, second = (tool.name for tool in found.tools)
    assert first == "s__k"
    assert second.startswith("s__k_")
    assert found.namespaced[second] == NamespacedName("s", "k")


def test_what_cannot_be_read_in_a_history_declares_nothing() -> None:
    ask = ask_of()
    past = items_from([adds(*[5] * 12), adds({"type": "function"}, function("f"))])
    assert [tool.name for tool in history_tools(ask, past).tools] == ["f"]


def test_deferred_tools_of_a_history_stay_so_where_the_model_can_search_for_them() -> None:
    past = items_from([adds(function("f", defer_loading=True), function("g"))])
    reader = ResponsesReader(ReaderOptions(tool_servers=True))
    for tools, deferred in (([{"type": "tool_search"}], True), ([], False)):
        ask = reader.read({"model": "m", "input": "hi", "tools": tools})
        found = history_tools(ask, past).tools
        assert [(tool.name, tool.deferred) for tool in found] == [("f", deferred), ("g", False)]
