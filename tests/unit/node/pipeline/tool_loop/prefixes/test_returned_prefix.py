"""Returned prefix: the prompt of a next request begins with that of the last pass, in whatever API the answer came back.

Calls that were made at once come back as one turn, those that were made one after the other as several.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Turn
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.pipeline.tool_loop.search.tool_searches import ToolSearches
from smg_node.prompts.renderer import Renderer
from support.answers.responses import ask_of, items_from, teller_of
from support.answers.run_blocks import SEALS, Somebody
from support.mcp.loop_world import Model, Pass, Servers, calls, heard, said, speech
from support.models.coded_prompts import FAMILIES as CODED
from support.models.coded_prompts import coded
from support.models.family_templates import FAMILIES
from support.models.prompt_corpus import NOW, renderer, source

Row = dict[str, Any]
READ = ReaderOptions(tool_servers=True)
DIALECT = MessagesDialect(READ, SEALS, lambda: 0.0)
W = {"w": ["tides", "weather"]}
QUESTION = {"role": "user", "content": "What now?"}
NEXT = {"role": "user", "content": "And tomorrow?"}
TEMPLATES: dict[str, Renderer] = {
    "chatml": renderer(source("chatml")),
    "llama": renderer(source("llama")),
    "channels": renderer(source("channels")),
    **{name: coded(name) for name in CODED},
    **{name: renderer(family.template) for name, family in FAMILIES.items() if not family.prompt},
}
PASSES: tuple[Pass, ...] = (
    speech(calls("weather", '{"city":"Bonn"}', call_id="a")),
    speech(
        said("It rains."),
        calls("tides", '{"port":"Brest","day":1}', block=1, call_id="b"),
        calls("tides", '{"port":"Ο Πειραιάς"}', block=2, call_id="c"),
    ),
    speech(
        calls("tides", '{"port":"Bergen"}', call_id="d"),
        said("And there?", block=1),
        calls("weather", "{}", block=2, call_id="e"),
    ),
    speech(calls("weather", '{"city":"Oslo"}', call_id="f")),
    speech(said("Go at five.")),
)


def responses_request(*rows: Row, **more: Any) -> GenerateRequest:
    tools: list[Row] = [{"type": "mcp", "server_label": "w", "require_approval": "never"}]
    tools += [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    ask = ask_of(READ, **{"input": list(rows), "tools": tools, **more})
    return generate_request(ask, list(items_from(rows)))


def responses_answer(events: Sequence[Event]) -> list[Row]:
    teller = teller_of()
    teller.begin()
    teller.tell(events)
    return [doc.values() for doc in teller.output()]


def messages_body(*rows: Row) -> Row:
    return {
        "model": "m",
        "max_tokens": 64,
        "mcp_servers": [{"type": "url", "name": "w"}],
        "tools": [
            {"type": "mcp_toolset", "mcp_server_name": "w"},
            {"name": "look", "input_schema": {"type": "object"}},
        ],
        "messages": list(rows),
    }


def messages_request(*rows: Row) -> GenerateRequest:
    return DIALECT.read(messages_body(*rows), Somebody()).request


def messages_answer(events: Sequence[Event]) -> list[Row]:
    presenter = DIALECT.presenter(DIALECT.read(messages_body(QUESTION), Somebody()), Somebody())
    collector = Collector(1)
    collector.feed(events)
    content = json.loads(presenter.answer(collector.answer()))["content"]
    return [{"role": "assistant", "content": content}]


Api = tuple[Callable[..., GenerateRequest], Callable[[Sequence[Event]], list[Row]]]
APIS: dict[str, Api] = {
    "responses": (responses_request, responses_answer),
    "messages": (messages_request, messages_answer),
}


def prompt_of(request: GenerateRequest) -> ChatPrompt:
    (prompt,) = request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


async def asked(api: str, passes: Sequence[Pass], *rows: Row) -> tuple[list[ChatPrompt], list[Row]]:
    """Return the prompts of all passes of an answer, and the answer as its client sends it back."""
    read, shown = APIS[api]
    model = Model(*passes)
    listener = await heard(model, Servers(W), read(*rows), dialect=api)
    assert len(model.runs) == len(passes)
    return [model.prompt(at) for at in range(len(passes))], shown(listener.events)


def goes_on(before: ChatPrompt, after: ChatPrompt) -> None:
    """Check in every template that one prompt goes on from another."""
    for name, template in TEMPLATES.items():
        ids, longer = (template.render(one, now=NOW).encode() for one in (before, after))
        assert longer[: len(ids)] == ids, name
        assert len(longer) > len(ids), name


def brief(turns: Sequence[Turn]) -> list[str]:
    return [" ".join((turn.role, *(call.name for call in turn.calls))) for turn in turns]


@pytest.mark.parametrize("api", APIS)
async def test_the_next_request_goes_on_from_the_last_pass(api: str) -> None:
    passes, answer = await asked(api, PASSES, QUESTION)
    (following,), _ = await asked(api, [speech(said("So."))], QUESTION, *answer, NEXT)
    goes_on(passes[-1], following)
    assert brief(following.turns) == [
        "user",
        "assistant weather", "tool",
        "assistant tides tides", "tool", "tool",
        "assistant tides weather", "tool", "tool",
        "assistant weather", "tool",
        "assistant", "user",
    ]  # fmt: skip


@pytest.mark.parametrize("api", APIS)
async def test_thoughts_and_calls_of_the_clients_go_on_as_well(api: str) -> None:
    passes, answer = await asked(
        api,
        [
            speech(
                said("Let me see.", kind="reasoning"),
                calls("weather", '{"city":"Bonn"}', block=1, call_id="a"),
                calls("tides", "{}", block=2, call_id="b"),
            ),
            speech(
                said("And here?", kind="reasoning"),
                calls("weather", '{"city":"Kiel"}', block=1, call_id="c"),
                calls("look", '{"at": 1}', block=2, call_id="d"),
                reason="tool_calls",
            ),
        ],
        QUESTION,
    )
    result: Row = {"type": "function_call_output", "call_id": "d", "output": "A gull."}
    if api == "messages":
        use = answer[0]["content"][-1]
        assert use["type"] == "tool_use"
        block = {"type": "tool_result", "tool_use_id": use["id"], "content": "A gull."}
        result = {"role": "user", "content": [block]}
    (following,), _ = await asked(api, [speech(said("So."))], QUESTION, *answer, result)
    goes_on(passes[-1], following)
    first = ["user", "assistant weather tides", "tool", "tool"]
    mixed = {
        "responses": ["assistant weather look", "tool", "tool"],
        # Where the client's call is behind the result of ours: a client of Messages sends it back so.
        "messages": ["assistant weather", "tool", "assistant look", "tool"],
    }
    assert brief(following.turns) == [*first, *mixed[api]]


async def test_calls_that_people_answered_go_on() -> None:
    asks = [
        {"type": "mcp", "server_label": "w", "require_approval": "always"},
        {"type": "function", "name": "look", "parameters": {"type": "object"}},
    ]

    async def asked_of(*rows: Row, passes: Sequence[Pass]) -> tuple[list[ChatPrompt], list[Row]]:
        model = Model(*passes)
        request = responses_request(*rows, tools=asks, store=False)
        listener = await heard(model, Servers(W), request)
        return [model.prompt(at - len(passes)) for at in range(len(passes))], responses_answer(
            listener.events
        )

    first = speech(
        calls("weather", '{"city":"Bonn"}', call_id="a"),
        calls("tides", '{"port":"Brest"}', block=1, call_id="b"),
        calls("tides", '{"port":"Bergen"}', block=2, call_id="c"),
        calls("weather", '{"city":"Oslo"}', block=3, call_id="d"),
    )
    _, requests = await asked_of(QUESTION, passes=[first])
    ids = [row["id"] for row in requests if row["type"] == "mcp_approval_request"]
    assert len(ids) == 4
    answers = [
        {"type": "mcp_approval_response", "approval_request_id": one, "approve": at not in (1, 2)}
        for at, one in enumerate(ids)
    ]
    history = [QUESTION, *requests, *answers]
    again = speech(said("Both are known."))
    passes, told = await asked_of(*history, passes=[again])
    assert brief(passes[0].turns)[1] == "assistant tides tides weather weather"
    following, _ = await asked_of(*history, *told, NEXT, passes=[speech(said("So."))])
    goes_on(passes[0], following[0])


async def test_searches_at_once_come_back_with_their_own_outputs() -> None:
    tools = [
        {"type": "tool_search"},
        {
            "type": "mcp", "server_label": "w", "require_approval": "never", "defer_loading": True,
        },
    ]  # fmt: skip

    async def asked_of(*rows: Row, passes: Sequence[Pass]) -> tuple[list[ChatPrompt], list[Row]]:
        model = Model(*passes)
        listener = await heard(
            model, Servers(W), responses_request(*rows, tools=tools), search=ToolSearches()
        )
        return [model.prompt(at) for at in range(len(passes))], responses_answer(listener.events)

    passes, told = await asked_of(
        QUESTION,
        passes=[
            speech(
                calls("tool_search", '{"query":"weather"}', call_id="a"),
                calls("tool_search", '{"query":"tides"}', block=1, call_id="b"),
            ),
            speech(said("I have both.")),
        ],
    )
    outputs = [row for row in told if row["type"] == "tool_search_output"]
    searches = [row for row in told if row["type"] == "tool_search_call"]
    assert [one["id"][4:] for one in searches] == [one["id"][4:] for one in outputs]
    late = [row for row in told if row not in outputs]
    shuffled = [*late[:-1], *reversed(outputs), late[-1]]
    following, _ = await asked_of(QUESTION, *shuffled, NEXT, passes=[speech(said("So."))])
    assert brief(following[0].turns)[1] == "assistant tool_search tool_search"
    goes_on(passes[-1], following[0])


def test_items_without_ids_of_ours_are_turns_of_their_own() -> None:
    row = {
        "type": "mcp_call",
        "server_label": "w",
        "name": "tides",
        "arguments": "{}",
        "output": "x",
    }
    for ids in (("mcp_1", "mcp_2"), ("mcp_1", "mcp_1x"), ("", "")):
        rows = [{**row, "id": one} if one else row for one in ids]
        turns = prompt_of(responses_request(QUESTION, *rows, NEXT)).turns
        assert brief(turns) == ["user", *["assistant tides", "tool"] * 2, "user"]
