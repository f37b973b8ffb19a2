"""Tools of a chat body that this node runs: who may ask for them, what is read, and what a choice leaves of them."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.generation.tool_serving import (
    ApprovalRule,
    AskedServer,
    ChosenTool,
    ServedChoice,
    ToolFilter,
    ToolServing,
)
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody, Unknown
from smg_node.dialects.options import ReaderOptions

DIALECT = ChatDialect(ReaderOptions(tool_servers=True))
ON = {"x-smg-mcp": "enabled"}
DOCS: dict[str, Any] = {
    "type": "mcp",
    "server_label": "docs",
    "server_url": "https://docs.test/mcp",
    "authorization": "s3cret",
    "allowed_tools": ["find"],
}
FUNCTION = {"type": "function", "function": {"name": "f"}}
SEARCH = {"type": "web_search", "filters": {"allowed_domains": ["a.test"]}}


class Somebody(Unknown):
    """A caller with these headers."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers


def reading(
    headers: dict[str, str] = ON, dialect: ChatDialect = DIALECT, /, **more: Any
) -> ParsedBody[ChatView]:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}
    return dialect.read(body, Somebody(headers))


def request(*tools: Any, **more: Any) -> GenerateRequest:
    return reading(tools=list(tools), **more).request


def prompt(*tools: Any, **more: Any) -> ChatPrompt:
    (found,) = request(*tools, **more).prompts
    assert isinstance(found, ChatPrompt)
    return found


def serving(*tools: Any, **more: Any) -> ToolServing:
    found = request(*tools, **more).serving
    assert found is not None
    return found


class Looked:
    """A truth that counts how often it was looked at."""

    times = 0

    def __bool__(self) -> bool:
        self.times += 1
        return True


def refusal(headers: dict[str, str] = ON, /, **more: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        reading(headers, **more)
    return caught.value


def test_servers_and_built_in_tools_are_what_is_asked() -> None:
    found = serving(DOCS, FUNCTION, SEARCH)
    assert found.servers == (
        AskedServer(
            "docs",
            "https://docs.test/mcp",
            authorization="s3cret",
            tools=ToolFilter(("find",)),
            where="tools[0]",
        ),
    )
    assert [(one.kind, one.spelled, one.where) for one in found.builtins] == [
        ("web_search", "web_search", "tools[2]")
    ]
    told = reading({**ON, "authorization": "Bearer sk", "x-team": "a"}, tools=[DOCS]).request
    assert told.serving is not None
    assert told.serving.headers == {"x-team": "a"}
    assert not found.approvals
    assert [tool.name for tool in prompt(DOCS, FUNCTION, SEARCH).tools] == ["f"]
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (None, None),
        ("never", ApprovalRule(otherwise="never")),
        ("always", ApprovalRule()),
        ({"always": {"tool_names": ["x"]}}, ApprovalRule(ToolFilter(("x",)), None, "never")),
    ],
)
def test_nobody_is_asked_unless_the_request_says_so(said: Any, rule: ApprovalRule | None) -> None:
    assert serving({**DOCS, "require_approval": said}).servers[0].approval == rule


def test_a_chat_without_such_tools_asks_for_none() -> None:
    assert request(FUNCTION).serving is None
    assert request().serving is None
    assert prompt(FUNCTION, tool_choice="required").choice.mode == "required"
    assert refusal(tools=[], tool_choice="required").where == "tool_choice"


@pytest.mark.parametrize("headers", [{}, {"x-smg-mcp": "off"}])
def test_without_the_header_they_are_left_out_and_named(headers: dict[str, str]) -> None:
    found = reading(headers, tools=[DOCS, SEARCH, FUNCTION]).request
    assert found.serving is None
    assert found.ignored == ("tools[0].mcp", "tools[1].web_search")


def test_a_node_that_runs_no_tools_leaves_them_out_whatever_the_header_says() -> None:
    found = reading(ON, ChatDialect(ReaderOptions()), tools=[DOCS, FUNCTION]).request
    assert found.serving is None
    assert found.ignored == ("tools[0].mcp",)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "mcp", "server_label": "docs"}, {"type": "web_search"}]
)
def test_a_choice_that_insists_on_one_names_the_header(choice: Any) -> None:
    error = refusal({}, tools=[DOCS, SEARCH], tool_choice=choice)
    assert (error.where, error.code) == ("tool_choice", "unsupported_tool")
    assert "x-smg-mcp: enabled" in str(error)


