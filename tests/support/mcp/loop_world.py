"""World of a tool loop: a model that speaks by script, servers in memory, and whoever hears the answer."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    RunEnd,
    Usage,
)
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    Tool,
    ToolChoice,
    Turn,
)
from smg_node.core.generation.tool_serving import (
    AskedServer,
    BuiltinKind,
    RunResult,
    ToolServing,
)
from smg_node.core.ids import IdSource
from smg_node.core.request_context import RequestContext
from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.failures import Failure
from smg_node.mcp.pool import Target
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.tool_servers import PLAIN_CALL, CallOptions, ResolvedServer, ToolServers
from smg_node.mcp.tools.tool import Tool as ServerTool
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.loop_parts import LoopParts
from smg_node.pipeline.tool_loop.serving_generations import ServingGenerations
from smg_node.system_clock import SystemClock, system_rng
from support.history.fake_runs import FakeGenerations, FakeRun

CONTEXT = RequestContext("r-1", 0.0, 1e12, tenant="acme")
Work = Callable[[str, str, CallOptions], Awaitable[CallResult | Failure]]
"""What a server does: the tool, its arguments, how it is called."""


def said(text: str, *, block: int = 0, kind: Any = "text") -> list[Event]:
    """Return a block of text in two deltas."""
    half = len(text) // 2
    return [
        BlockStart(0, block, kind),
        Delta(0, block, text[:half], 1),
        Delta(0, block, text[half:], 1),
        BlockEnd(0, block, kind, text),
    ]


_ids = itertools.count()


def calls(name: str, arguments: str = "{}", *, block: int = 0, call_id: str = "") -> list[Event]:
    """Return a block in which a tool is called."""
    call_id = call_id or f"call_{next(_ids)}"
    return [
        BlockStart(0, block, "call", name, call_id),
        Delta(0, block, arguments, 1),
        BlockEnd(0, block, "call", arguments, name, call_id),
    ]


Pass = Sequence[Sequence[Event]]
"""What a pass says, wake-up by wake-up."""


def speech(*blocks: list[Event], reason: FinishReason = "stop", usage: Usage | None = None) -> Pass:
    """Return a whole pass, each block in a wake-up of its own."""
    cost = usage or Usage(10, 4, 2)
    return [
        [Begin("b" * 32, "m", 5, 10)],
        *blocks,
        [Finish(0, reason), cost, End()],
    ]


def breaks(*blocks: list[Event], error: SmgError) -> Pass:
    """Return a pass that fails after these blocks."""
    return [[Begin("b" * 32, "m", 5, 10)], *blocks, [Fail(error)]]


class Model(FakeGenerations):
    """A model that speaks by script: one entry for each pass."""

    def __init__(self, *passes: Pass, step_s: float | None = None) -> None:
        super().__init__(self._speak)
        self._passes = iter(passes)
        self._step_s = step_s

    async def _speak(self, run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        for batch in next(self._passes):
            await asyncio.sleep(0 if self._step_s is None else self._step_s)
            yield batch

    def prompt(self, number: int) -> ChatPrompt:
        """Return what the n-th pass was asked."""
        prompt = self.runs[number].request.prompts[0]
        assert isinstance(prompt, ChatPrompt)
        return prompt

    def results(self, number: int) -> list[str]:
        """Return what the n-th pass was shown of tools, in order."""
        return [str(turn.content) for turn in self.prompt(number).turns if turn.role == "tool"]


async def echoes(tool: str, arguments: str, options: CallOptions) -> CallResult:
    """Answer with the tool and its arguments."""
    await asyncio.sleep(0)
    if options.sending is not None:
        options.sending()
    await asyncio.sleep(0)
    return CallResult(({"type": "text", "text": f"{tool} {arguments}"},))


class Servers:
    """Servers in memory, by label; see `ToolServers`. `ran` are the calls that were sent."""

    def __init__(
        self,
        tools: Mapping[str, Sequence[str | ServerTool]],
        work: Work = echoes,
        *,
        specs: Mapping[str, Mapping[str, Any]] | None = None,
        builtins: Mapping[BuiltinKind, tuple[str, str]] | None = None,
    ) -> None:
        self._tools = {
            label: [one if isinstance(one, ServerTool) else ServerTool(one) for one in names]
            for label, names in tools.items()
        }
        self._work = work
        self._specs = specs or {}
        self._builtins = builtins or {}
        self.failing: dict[str, Failure] = {}
        self.ran: list[tuple[str, str, str]] = []
        self.options: list[CallOptions] = []
        self.listed: list[str] = []
        self.open = self.open_most = 0

    def server(self, label: str) -> ResolvedServer:
        definition = ServerDefinition(label, url=f"http://{label}.test/mcp")
        spec = ServerSpec(definition, **self._specs.get(label, {}))
        return ResolvedServer(label, spec, Target(definition))

    async def resolve(
        self, asked: AskedServer, headers: Mapping[str, str], context: RequestContext
    ) -> ResolvedServer:
        if asked.label not in self._tools:
            raise invalid(f"there is no server {asked.label!r}", asked.where)
        return self.server(asked.label)

    def builtin(
        self, kind: BuiltinKind, headers: Mapping[str, str], context: RequestContext
    ) -> tuple[ResolvedServer, str] | None:
        place = self._builtins.get(kind)
        return None if place is None else (self.server(place[0]), place[1])

    def visible(
        self, headers: Mapping[str, str], context: RequestContext
    ) -> Sequence[ResolvedServer]:
        return [self.server(label) for label in sorted(self._tools)]

    async def list_tools(
        self, server: ResolvedServer, *, fresh: bool = False
    ) -> ToolList | Failure:
        await asyncio.sleep(0)
        self.listed.append(server.label)
        failure = self.failing.get(server.label)
        if failure is not None:
            return failure
        return ToolList({tool.name: tool for tool in self._tools[server.label]}, (), 0.0)

    async def call(
        self,
        server: ResolvedServer,
        tool: str,
        arguments: str | bytes,
        context: RequestContext,
        options: CallOptions = PLAIN_CALL,
    ) -> CallResult | Failure:
        assert isinstance(arguments, str)
        self.ran.append((server.label, tool, arguments))
        self.options.append(options)
        self.open += 1
        self.open_most = max(self.open_most, self.open)
        try:
            return await self._work(tool, arguments, options)
        finally:
            self.open -= 1


class Listener:
    """Whoever hears an answer: what is said must obey the grammar."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.grammar = Grammar(1)

    def receive(self, batch: Sequence[Event]) -> bool:
        assert batch, "each telling has something to say"
        self.grammar.feed(batch)
        self.events += batch
        return False

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]

    def answer(self) -> Answer:
        assert self.grammar.over
        collector = Collector(1)
        collector.feed(self.events)
        return collector.answer()

    def text(self) -> str:
        return self.answer().choices[0].text()

    def reason(self) -> str:
        finish = self.answer().choices[0].finish
        assert finish is not None
        return finish.reason

    def results(self) -> list[RunResult]:
        ends: list[RunEnd] = sorted(self.of(RunEnd), key=lambda end: end.block)
        return [end.result for end in ends]


