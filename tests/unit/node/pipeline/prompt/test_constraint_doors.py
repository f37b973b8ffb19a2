"""Every door that takes a pattern, a schema or a grammar names the place of one that no engine could use."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.completions.dialect import CompletionsDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.system_clock import SystemClock
from support.answers.responses import ask_of

PATTERN = {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
NAMES: dict[str, Any] = {"patternProperties": {"(": {}}}
BROKEN = "properties.a.pattern"
NAMED = "patternProperties['(']"
LONG = "root ::= " + " | ".join(f'"{at}"' for at in range(500)) + " | missing"


def tool(**more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": PATTERN, **more}}


def schema_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}


def tag(**part: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "format": part}


def chat(body: dict[str, Any]) -> GenerateRequest:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
    return ChatDialect(ReaderOptions()).read(asked).request


def completion(body: dict[str, Any]) -> GenerateRequest:
    return CompletionsDialect(ReaderOptions()).read({"model": "m", "prompt": "hi", **body}).request


def response(body: dict[str, Any]) -> GenerateRequest:
    ask = ask_of(**body)
    return generate_request(ask, ask.items)


def refusal(request: GenerateRequest) -> tuple[str | None, str, int]:
    """Return where, with which code and status the request is refused."""

    async def check() -> None:
        with ThreadPoolExecutor(1) as threads:
            preparer = Preparer(clock=SystemClock(), threads=threads)
            await preparer.constraints(request, Printing(Chosen("think", "hermes")))

    with pytest.raises(SmgError) as caught:
        asyncio.run(check())
    return caught.value.where, caught.value.code, caught.value.status


@pytest.mark.parametrize("door", [chat, completion])
@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"regex": "("}, "regex"),
        ({"guided_regex": "[a"}, "guided_regex"),
        ({"structured_outputs": {"regex": "*"}}, "structured_outputs.regex"),
        ({"ebnf": "root ::= ("}, "ebnf"),
        ({"grammar": "hello"}, "grammar"),
        ({"grammar": LONG}, "grammar"),
        ({"guided_grammar": "root ::= x"}, "guided_grammar"),
        ({"structured_outputs": {"grammar": "start: x"}}, "structured_outputs.grammar"),
        (
            {"structural_tag": tag(type="regex", pattern="(")},
            "structural_tag.format.pattern",
        ),
        (
            {"response_format": tag(type="grammar", grammar="hello")},
            "response_format.format.grammar",
        ),
    ],
)
def test_a_pattern_or_grammar_that_cannot_be_used_is_refused_at_its_place(
    door: Any, parameters: dict[str, Any], where: str
) -> None:
    assert refusal(door(parameters)) == (where, "invalid_value", 400)


@pytest.mark.parametrize("door", [chat, completion])
@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"json_schema": PATTERN}, f"json_schema.{BROKEN}"),
        ({"guided_json": NAMES}, f"guided_json.{NAMED}"),
        ({"structured_outputs": {"json": PATTERN}}, f"structured_outputs.json.{BROKEN}"),
        (
            {"response_format": schema_format(PATTERN)},
            f"response_format.json_schema.schema.{BROKEN}",
        ),
        (
            {"response_format": schema_format(NAMES)},
            f"response_format.json_schema.schema.{NAMED}",
        ),
        (
            {"structural_tag": tag(type="json_schema", json_schema=PATTERN)},
            f"structural_tag.format.json_schema.{BROKEN}",
        ),
    ],
)
def test_a_schema_with_a_broken_pattern_is_refused_at_the_pattern(
    door: Any, parameters: dict[str, Any], where: str
) -> None:
    assert refusal(door(parameters)) == (where, "invalid_json_schema", 400)


@pytest.mark.parametrize(
    "parameters",
    [
        {"tools": [tool(strict=True)]},
        {"tools": [tool()], "tool_choice": "required"},
        {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "f"}}},
    ],
)
def test_a_tool_that_its_calls_are_held_to_is_refused_at_its_pattern(
    parameters: dict[str, Any],
) -> None:
    where = f"tools[0].function.parameters.{BROKEN}"
    assert refusal(chat(parameters)) == (where, "invalid_json_schema", 400)


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": PATTERN}}},
            f"text.format.schema.{BROKEN}",
        ),
        (
            {
                "tools": [{"type": "function", "name": "f", "parameters": PATTERN, "strict": True}],
            },
            f"tools[0].parameters.{BROKEN}",
        ),
        (
            {
                "tools": [{"type": "function", "name": "f", "parameters": NAMES, "strict": False}],
                "tool_choice": "required",
            },
            f"tools[0].parameters.{NAMED}",
        ),
    ],
)
def test_a_response_is_refused_at_its_pattern(parameters: dict[str, Any], where: str) -> None:
    assert refusal(response(parameters)) == (where, "invalid_json_schema", 400)


# What Codex declares for `apply_patch`, as far as its notation goes.
PATCH = """start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: "*** Add File: " /(.+)/ LF add+ -> add | "*** Delete File: " /(.+)/ LF
add: "+" /(.*)/ LF -> line

%import common.LF
"""


def custom(syntax: str, definition: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a custom tool with a grammar, as Chat and as Responses spell it."""
    grammar = {"syntax": syntax, "definition": definition}
    form = {"type": "grammar", "grammar": grammar}
    chats = {"type": "custom", "custom": {"name": "f", "format": form}}
    return chats, {"type": "custom", "name": "f", "format": {"type": "grammar", **grammar}}


@pytest.mark.parametrize(("syntax", "definition"), [("regex", "("), ("lark", "start: x")])
def test_the_grammar_of_a_custom_tool_is_refused_at_its_place(syntax: str, definition: str) -> None:
    chats, responds = custom(syntax, definition)
    where = "tools[0].custom.format.grammar.definition"
    assert refusal(chat({"tools": [chats]})) == (where, "invalid_value", 400)
    where = "tools[0].format.definition"
    assert refusal(response({"tools": [responds]})) == (where, "invalid_value", 400)
    added = [{"type": "additional_tools", "tools": [responds]}, {"role": "user", "content": "x"}]
    where = "input[0].tools[0].format.definition"
    assert refusal(response({"input": added})) == (where, "invalid_value", 400)


@pytest.mark.parametrize(("syntax", "definition"), [("regex", "a+"), ("lark", PATCH)])
def test_the_grammar_of_a_custom_tool_that_can_be_read_passes(syntax: str, definition: str) -> None:
    request = chat({"tools": [custom(syntax, definition)[0]]})

    async def check() -> None:
        with ThreadPoolExecutor(1) as threads:
            preparer = Preparer(clock=SystemClock(), threads=threads)
            await preparer.constraints(request, Printing(Chosen("think", "hermes")))

    asyncio.run(check())
    assert request.ignored == ("tools[0].custom.format",)


def test_a_tool_that_nothing_is_held_to_may_have_any_pattern() -> None:
    request = chat({"tools": [tool()]})

    async def check() -> None:
        with ThreadPoolExecutor(1) as threads:
            preparer = Preparer(clock=SystemClock(), threads=threads)
            await preparer.constraints(request, Printing(Chosen("think", "hermes")))

    asyncio.run(check())
    assert request.prompts[0].tools[0].parameters == PATTERN  # type: ignore[union-attr]  # a chat
