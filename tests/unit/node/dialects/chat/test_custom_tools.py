"""Custom tools of Chat Completions: shown to the model as functions of one string, and called with that string."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, Tool, ToolCall, ToolChoice
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.openai.functions import CUSTOM_PARAMETERS
from smg_node.dialects.options import ReaderOptions
from support.answers.sse_client import read_frames

LARK = 'start: "a"'


def custom(name: Any = "sql", **more: Any) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name, **more}}


def grammar(**more: Any) -> dict[str, Any]:
    return {"type": "grammar", "grammar": {"syntax": "lark", "definition": LARK, **more}}


FUNCTION = {"type": "function", "function": {"name": "f"}}


def body(**parameters: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **parameters}


def prompt_of(**parameters: Any) -> ChatPrompt:
    (prompt,) = ChatDialect(ReaderOptions()).read(body(**parameters)).request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


def refusal(**parameters: Any) -> tuple[str | None, str]:
    with pytest.raises(SmgError) as caught:
        prompt_of(**parameters)
    return caught.value.where, caught.value.code


def test_a_custom_tool_is_told_as_a_function_of_one_string() -> None:
    tools = [custom(description="Ask.", format={"type": "text"}), FUNCTION]
    assert prompt_of(tools=tools).tools == (
        Tool("sql", "Ask.", CUSTOM_PARAMETERS),
        Tool("f"),
    )


@pytest.mark.parametrize(
    ("about", "told"),
    [
        (None, f"The input must match this grammar (lark):\n{LARK}"),
        ("Ask.", f"Ask.\n\nThe input must match this grammar (lark):\n{LARK}"),
    ],
)
def test_its_grammar_is_told_in_words_and_named(about: str | None, told: str) -> None:
    tools = [custom(description=about, format=grammar())]
    request = ChatDialect(ReaderOptions()).read(body(tools=tools)).request
    assert request.ignored == ("tools[0].custom.format",)
    (prompt,) = request.prompts
    assert isinstance(prompt, ChatPrompt)
    assert prompt.tools == (Tool("sql", told, CUSTOM_PARAMETERS),)


@pytest.mark.parametrize(
    ("tool", "where", "code"),
    [
        (custom(None), "tools[0].custom.name", "missing_required_parameter"),
        (custom("a b"), "tools[0].custom.name", "invalid_value"),
        (custom(format="text"), "tools[0].custom.format", "invalid_type"),
        (custom(format={}), "tools[0].custom.format.type", "missing_required_parameter"),
        (custom(format={"type": "peg"}), "tools[0].custom.format.type", "invalid_value"),
        (
            custom(format={"type": "grammar"}),
            "tools[0].custom.format.grammar",
            "missing_required_parameter",
        ),
        (
            custom(format=grammar(syntax="peg")),
            "tools[0].custom.format.grammar.syntax",
            "invalid_value",
        ),
        (
            custom(format=grammar(definition="")),
            "tools[0].custom.format.grammar.definition",
            "invalid_value",
        ),
    ],
)
def test_a_mistake_in_a_custom_tool_has_its_path(tool: Any, where: str, code: str) -> None:
    assert refusal(tools=[tool]) == (where, code)


def test_a_function_and_a_custom_tool_cannot_have_one_name() -> None:
    assert refusal(tools=[FUNCTION, custom("f")]) == ("tools[1].custom.name", "invalid_value")


def test_a_custom_tool_can_be_chosen() -> None:
    named = {"type": "custom", "custom": {"name": "sql"}}
    tools = [custom(), FUNCTION]
    choice = prompt_of(tools=tools, tool_choice=named).choice
    assert choice == ToolChoice("named", "sql", where="tool_choice")
    allowed = {"mode": "auto", "tools": [named]}
    many = {"type": "allowed_tools", "allowed_tools": allowed}
    assert prompt_of(tools=tools, tool_choice=many).choice.allowed == ("sql",)
    other = {"type": "custom", "custom": {"name": "g"}}
    assert refusal(tools=tools, tool_choice=other) == ("tool_choice", "invalid_value")


def call(**custom: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "custom", "custom": custom}


def messages(*calls: Any) -> list[Any]:
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": list(calls)},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]


def test_a_call_of_a_history_is_shown_as_the_model_made_it() -> None:
    turns = prompt_of(messages=messages(call(name="sql", input='SELECT "é"\n'))).turns
    assert turns[1].calls == (ToolCall("c1", "sql", '{"input":"SELECT \\"é\\"\\n"}'),)
    assert turns[2].answers_call == "c1"
    assert prompt_of(messages=messages(call(name="sql", input=""))).turns[1].calls[0].arguments == (
        '{"input":""}'
    )


@pytest.mark.parametrize(
    ("made", "where", "code"),
    [
        ({"id": "c1", "type": "custom"}, "custom", "missing_required_parameter"),
        (call(input="x"), "custom.name", "missing_required_parameter"),
        (call(name="sql"), "custom.input", "missing_required_parameter"),
        (call(name="sql", input={}), "custom.input", "invalid_type"),
    ],
)
def test_a_mistake_in_such_a_call_has_its_path(made: Any, where: str, code: str) -> None:
    assert refusal(messages=messages(made)) == (f"messages[1].tool_calls[0].{where}", code)


def events(*pieces: str) -> list[Event]:
    text = "".join(pieces)
    return [
        Begin("1", "m", 5, 3, "fp_1"),
        BlockStart(0, 0, "call", "sql", "c1"),
        *(Delta(0, 0, piece, 1) for piece in pieces),
        BlockEnd(0, 0, "call", text, "sql", "c1"),
        BlockStart(0, 1, "call", "f", "c2"),
        Delta(0, 1, '{"a":1}', 1),
        BlockEnd(0, 1, "call", '{"a":1}', "f", "c2"),
        Finish(0, "tool_calls"),
        Usage(3, 2, 0),
        End(),
    ]


PIECES = [
    (('{"in', 'put":"SELECT \\"1', '\\""}'), 'SELECT "1"'),
    (('{"input": "a", "b": 1}',), "a"),
    (('{"input": "cut o',), '{"input": "cut o'),
    ((), ""),
]


@pytest.mark.parametrize(("pieces", "given"), PIECES)
def test_a_call_is_answered_with_its_input(pieces: tuple[str, ...], given: str) -> None:
    dialect = ChatDialect(ReaderOptions())
    presenter = dialect.presenter(dialect.read(body(tools=[custom(), FUNCTION])))
    collector = Collector(1)
    collector.feed(events(*pieces))
    said = json.loads(presenter.answer(collector.answer()))
    (choice,) = said["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": given}},
        {"id": "c2", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
    ]
    first = ChatCompletion.model_validate(said, strict=True).choices[0].message.tool_calls
    assert first is not None
    assert first[0].type == "custom"


@pytest.mark.parametrize(("pieces", "given"), PIECES)
def test_a_streamed_call_has_its_input_in_one_piece(pieces: tuple[str, ...], given: str) -> None:
    dialect = ChatDialect(ReaderOptions())
    wanted = body(tools=[custom(), FUNCTION], stream=True)
    presenter = dialect.presenter(dialect.read(wanted))
    raw = b"".join(presenter.frames([event]) for event in events(*pieces))
    calls = [
        one
        for frame in read_frames(raw).chunks
        for choice in frame["choices"]
        for one in choice["delta"].get("tool_calls", ())
    ]
    assert calls == [
        {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sql", "input": ""}},
        {"index": 0, "custom": {"input": given}},
        {
            "index": 1,
            "id": "c2",
            "type": "function",
            "function": {"name": "f", "arguments": ""},
        },
        {"index": 1, "function": {"arguments": '{"a":1}'}},
    ]
