"""Counts of tokens have the tools of this side in them, as the prompt of a generation would."""

from dataclasses import replace
from typing import Any

import pytest

from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from smg_node.http.ports.tokens import Tokenized
from smg_node.mcp.failures import bare_status
from support.history import history_world
from support.history.history_world import WordMeasure, WordMeasures
from support.http.fake_tokens import FakeTokens
from support.http.history_routes import Here
from support.http.http_node import node
from support.http.raw_http import Response, ask
from support.mcp.loop_world import Model, Servers, loop

WISH: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "mcp_servers": [{"type": "url", "name": "w"}],
    "tools": [
        {"type": "mcp_toolset", "mcp_server_name": "w"},
        {"name": "mine", "input_schema": {"type": "object"}},
    ],
}


class CountedNames(FakeTokens):
    """Counts one token for each tool that a prompt shows."""

    async def tokenize(self, model: str, prompt: Any) -> Tokenized:
        assert isinstance(prompt, ChatPrompt)
        return Tokenized(range(len(prompt.tools)), 0)


async def counted(servers: Servers, wish: dict[str, Any]) -> Response:
    async with node() as at:
        seals = ThoughtSeals(PlainVault())
        dialect = MessagesDialect(ReaderOptions(tool_servers=True), seals, lambda: 0.0)
        at.parts.dialects = {**at.parts.dialects, "messages": dialect}
        at.parts.tokens = CountedNames()
        at.parts.shown_prompt = loop(Model(), servers).shown_prompt
        beta = {"anthropic-beta": "mcp-client-2025-11-20"}
        return await ask(at.port, "POST", "/v1/messages/count_tokens", wish, beta)


async def test_tools_of_servers_count() -> None:
    servers = Servers({"w": ["weather", "drop"]})
    assert (await counted(servers, WISH)).json() == {"input_tokens": 3}
    assert servers.listed == ["w"]
    own = {**WISH, "mcp_servers": [], "tools": WISH["tools"][1:]}
    assert (await counted(servers, own)).json() == {"input_tokens": 1}
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    told = (await counted(servers, {**WISH, "context_management": edits})).json()
    assert told["input_tokens"] == told["context_management"]["original_input_tokens"] == 3


async def test_a_server_that_is_away_fails_the_count_as_it_would_the_answer() -> None:
    servers = Servers({"w": ["weather"]})
    servers.failing["w"] = bare_status(503)
    assert (await counted(servers, WISH)).status == 502


class NameMeasure(WordMeasure):
    """Counts one token for each tool that a prompt shows."""

    async def count(self, prompt: Any) -> int:
        assert isinstance(prompt, ChatPrompt)
        return len(prompt.tools)


class NameMeasures(WordMeasures):
    def __init__(self) -> None:
        super().__init__(None)
        self.measure = NameMeasure(None)


async def response_counted(servers: Servers, monkeypatch: pytest.MonkeyPatch, **wish: Any) -> Any:
    monkeypatch.setattr(history_world, "WordMeasures", lambda context: NameMeasures())
    async with node(history=Here()) as at:
        reading = replace(at.parts.reading, tool_servers=True)
        at.parts.retune(at.parts.options, reading, at.parts.dialects)
        at.parts.shown_prompt = loop(Model(), servers).shown_prompt
        body = {"model": "m", "input": "Hi", **wish}
        return await ask(at.port, "POST", "/v1/responses/input_tokens", body)


async def test_tools_of_servers_count_in_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers({"w": ["weather", "drop"]})
    mine = {"type": "function", "name": "mine", "parameters": {"type": "object"}}
    both = [{"type": "mcp", "server_label": "w"}, mine]
    told = (await response_counted(servers, monkeypatch, tools=both)).json()
    assert told == {"object": "response.input_tokens", "input_tokens": 3}
    assert servers.listed == ["w"]
    assert (await response_counted(servers, monkeypatch, tools=[mine])).json()["input_tokens"] == 1
    assert servers.listed == ["w"]
    servers.failing["w"] = bare_status(503)
    away = await response_counted(servers, monkeypatch, tools=both)
    assert away.json()["input_tokens"] == 1
