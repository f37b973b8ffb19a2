"""Fetches in answers of Messages: asked for, done by any server, shown in the vendor's shapes, and sent back."""

import json
from typing import Any

import pytest

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.builtin.server_builtins import ServerBuiltins
from support.answers.run_blocks import SEALS, Somebody
from support.clients import messages_judge as judge
from support.mcp.loop_world import Model, Servers, calls, heard, said, speech

DIALECT = MessagesDialect(ReaderOptions(tool_servers=True), SEALS, lambda: 0.0)
TYPES = [f"web_fetch_{date}" for date in ("20250910", "20260209", "20260309", "20260318")]


def body(kind: str, *more: Any, **settings: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 64,
        "tools": [{"type": kind, "name": "web_fetch", **settings}],
        "messages": [{"role": "user", "content": "Read https://a.org/"}, *more],
    }


async def fetch(tool: str, arguments: str, options: CallOptions) -> CallResult:
    url = json.loads(arguments)["url"]
    if "moved" in url:
        url = "https://b.org/"
    if "gone" in url:
        return CallResult(({"type": "text", "text": "404"},), is_error=True)
    page = {"url": url, "title": "Cats", "content": "They purr."}
    return CallResult((), json.dumps(page).encode())


async def answered(kind: str, *urls: str, **settings: Any) -> tuple[dict[str, Any], Servers, Model]:
    reading = DIALECT.read(body(kind, **settings), Somebody())
    servers = Servers({"web": ["get"]}, fetch, builtins={"web_fetch": ("web", "get")})
    model = Model(
        *(speech(calls("web_fetch", json.dumps({"url": url}))) for url in urls), speech(said("So."))
    )
    listener = await heard(
        model, servers, reading.request, dialect="messages", builtins=ServerBuiltins()
    )
    collector = Collector(1)
    collector.feed(listener.events)
    raw = DIALECT.presenter(reading, Somebody()).answer(collector.answer())
    judge.read_beta_whole(raw)
    found: dict[str, Any] = json.loads(raw)
    return found, servers, model


def results(message: dict[str, Any]) -> list[Any]:
    return [
        block["content"] for block in message["content"] if block["type"] == "web_fetch_tool_result"
    ]


@pytest.mark.parametrize("kind", TYPES)
async def test_a_page_is_a_document(kind: str) -> None:
    message, servers, model = await answered(kind, "https://a.org/")
    use, result, text = message["content"]
    assert (use["type"], use["name"], use["input"]) == (
        "server_tool_use", "web_fetch", {"url": "https://a.org/"},
    )  # fmt: skip
    assert use["id"].startswith("srvtoolu_")
    assert result["tool_use_id"] == use["id"]
    assert result["content"]["url"] == "https://a.org/"
    assert result["content"]["content"]["title"] == "Cats"
    assert result["content"]["content"]["source"]["data"] == "They purr."
    assert text["text"] == "So."
    assert message["usage"]["server_tool_use"]["web_fetch_requests"] == 1
    assert servers.ran == [("web", "get", '{"url":"https://a.org/"}')]
    assert model.results(1) == ["They purr."]


async def test_rules_of_the_request_are_enforced_in_the_vendors_words() -> None:
    message, servers, _ = await answered(
        TYPES[0],
        *("https://b.org/", "https://a.org/moved", "https://a.org/gone", "no address"),
        *("https://a.org/" + "x" * 3_000, "https://a.org/"),
        allowed_domains=["a.org"],
        max_uses=5,
    )
    codes = [result["error_code"] for result in results(message)]
    assert codes == [
        "url_not_allowed", "url_not_allowed", "url_not_accessible", "invalid_tool_input",
        "url_too_long", "max_uses_exceeded",
    ]  # fmt: skip
    assert len(servers.ran) == 2
    assert "server_tool_use" not in message["usage"]


async def test_an_answer_that_comes_back_shows_the_page_again() -> None:
    message, _, model = await answered(TYPES[0], "https://a.org/")
    again = body(
        TYPES[0],
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": "And?"},
    )
    request: GenerateRequest = DIALECT.read(again, Somebody()).request
    [prompt] = request.prompts
    assert isinstance(prompt, ChatPrompt)
    last = model.prompt(1).turns
    for before, after in zip(last, prompt.turns, strict=False):
        assert (after.role, after.content, after.answers_call) == (
            (before.role, before.content, before.answers_call)
        )
        assert [call.call_id for call in after.calls] == [call.call_id for call in before.calls]
