"""Requests for models of others that are read here because of their tools, and what is passed on as it came."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from smg_node.pipeline.relay.relay_context import RelayParts
from smg_node.pipeline.relay.relay_request import Api, Relayable
from smg_node.pipeline.relay.relay_run import RelayRun
from smg_node.pipeline.relay.relays import Relays
from support.engines.relay_bench import relay_bench, told, worker
from support.http.http_node import Node, node
from support.http.raw_http import ask
from support.mcp.loop_world import Model, Servers, calls, loop, said, speech

PATH = "/v1/messages"
BETA = {"content-type": "application/json", "anthropic-beta": "mcp-client-2025-11-20"}
DEFINED = {"type": "url", "name": "w"}
WISH: dict[str, Any] = {
    "model": "m",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": [{"type": "mcp_toolset", "mcp_server_name": "w"}],
}
"""Of a model that only others have."""


class VendorRelays(Relays):
    """Relays to a vendor that speaks every API; notes what is passed on, and how often a model was looked up."""

    def __init__(self, parts: RelayParts) -> None:
        super().__init__(parts)
        self.asked = 0
        self.passed: list[str] = []

    def takes(self, model: object) -> bool:
        self.asked += 1
        return super().takes(model)

    def speaks(self, model: object, api: Api) -> bool:
        return model == "m"

    def start(self, asked: Relayable, *arguments: Any, **more: Any) -> RelayRun:
        self.passed.append(asked.model)
        return super().start(asked, *arguments, **more)


@asynccontextmanager
async def before_a_vendor(
    folder: Path, servers: Servers, *, runs_tools: bool = True
) -> AsyncIterator[tuple[Node, VendorRelays]]:
    async with relay_bench(folder, w=worker(lambda call: told({}))) as b, node() as at:
        reading = ReaderOptions(tool_servers=runs_tools)
        dialect = MessagesDialect(reading, ThoughtSeals(PlainVault()), lambda: 0.0)
        at.parts.dialects = {**at.parts.dialects, "messages": dialect}
        at.parts.reading = replace(at.parts.reading, tool_servers=runs_tools)
        at.parts.relays = relays = VendorRelays(b.relays.parts)
        at.parts.translating = loop(Model(speech(calls("weather")), speech(said("done"))), servers)
        yield at, relays


async def test_a_server_without_a_url_is_one_of_this_side_whoever_has_the_model(
    tmp_path: Path,
) -> None:
    servers = Servers({"w": ["weather"]})
    async with before_a_vendor(tmp_path, servers) as (at, relays):
        answer = await ask(at.port, "POST", PATH, {**WISH, "mcp_servers": [DEFINED]}, BETA)
        assert answer.status == 200
        assert answer.json()["content"][-1] == {"type": "text", "text": "done"}
        assert not relays.passed
    assert servers.listed == ["w"]


@pytest.mark.parametrize(
    ("named", "runs_tools"),
    [
        ([{**DEFINED, "url": "https://w.test/mcp"}], True),
        ([], True),
        (["w"], True),
        ({"w": DEFINED}, True),
        ([DEFINED], False),
    ],
)
async def test_what_names_no_server_of_this_side_is_passed_on(
    tmp_path: Path, named: Any, *, runs_tools: bool
) -> None:
    servers = Servers({"w": ["weather"]})
    async with before_a_vendor(tmp_path, servers, runs_tools=runs_tools) as (at, relays):
        await ask(at.port, "POST", PATH, {**WISH, "mcp_servers": named}, BETA)
        assert relays.passed == ["m"]
    assert not servers.listed


@pytest.mark.parametrize("more", [{}, {"logit_bias": {"1": 1}}])
async def test_a_chat_for_an_engine_is_looked_up_once(tmp_path: Path, more: dict[str, Any]) -> None:
    async with before_a_vendor(tmp_path, Servers({})) as (at, relays):
        said = {"model": "other", "messages": WISH["messages"], **more}
        answer = await ask(at.port, "POST", "/v1/chat/completions", said)
        assert answer.status == 200
        assert relays.asked == 1