def serving(*labels: str, **fields: Any) -> ToolServing:
    """Return what a request asks for that names these servers."""
    servers = tuple(AskedServer(label, where=f"tools[{at}]") for at, label in enumerate(labels))
    return ToolServing(servers, **fields)


def request(
    served: ToolServing | None,
    *,
    tools: Sequence[str] = (),
    turns: Sequence[Turn] = (Turn("user", "hello"),),
    choice: ToolChoice | None = None,
    sampling: Sampling | None = None,
) -> GenerateRequest:
    """Return a request with functions of the client's of these names."""
    prompt = ChatPrompt(tuple(turns), tuple(Tool(name) for name in tools), choice or ToolChoice())
    return GenerateRequest("m", (prompt,), sampling or Sampling(), stream=True, serving=served)


def loop(model: Model, servers: ToolServers | None, **parts: Any) -> ServingGenerations:
    """Return generations around a model."""
    clock = SystemClock()
    built = LoopParts(lambda: servers, IdSource(clock, system_rng()), clock, **parts)
    return ServingGenerations(model, lambda: built)


async def heard(
    model: Model,
    servers: ToolServers | None,
    asked: GenerateRequest,
    *,
    dialect: str = "responses",
    **parts: Any,
) -> Listener:
    """Return whoever has heard the whole answer."""
    listener = Listener()
    run = loop(model, servers, **parts).start(dialect, asked, CONTEXT)
    async with asyncio.timeout(20):
        await run.tell(listener.receive)
    assert listener.grammar.over
    return listener
