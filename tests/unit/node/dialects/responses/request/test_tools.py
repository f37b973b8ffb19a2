"""Tools of a Responses body: functions, custom tools and namespaces, and the choice among them."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Tool, ToolCall, ToolChoice
from smg_node.dialects.openai.functions import CUSTOM_PARAMETERS
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.flat_names import NamespacedName
from smg_node.dialects.responses.request.generate_request import generate_request
from support.answers.responses import ask_of

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, **more}


def space(name: str, *tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "tools": list(tools), **more}


CRM = space(
    "crm",
    function("lookup", description="Find one.", parameters=SCHEMA, strict=True),
    {"type": "custom", "name": "query"},
    description="All customers.",
)
BOTH = [function("lookup"), CRM]


def refused(*options: ReaderOptions, **parameters: Any) -> tuple[str | None, str, str]:
    with pytest.raises(SmgError) as caught:
        ask_of(*options, **parameters)
    return caught.value.where, caught.value.code, caught.value.message


def test_tools_of_a_namespace_are_told_under_flat_names() -> None:
    ask = ask_of(tools=BOTH)
    assert ask.tools == (
        Tool("lookup"),
        Tool("crm__lookup", "crm: All customers.\n\nFind one.", SCHEMA, strict=True),
        Tool("crm__query", None, CUSTOM_PARAMETERS),
    )
    assert ask.tools[1].where == "tools[1].tools[0].parameters"
    assert ask.custom_tools == ("crm__query",)
    assert ask.namespaced == {
        "crm__lookup": NamespacedName("crm", "lookup"),
        "crm__query": NamespacedName("crm", "query"),
    }
    assert ask.ignored == ()


def test_the_answer_repeats_a_namespace_as_it_came() -> None:
    assert ask_of(tools=[CRM]).echo["tools"] == [CRM]


def test_what_a_namespace_is_about_is_told_with_its_first_tool() -> None:
    about = "About it."
    (bare,) = ask_of(tools=[space("s", function("f"), description=about)]).tools
    assert bare.description == "s: About it."
    tools = ask_of(tools=[space("s", function("f"), function("g", description="G."))]).tools
    assert [tool.description for tool in tools] == [None, "G."]


def test_one_name_in_several_namespaces_is_several_tools() -> None:
    ask = ask_of(tools=[space("a", function("f")), space("b", function("f")), function("f")])
    assert [tool.name for tool in ask.tools] == ["a__f", "b__f", "f"]


def test_two_spellings_of_one_namespace_hold_its_tools_together() -> None:
    ask = ask_of(tools=[space("a", function("f")), space("a", function("g"))])
    assert [tool.name for tool in ask.tools] == ["a__f", "a__g"]
    where, code, _ = refused(tools=[space("a", function("f")), space("a", function("f"))])
    assert (where, code) == ("tools[1].tools[0].name", "invalid_value")


def test_a_hosted_tool_in_a_namespace_is_left_out() -> None:
    ask = ask_of(tools=[space("a", {"type": "web_search"}, function("f"), description="A.")])
    assert ask.tools == (Tool("a__f", "a: A."),)
    assert ask.ignored == ("tools[0].tools[0].web_search",)
    assert ask_of(tools=[space("empty")]).tools == ()


@pytest.mark.parametrize(
    ("tools", "where", "code"),
    [
        ([{"type": "namespace"}], "tools[0].name", "missing_required_parameter"),
        ([{"type": "namespace", "name": "a"}], "tools[0].tools", "missing_required_parameter"),
        ([space("")], "tools[0].name", "invalid_value"),
        ([space("a" * 129)], "tools[0].name", "invalid_value"),
        ([{**space("a"), "tools": {}}], "tools[0].tools", "invalid_type"),
        ([space("a", description=5)], "tools[0].description", "invalid_type"),
        ([space("a", {"name": "f"})], "tools[0].tools[0].type", "missing_required_parameter"),
        ([space("a", {"type": "function"})], "tools[0].tools[0].name", "missing_required_parameter"),
        ([space("a", function("f g"))], "tools[0].tools[0].name", "invalid_value"),
        ([space("a", space("b"))], "tools[0].tools[0].type", "unsupported_tool"),
        ([function("f"), function("f")], "tools[1].name", "invalid_value"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_namespace_has_a_path(tools: Any, where: str, code: str) -> None:
    assert refused(tools=tools)[:2] == (where, code)


def test_the_tools_of_namespaces_count_as_tools() -> None:
    options = ReaderOptions(tools_max=2, schema_max_bytes=100)
    spaces = [space("a", function("f"), function("g")), space("b", function("h"))]
    assert refused(options, tools=spaces)[:2] == ("tools", "invalid_value")
    assert len(ask_of(options, tools=spaces[:1]).tools) == 2
    long = [space("a", function("f", parameters=SCHEMA), function("g", parameters=SCHEMA))]
    assert refused(options, tools=long)[:2] == ("tools", "invalid_value")


LARK = 'start: "a"'


@pytest.mark.parametrize(
    ("about", "told"),
    [
        (None, f"The input must match this grammar (lark):\n{LARK}"),
        ("Edit.", f"Edit.\n\nThe input must match this grammar (lark):\n{LARK}"),
    ],
)
def test_a_grammar_of_free_text_is_told_to_the_model_and_named(
    about: str | None, told: str
) -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": LARK}
    custom = {"type": "custom", "name": "patch", "description": about, "format": form}
    ask = ask_of(tools=[custom])
    assert ask.tools == (Tool("patch", told, CUSTOM_PARAMETERS),)
    assert ask.ignored == ("tools[0].format",)
    assert ask.echo["tools"] == [custom]
    assert ask_of(tools=[{**custom, "format": {"type": "text"}}]).ignored == ()


@pytest.mark.parametrize(
    ("form", "where", "code"),
    [
        ({"type": "grammar"}, "tools[0].format.syntax", "missing_required_parameter"),
        (
            {"type": "grammar", "syntax": "peg", "definition": "x"},
            "tools[0].format.syntax",
            "invalid_value",
        ),
        (
            {"type": "grammar", "syntax": "regex", "definition": ""},
            "tools[0].format.definition",
            "invalid_value",
        ),
        (
            {"type": "grammar", "syntax": "lark", "definition": "é" * 32_769},
            "tools[0].format.definition",
            "invalid_value",
        ),
        ({"type": "json"}, "tools[0].format.type", "invalid_value"),
    ],
)
def test_a_mistake_in_a_grammar_of_free_text_has_a_path(form: Any, where: str, code: str) -> None:
    tools = [{"type": "custom", "name": "c", "format": form}]
    assert refused(tools=tools)[:2] == (where, code)


# ── The choice ───────────────────────────────────────────────────────────────

TWO = [CRM, space("hr", function("lookup"), function("hire")), function("plain")]


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        (function("lookup", namespace="crm"), ToolChoice("named", "crm__lookup")),
        ({"type": "custom", "name": "query"}, ToolChoice("named", "crm__query")),
        (function("hire"), ToolChoice("named", "hr__hire")),
        (function("plain"), ToolChoice("named", "plain")),
        (
            {"type": "namespace", "name": "hr"},
            ToolChoice("required", allowed=("hr__lookup", "hr__hire")),
        ),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [
                    {"type": "namespace", "name": "crm"},
                    function("lookup", namespace="hr"),
                    function("plain"),
                ],
            },
            ToolChoice(allowed=("crm__lookup", "crm__query", "hr__lookup", "plain")),
        ),
    ],
)
def test_a_tool_of_a_namespace_can_be_chosen(said: Any, choice: ToolChoice) -> None:
    ask = ask_of(tool_choice=said, tools=TWO)
    assert ask.choice == choice
    assert ask.echo["tool_choice"] == said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (function("nobody"), "tool_choice: there is no tool called 'nobody'"),
        (
            function("hire", namespace="crm"),
            "tool_choice: there is no tool called 'hire' in the namespace 'crm'",
        ),
        (
            {"type": "namespace", "name": "it"},
            "tool_choice: there is no namespace called 'it'",
        ),
        (
            function("lookup"),
            "tool_choice: several namespaces have a tool called 'lookup': add its namespace",
        ),
    ],
)
def test_a_choice_of_a_tool_that_is_not_there_says_so(said: Any, why: str) -> None:
    assert refused(tool_choice=said, tools=TWO) == ("tool_choice", "invalid_value", why)


def test_a_tool_can_only_be_chosen_where_there_are_tools() -> None:
    why = "tool_choice: is only allowed when tools are given"
    for said in ("required", function("f"), {"type": "namespace", "name": "a"}):
        assert refused(tool_choice=said) == ("tool_choice", "invalid_value", why)


# ── The history ──────────────────────────────────────────────────────────────


def test_a_call_of_a_namespace_goes_back_into_the_prompt_under_its_flat_name() -> None:
    rows = [
        {"role": "user", "content": "Who?"},
        {
            "type": "function_call", "call_id": "c1", "name": "lookup", "namespace": "crm",
            "arguments": '{"a":"b"}',
        },
        {"type": "function_call_output", "call_id": "c1", "output": "Ann"},
        {
            "type": "custom_tool_call", "call_id": "c2", "name": "query", "namespace": "crm",
            "input": "all",
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "Bob"},
        {
            "type": "function_call", "call_id": "c3", "name": "gone", "namespace": "old",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "c3", "output": "none"},
    ]  # fmt: skip
    for tools in ([CRM], None):
        ask = ask_of(tools=tools, input=rows)
        (prompt,) = generate_request(ask, ask.items).prompts
        assert isinstance(prompt, ChatPrompt)
        assert [call for turn in prompt.turns for call in turn.calls] == [
            ToolCall("c1", "crm__lookup", '{"a":"b"}'),
            ToolCall("c2", "crm__query", '{"input":"all"}'),
            ToolCall("c3", "old__gone", "{}"),
        ]
    assert ask_of(input=rows).items[1].values()["namespace"] == "crm"


@pytest.mark.parametrize("namespace", [5, "n" * 129])
def test_a_namespace_of_a_call_is_a_short_string(namespace: Any) -> None:
    row = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    where, _, _ = refused(input=[{**row, "namespace": namespace}])
    assert where == "input[0].namespace"
