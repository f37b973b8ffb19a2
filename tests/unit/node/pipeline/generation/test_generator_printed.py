"""A whole generation of a model with thoughts and calls, over in-memory engines."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import ChatPrompt, Prompt, Sampling, Tool, ToolChoice, Turn
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from support.engines.fake_engine import FakeEngine, abilities, card, says
from support.engines.generation_bench import Bench, bench_of

CALL = '<tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>'
TOOLS = (Tool("find"),)
HI: tuple[Prompt, ...] = (ChatPrompt((Turn("user", "Hi"),), tools=TOOLS),)
ONE: tuple[Prompt, ...] = (
    ChatPrompt((Turn("user", "Hi"),), tools=TOOLS, choice=ToolChoice(parallel=False)),
)


@dataclass(frozen=True)
class _Template:
    digest: str = "0123456789abcdef"


class _Renderer:
    """Renders every chat to the same few characters."""

    template = _Template()

    def known(self, prompt: ChatPrompt, **_more: Any) -> None:
        return None

    def render(self, prompt: ChatPrompt, **_more: Any) -> str:
        return "Hi\n<think>\n"


@asynccontextmanager
async def printing_bench(folder: Path, **engines: FakeEngine) -> AsyncIterator[Bench]:
    for engine in engines.values():
        engine.model_card = card(context=4096)
    async with bench_of(folder, engines) as it:
        for worker in it.fleet.workers():
            model: Any = worker.model
            model.printing = Printing(Chosen("think", "hermes", frozenset({"implicit"})))
            model.renderer = _Renderer()
        yield it


async def test_thoughts_text_and_calls_are_blocks_of_their_own(tmp_path: Path) -> None:
    engine = FakeEngine(says(f"Hm.</think>Yes.{CALL}{CALL}", batch=7))
    async with printing_bench(tmp_path, a=engine) as it:
        answer = await it.answer(prompts=HI)
        (choice,) = answer.choices
        assert choice.finish is not None
        assert choice.finish.reason == "tool_calls"
        assert [(block.kind, block.name, block.text) for block in choice.blocks] == [
            ("reasoning", "", "Hm."),
            ("text", "", "Yes."),
            ("call", "find", '{"a": 1}'),
            ("call", "find", '{"a": 1}'),
        ]
        ids = [block.call_id for block in choice.blocks if block.kind == "call"]
        assert len(set(ids)) == 2
        assert all(len(one) == len("call_") + 24 for one in ids)
        assert answer.usage.reasoning_tokens == len("Hm.")
        (request,) = engine.requests
        assert not request.sampling.skip_special_tokens
        assert it.outcomes[0].oddities == {}


async def test_an_engine_is_not_let_go_on_behind_the_only_call(tmp_path: Path) -> None:
    engine = FakeEngine(says(f"</think>{CALL}{CALL} and so on, at length"))
    async with printing_bench(tmp_path, a=engine) as it:
        (choice,) = (await it.answer(prompts=ONE)).choices
        assert [block.kind for block in choice.blocks] == ["call"]
        assert choice.finish is not None
        assert choice.finish.reason == "tool_calls"
        assert (engine.cancelled, engine.open) == (1, 0)
        assert it.idle()


async def test_a_call_that_broke_off_goes_on_at_another_engine(tmp_path: Path) -> None:
    whole = f"Hm.</think>{CALL}".encode()

    async def breaks(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        said = len(request.ids) - len("Hi\n<think>\n")
        for one in whole[said : said + 30]:
            yield [Chunk(0, (one,))]
            await asyncio.sleep(0)
        if said + 30 < len(whole):
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "gone")
        yield [Chunk(0, (256,)), Chunk(0, (), finish="stop")]

    engines = {name: FakeEngine(breaks) for name in "abc"}
    async with printing_bench(tmp_path, **engines) as it:
        (choice,) = (await it.answer(prompts=HI)).choices
        assert [(block.kind, block.text) for block in choice.blocks] == [
            ("reasoning", "Hm."),
            ("call", '{"a": 1}'),
        ]
        assert it.outcomes[0].continuations == 2


async def test_what_is_odd_is_reported_each_time_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = FakeEngine(says("</think><tool_call> is a tag"))
    with caplog.at_level(logging.WARNING, "smg_node.pipeline"):
        async with printing_bench(tmp_path, a=engine) as it:
            for _ in range(2):
                (choice,) = (await it.answer(Sampling(), prompts=HI)).choices
                assert choice.text() == "<tool_call> is a tag"
            assert [one.oddities for one in it.outcomes] == [{"tool_markup_unparsed": 1}] * 2
    (record,) = [one for one in caplog.records if one.name == "smg_node.pipeline"]
    assert "tool_markup_unparsed" in record.getMessage()
    assert "calls as hermes" in record.getMessage()


@pytest.mark.parametrize("answers", [1, 2])
@pytest.mark.parametrize("able", [False, True])
async def test_a_stop_string_of_the_answer_is_kept_from_the_engine_and_ends_its_call(
    tmp_path: Path,
    answers: int,
    able: bool,
) -> None:
    async def goes_on(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        for one in range(request.sampling.n):
            yield [Chunk(one, tuple(b"a number</think>42 number and"))]
        await asyncio.sleep(60)

    engine = FakeEngine(goes_on)
    engine.abilities = abilities(stop_strings=able, native_n=able)
    async with printing_bench(tmp_path, a=engine) as it:
        began_s = asyncio.get_running_loop().time()
        answer = await it.answer(Sampling(n=answers, stop=("number",)), prompts=HI)
        for choice in answer.choices:
            assert [(block.kind, block.text) for block in choice.blocks] == [
                ("reasoning", "a number"),
                ("text", "42 "),
            ]
            assert choice.finish is not None
            assert (choice.finish.reason, choice.finish.matched) == ("stop", "number")
        assert {request.sampling.stop for request in engine.requests} == {()}
        assert engine.cancelled == (1 if able else answers)
        # It cannot end by itself, so it is not waited for.
        assert asyncio.get_running_loop().time() - began_s < 5
        assert it.idle()