@pytest.mark.parametrize(
    "choice", [None, "required", {"type": "function", "function": {"name": "f"}}]
)
def test_a_chat_without_such_tools_does_not_ask_whether_there_are_any(choice: Any) -> None:
    looked = Looked()
    dialect = ChatDialect(ReaderOptions(tool_servers=looked))
    assert reading({}, dialect, tools=[FUNCTION], tool_choice=choice).request.serving is None
    assert not looked.times
    reading(ON, dialect, tools=[DOCS])
    assert looked.times


def test_hosted_tools_that_this_node_has_not_either_are_left_out() -> None:
    found = request(DOCS, {"type": "computer"})
    assert found.ignored == ("tools[1].computer",)
    assert found.serving is not None


# ── The choice ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("choice", "mode", "allowed", "served"),
    [
        ("auto", "auto", None, None),
        ("none", "none", None, None),
        ("required", "required", None, None),
        ({"type": "function", "function": {"name": "f"}}, "named", ("f",), ServedChoice()),
        (
            {"type": "mcp", "server_label": "docs"},
            "required",
            (),
            ServedChoice((ChosenTool("docs"),)),
        ),
        (
            {"type": "mcp", "server_label": "docs", "name": "find"},
            "required",
            (),
            ServedChoice((ChosenTool("docs", "find"),)),
        ),
        (
            {"type": "web_search"},
            "required",
            (),
            ServedChoice((ChosenTool(builtin="web_search"),)),
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [
                        {"type": "function", "function": {"name": "f"}},
                        {"type": "mcp", "server_label": "docs"},
                    ],
                },
            },
            "auto",
            ("f",),
            ServedChoice((ChosenTool("docs"),)),
        ),
    ],
)
def test_a_choice_may_be_among_all_of_them(
    choice: Any, mode: str, allowed: Any, served: ServedChoice | None
) -> None:
    tools = [DOCS, FUNCTION, SEARCH]
    found = prompt(*tools, tool_choice=choice, parallel_tool_calls=False).choice
    assert (found.mode, found.allowed, found.parallel) == (mode, allowed, False)
    assert serving(*tools, tool_choice=choice).choice == served


def test_a_choice_of_a_built_in_tool_insists_on_it() -> None:
    (found,) = serving(SEARCH, FUNCTION, tool_choice={"type": "web_search"}).builtins
    assert found.insisted
    (found,) = serving(SEARCH, tool_choice="required").builtins
    assert found.insisted
    (found,) = serving(SEARCH, FUNCTION, tool_choice="required").builtins
    assert not found.insisted


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"tools": [{"type": "mcp"}]}, "tools[0].server_label"),
        ({"tools": [{**DOCS, "server_url": "x"}]}, "tools[0].server_url"),
        ({"tools": [DOCS, DOCS]}, "tools[1].server_label"),
        ({"tools": [SEARCH, SEARCH]}, "tools[1].type"),
        ({"tools": [{**DOCS, "authorization": "a\nb"}]}, "tools[0].authorization"),
        ({"tools": [DOCS], "tool_choice": "some"}, "tool_choice"),
        ({"tools": [DOCS], "tool_choice": 1}, "tool_choice"),
        ({"tools": [DOCS], "tool_choice": {}}, "tool_choice.type"),
        (
            {"tools": [DOCS], "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "tool_choice.function.name",
        ),
        (
            {"tools": [DOCS], "tool_choice": {"type": "mcp", "server_label": "other"}},
            "tool_choice.server_label",
        ),
        (
            {
                "tools": [DOCS],
                "tool_choice": {"type": "mcp", "server_label": "docs", "name": "drop"},
            },
            "tool_choice.name",
        ),
        ({"tools": [DOCS], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        (
            {"tools": [DOCS], "tool_choice": {"type": "allowed_tools", "allowed_tools": {}}},
            "tool_choice.allowed_tools.mode",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_path(more: dict[str, Any], where: str) -> None:
    error = refusal(**more)
    assert error.where == where
    assert "s3cret" not in str(error)


# ── How answers are shown ────────────────────────────────────────────────────


@pytest.mark.parametrize(("word", "shown"), [("show", True), ("Show", True), ("", False)])
def test_runs_are_shown_to_who_asks(word: str, *, shown: bool) -> None:
    view = reading({**ON, "x-smg-tool-runs": word}, tools=[DOCS]).view
    assert (view.served, view.tool_runs) == (True, shown)
    assert not reading({**ON, "x-smg-tool-runs": "show"}, tools=[FUNCTION]).view.tool_runs
