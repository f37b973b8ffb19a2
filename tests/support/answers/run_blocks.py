"""Runs of tools as clients of Messages send them back: blocks, and what a reader makes of conversations with them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Turn
from smg_node.dialects.dialect import Unknown
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.messages.tool_runs.block_names import SEALED_RESULTS
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

SEALS = ThoughtSeals(PlainVault())
READER = MessagesReader(ReaderOptions(tool_servers=True), SEALS)
SERVERS: dict[str, Any] = {
    "mcp_servers": [{"type": "url", "name": "docs", "url": "https://docs.test/mcp"}],
    "tools": [
        {"type": "mcp_toolset", "mcp_server_name": "docs"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "look", "input_schema": {"type": "object"}},
    ],
}
Block = dict[str, Any]


class Somebody(Unknown):
    """A caller who may name servers."""

    tenant = "t"
    headers: Mapping[str, str] = MappingProxyType({"anthropic-beta": "mcp-client-2026-09-15"})


def request(*messages: tuple[str, Any], **more: Any) -> GenerateRequest:
    rows = [{"role": role, "content": content} for role, content in messages]
    body = {"model": "m", "max_tokens": 5, "messages": rows, **SERVERS, **more}
    return READER.read(body, Somebody()).request


def prompt(*messages: tuple[str, Any], **more: Any) -> ChatPrompt:
    (found,) = request(*messages, **more).prompts
    assert isinstance(found, ChatPrompt)
    return found


def turns(*messages: tuple[str, Any], **more: Any) -> list[Turn]:
    return list(prompt(*messages, **more).turns)


def brief(found: list[Turn]) -> list[str]:
    """Return the turns as `role:text<calls>answered`."""
    return [
        f"{turn.role}:{turn.content or ''}"
        + "".join(f"<{call.call_id}>" for call in turn.calls)
        + (f"={turn.answers_call}" if turn.answers_call else "")
        for turn in found
    ]


def open_ids(*messages: tuple[str, Any], **more: Any) -> list[str]:
    serving = request(*messages, **more).serving
    return [] if serving is None else [call.call_id for call in serving.open_calls]


def refusal(*messages: tuple[str, Any], **more: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        request(*messages, **more)
    return caught.value


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def use(name: str, **more: Any) -> Block:
    return {
        "type": "mcp_tool_use",
        "id": name,
        "name": "find",
        "server_name": "docs",
        "input": {"q": name},
        **more,
    }


def result(name: str, said: Any = "found", **more: Any) -> Block:
    return {"type": "mcp_tool_result", "tool_use_id": name, "content": said, **more}


def client_call(name: str) -> Block:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def client_result(name: str) -> Block:
    return {"type": "tool_result", "tool_use_id": name, "content": "seen"}


GO = ("user", "go")


def server_use(name: str = "web_search") -> Block:
    return {"type": "server_tool_use", "id": "s", "name": name, "input": {"query": "q"}}


def server_result(kind: str, content: Any) -> Block:
    return {"type": f"{kind}_tool_result", "tool_use_id": "s", "content": content}


def searched(*encrypted: str) -> Block:
    rows = [
        {
            "type": "web_search_result",
            "url": f"https://{number}.test",
            "title": f"T{number}",
            "encrypted_content": sealed,
            "page_age": None,
        }
        for number, sealed in enumerate(encrypted)
    ]
    return server_result("web_search", rows)


def sealed(said: str, tenant: str = "t") -> str:
    return SEALS.seal(said, tenant=tenant, model=SEALED_RESULTS)
