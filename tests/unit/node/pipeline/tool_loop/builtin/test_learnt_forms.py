"""Built-in tools in the forms that gpt-oss has learnt: offered, called, run and told again as its answers go on."""

import json
from typing import Any

from smg_node.core.generation.pieces import Arguments, Call
from smg_node.core.generation.request import ChatPrompt, Tool, ToolCall, Turn
from smg_node.core.generation.tool_serving import AskedBuiltin, ToolServing
from smg_node.mcp.builtin.builtin_tool import builtin_tool
from smg_node.parsers.reading.format import FormatRequest
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.selection.registry import known_joint
from smg_node.pipeline.tool_loop.builtin.server_builtins import ServerBuiltins
from support.mcp.loop_world import Model, Pass, Servers, calls, heard, request, said, speech
from support.models.coded_prompts import coded
from support.models.prompt_corpus import NOW

RENDERER = coded("gpt_oss")
SERVED = ToolServing(
    builtins=(
        AskedBuiltin("web_search", "web_search"),
        AskedBuiltin("code_interpreter", "code_interpreter"),
    )
)
SEARCH = '<|channel|>analysis to=browser.search code<|message|>{"query":"tides","topn":3}<|call|>'
CODE = "<|channel|>analysis to=python code<|message|>print(\"a\\n\" if 1 < 2 else '<|')<|call|>"


def servers() -> Servers:
    return Servers(
        {"web": ["search"], "box": ["run"]},
        builtins={"web_search": ("web", "search"), "code_interpreter": ("box", "run")},
    )


def printed(text: str, tools: tuple[Tool, ...]) -> tuple[str, str]:
    """Return the call that is read of what the model prints."""
    form = known_joint().get("harmony")
    scanner = Scanner(
        form,
        asked=FormatRequest({tool.name: tool for tool in tools}),
        start="undecided",
        new_id=lambda _name, ordinal: f"call_{ordinal}",
        calls=True,
    )
    pieces = [*scanner.feed(text), *scanner.finish()]
    [name] = [piece.name for piece in pieces if isinstance(piece, Call)]
    return name, "".join(piece.text for piece in pieces if isinstance(piece, Arguments))


def render(prompt: ChatPrompt) -> str:
    return RENDERER.render(prompt, now=NOW)


async def passes(*printed_calls: str) -> tuple[list[str], Servers]:
    """Return the prompts of an answer whose model prints these calls, one in each pass."""
    tools = tuple(builtin_tool(one.kind, {}) for one in SERVED.builtins)
    scripts: list[Pass] = [
        speech(calls(*printed(text, tools), call_id=f"call_{at}"))
        for at, text in enumerate(printed_calls)
    ]
    model, at = Model(*scripts, speech(said("So."))), servers()
    await heard(model, at, request(SERVED, tools=["mine"]), builtins=ServerBuiltins())
    return [render(model.prompt(number)) for number in range(len(scripts) + 1)], at


async def test_prompts_go_on_from_what_the_model_printed() -> None:
    (first, second, third), at = await passes(SEARCH, CODE)
    found = "<|start|>browser.search to=assistant<|channel|>analysis<|message|>"
    assert second.startswith(f"{first}{SEARCH}{found}")
    assert third.startswith(f"{second}{CODE}<|start|>python to=assistant<|channel|>analysis")
    assert [json.loads(arguments) for _, _, arguments in at.ran] == [
        {"query": "tides"},
        {"code": "print(\"a\\n\" if 1 < 2 else '<|')"},
    ]


async def test_they_are_offered_in_the_system_message_and_functions_in_the_developers() -> None:
    (first,), _ = await passes()
    system, developer = first.split("<|start|>developer<|message|>")
    assert "# Tools\n\n## browser\n\nnamespace browser {" in system
    assert "type search = (_: {" in system
    assert "## python\n\n" in system
    assert system.index("## python") < system.index("# Valid channels")
    assert "must go to the commentary channel: 'functions'" in system
    assert "type mine = " in developer
    assert "web_search" not in first
    assert "code_interpreter" not in first


def test_without_functions_of_the_clients_there_is_no_word_of_them() -> None:
    tools = (builtin_tool("code_interpreter", {}),)
    text = render(ChatPrompt((Turn("user", "Hi"),), tools))
    assert "functions" not in text
    assert "<|start|>developer" not in text
    assert "browser" not in text


def test_a_part_of_the_browser_that_there_is_not_is_told_as_it_was_called() -> None:
    tools = (builtin_tool("web_search", {}),)
    lost = '<|channel|>analysis to=browser.find code<|message|>{"pattern":"a"}<|call|>'
    name, arguments = printed(lost, tools)
    assert name == "browser.find"
    turns = (
        Turn("user", "Hi"),
        Turn("assistant", None, calls=(ToolCall("c", name, arguments),)),
        Turn("tool", "there is no tool 'browser.find'", answers_call="c"),
    )
    text = render(ChatPrompt(turns, tools))
    assert lost in text
    assert "<|start|>browser.find to=assistant<|channel|>analysis<|message|>there is no" in text


def test_arguments_that_hold_no_program_are_told_as_they_are() -> None:
    tools = (builtin_tool("code_interpreter", {}),)
    for arguments in ('{"code":1}', "[" * 100_000, "print(1)"):
        told: Any = Turn("assistant", None, calls=(ToolCall("c", tools[0].name, arguments),))
        text = render(ChatPrompt((Turn("user", "Hi"), told), tools))
        assert f"to=python code<|message|>{arguments}<|call|>" in text
