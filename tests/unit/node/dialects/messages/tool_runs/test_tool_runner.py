"""The official client's tool runner over answers with runs: it goes on where one paused, and runs its own tools beside."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from anthropic import beta_tool

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
    FinishReason,
    Listed,
    RunEnd,
    RunStart,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, RunResult
from smg_node.dialects.dialect import Unknown
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from support.answers.run_blocks import SEALS
from support.clients import messages_judge as judge

FIND = ToolOwner("docs", "find")
SEARCH = ToolOwner("web", "search", "web_search")


class Head(Unknown):
    """A caller with the headers of a request."""

    tenant = "t"
    request_id = "req_1"

    def __init__(self, headers: httpx2.Headers) -> None:
        self.headers = {name.lower(): value for name, value in headers.items()}


def said(block: int, text: str) -> list[Event]:
    return [
        BlockStart(0, block, "text"),
        Delta(0, block, text, 1),
        BlockEnd(0, block, "text", text),
    ]


def called(block: int, name: str, arguments: str, owner: ToolOwner | None = None) -> list[Event]:
    return [
        BlockStart(0, block, "call", name, f"c{block}", owner=owner),
        Delta(0, block, arguments, 1),
        BlockEnd(0, block, "call", arguments, name, f"c{block}", owner=owner),
    ]


def ran(block: int, text: str) -> list[Event]:
    return [RunStart(0, block), RunEnd(0, block, RunResult(text))]


class Node:
    """A node whose model says what a script says, and that keeps the turns of each request."""

    def __init__(self) -> None:
        self.dialect = MessagesDialect(ReaderOptions(tool_servers=True), SEALS, lambda: 0.0)
        self.turns: list[tuple[Turn, ...]] = []
        self.pinned: list[bool] = []
        self.refused: list[str] = []
        self._script = self._answers()

    def answered(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        body, caller = json.loads(request.content), Head(request.headers)
        try:
            reading = self.dialect.read(body, caller)
        except SmgError as error:
            self.refused.append(error.code or "")
            status = self.dialect.error_status(error)
            return judge.replying(self.dialect.error_body(error, "req_1"), status)(request)
        (prompt,) = reading.request.prompts
        assert isinstance(prompt, ChatPrompt)
        assert reading.request.serving is not None
        self.turns.append(prompt.turns)
        self.pinned.append(reading.request.serving.servers[0].pinned is not None)
        presenter = self.dialect.presenter(reading, caller)
        reason, events = next(self._script)
        begin = Begin(f"{len(self.turns):032x}", "m", 5, 30)
        all_of_it = [begin, *events, Finish(0, reason), Usage(30, 9, 0), End()]
        if body.get("stream"):
            raw = b"".join(presenter.frames((event,)) for event in all_of_it)
            return judge.replying(raw, headers=judge.STREAM)(request)
        collector = Collector(1)
        collector.feed(all_of_it)
        return judge.replying(presenter.answer(collector.answer()))(request)

    def _answers(self) -> Iterator[tuple[FinishReason, list[Event]]]:
        listed = Listed("docs", (ListedTool("find", "F", {"type": "object"}),))
        yield (
            "pause",
            [listed, *said(0, "Well."), *called(1, "find", '{"q":1}', FIND), *ran(1, "A")],
        )
        # A call of the client's beside one of ours: the result of ours is there when the client answers.
        yield (
            "tool_calls",
            [
                *called(0, "add", '{"a":2,"b":3}'),
                *called(1, "search", '{"query":"x"}', SEARCH),
                *ran(1, "B"),
            ],
        )
        yield "stop", said(0, "Five.")


@beta_tool
def add(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: The one.
        b: The other.
    """
    return str(a + b)


WISH: dict[str, Any] = {
    "model": "m",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "go"}],
    "mcp_servers": [{"type": "url", "name": "docs", "url": "https://docs.test/mcp"}],
    "betas": ["mcp-client-2026-09-15"],
    "tools": [
        add,
        {"type": "mcp_toolset", "mcp_server_name": "docs"},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
}


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_runner_goes_on_where_an_answer_paused_and_answers_its_own_calls(
    *, stream: bool
) -> None:
    node = Node()
    with judge.client(node.answered) as client:
        runner: Any = client.beta.messages.tool_runner(**WISH, stream=stream)
        messages = [each.get_final_message() if stream else each for each in runner]
    stops = [message.stop_reason for message in messages]
    assert stops == ["pause_turn", "tool_use", "end_turn"]
    brief = [
        [(turn.role, turn.content, tuple(call.name for call in turn.calls)) for turn in turns]
        for turns in node.turns
    ]
    first = [("user", "go", ())]
    second = [*first, ("assistant", "Well.", ("find",)), ("tool", "A", ())]
    third = [
        *second,
        ("assistant", None, ("web_search",)),
        ("tool", "B", ()),
        ("assistant", None, ("add",)),
        ("tool", "5", ()),
    ]
    assert brief == [first, second, third]
    assert set(node.refused) <= {"thread_unsupported_request"}
    # The listing of the first answer came back, and the server is not asked again.
    assert node.pinned == [False, True, True]
