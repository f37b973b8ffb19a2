"""Loop with engines: a model that prints calls by its template's form, real prompts, and a server that counts its runs."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Fail, RunEnd
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Turn
from smg_node.core.ids import IdSource
from smg_node.core.request_context import RequestContext
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.generation.generator import GenerationRun
from smg_node.pipeline.tool_loop.loop_parts import LoopParts
from smg_node.pipeline.tool_loop.loop_run import ToolLoopRun
from smg_node.pipeline.tool_loop.pass_stream import PassStream
from smg_node.pipeline.tool_loop.serving_generations import ServingGenerations
from smg_node.prompts.jinja.render_context import ChatContext
from smg_node.system_clock import SystemClock, system_rng
from support.engines.fake_engine import FakeEngine, card
from support.engines.generation_bench import Bench, bench_of
from support.mcp.faulty_server import pooled, served
from support.mcp.loop_world import Listener, serving
from support.mcp.pooled_tools import PooledTools, spec
from support.models.family_templates import FAMILIES
from support.models.prompt_corpus import renderer

HERMES = FAMILIES["hermes"]
CALL = '<tool_call>\n{"name": "echo", "arguments": {"text": "%s"}}\n</tool_call>'


class Speaker:
    """An engine's script: what it says in each pass, byte by byte."""

    def __init__(self, *passes: str) -> None:
        self._passes = list(passes)

    async def __call__(self, request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        said = self._passes.pop(0)
        if said == "breaks":
            raise SmgError(ErrorKind.INVALID_REQUEST, "no such thing")
        for one in said.encode():
            yield [Chunk(0, (one,))]
            await asyncio.sleep(0)
        yield [Chunk(0, (256,)), Chunk(0, (), finish="stop")]


def request() -> GenerateRequest:
    prompt = ChatPrompt((Turn("user", "Say it."),))
    return GenerateRequest("tiny", (prompt,), Sampling(), stream=True, serving=serving("s"))


async def told(it: Bench, servers: PooledTools) -> Listener:
    for worker in it.fleet.workers():
        model: Any = worker.model
        model.printing = Printing(
            Chosen(HERMES.reasoning, HERMES.tools, frozenset(HERMES.options)), [HERMES.stop]
        )
        model.renderer = renderer(HERMES.template)
    clock = SystemClock()
    parts = LoopParts(
        lambda: servers, IdSource(clock, system_rng()), clock, on_outcome=it.outcomes.append
    )
    now_s = clock.monotonic_s()
    context = RequestContext("req_1", now_s, now_s + 20)
    run = ServingGenerations(it.generator, lambda: parts).start("chat", request(), context)
    listener = Listener()
    await run.tell(listener.receive)
    return listener


async def test_a_model_calls_twice_and_answers(tmp_path: Path) -> None:
    engine = FakeEngine(
        Speaker(f"Let me see.{CALL % 'one'}{CALL % 'two'}", CALL % "three", "All said.")
    )
    engine.model_card = card(context=4096)
    async with (
        served("modern") as server,
        pooled() as pool,
        bench_of(tmp_path, {"a": engine}) as it,
    ):
        listener = await told(it, PooledTools(pool, [spec("s", server.url)]))
        assert server.book.runs["echo"] == 3
        assert listener.text() == "Let me see.All said."
        assert [one.text for one in listener.results()] == ["one", "two", "three"]
        assert listener.reason() == "stop"
        first, second, third = (list(asked.ids) for asked in engine.requests)
        assert second[: len(first)] == first
        assert third[: len(second)] == second
        assert len({asked.request_id for asked in engine.requests}) == 3
        usage = listener.answer().usage
        assert usage.prompt_tokens == len(first) + len(second) + len(third)
        [outcome] = it.outcomes
        assert (outcome.kind, outcome.passes) == ("ok", 3)
        assert outcome.prompt_tokens == usage.prompt_tokens
        assert [prompt for prompt, _, _ in outcome.pass_tokens] == [
            *map(len, (first, second, third))
        ]
        assert outcome.paused_s > 0
        assert it.idle()


async def test_a_pass_that_is_refused_ends_the_answer(tmp_path: Path) -> None:
    engine = FakeEngine(Speaker(CALL % "one", "breaks"))
    engine.model_card = card(context=4096)
    async with (
        served("modern") as server,
        pooled() as pool,
        bench_of(tmp_path, {"a": engine}) as it,
    ):
        listener = await told(it, PooledTools(pool, [spec("s", server.url)]))
        assert len(listener.of(RunEnd)) == 1
        assert isinstance(listener.events[-1], Fail)
        assert it.idle()


async def test_an_unknown_model_is_told_as_ever(tmp_path: Path) -> None:
    async with served("modern") as server, pooled() as pool:
        engine = FakeEngine(Speaker("x"), model="another")
        async with bench_of(tmp_path, {"a": engine}) as it:
            listener = await told(it, PooledTools(pool, [spec("s", server.url)]))
            assert isinstance(listener.events[-1], Fail)
            assert listener.events[-1].error.kind is ErrorKind.NOT_FOUND


async def test_nothing_of_an_answer_waits_for_the_garbage_collector(tmp_path: Path) -> None:
    # It would be megabytes, for results stand in it several times, and a look of the collector stops every stream.
    engine = FakeEngine(Speaker(CALL % "one", CALL % "two", "All said."))
    engine.model_card = card(context=4096)
    async with (
        served("modern") as server,
        pooled() as pool,
        bench_of(tmp_path, {"a": engine}) as it,
    ):
        servers = PooledTools(pool, [spec("s", server.url)])
        kinds = (ToolLoopRun, GenerationRun, PassStream, ChatContext)
        gc.collect()
        gc.disable()
        # What other tests left is none of ours.
        before = [one for one in gc.get_objects() if isinstance(one, kinds)]
        try:
            listener = await told(it, servers)
            assert listener.text() == "All said."
            after = [one for one in gc.get_objects() if isinstance(one, kinds)]
            assert [type(one) for one in after] == [type(one) for one in before]
        finally:
            gc.enable()
