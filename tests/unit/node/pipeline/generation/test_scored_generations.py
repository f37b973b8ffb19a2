"""Generations for scorers: rows of a Completions answer are as many as its tokens, or it fails."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.request import GenerateRequest, Sampling
from smg_node.core.request_context import RequestContext
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.engines.engine import EngineRequest
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.engines.generation_bench import HI, Bench, bench

EOS = 256
ANSWER = (*b"ab", EOS)


def engine(*, rows: bool = True) -> FakeEngine:
    async def says(_request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        told = tuple(IdLogprob(one, -0.5) for one in ANSWER) if rows else ()
        yield [Chunk(0, ANSWER, told), Chunk(0, (), finish="stop")]

    return FakeEngine(says)


async def answered(it: Bench, dialect: str, sampling: Sampling) -> Answer:
    now_s = SystemClock().monotonic_s()
    request = GenerateRequest("tiny", HI, sampling, stream=False)
    return await it.generator.start(
        dialect, request, RequestContext("req_1", now_s, now_s + 5)
    ).answer()


@pytest.mark.parametrize(("dialect", "rows"), [("completions", ANSWER), ("chat", ANSWER[:2])])
async def test_only_completions_have_a_row_for_the_end_of_text(
    tmp_path: Path, dialect: str, rows: Sequence[int]
) -> None:
    async with bench(tmp_path, a=engine()) as it:
        answer = await answered(it, dialect, Sampling(logprobs=0))
        assert [row.token_id for row in answer.choices[0].logprobs] == list(rows)
        assert answer.usage.completion_tokens == 3
        answer = await answered(it, dialect, Sampling())
        assert answer.choices[0].logprobs == []


async def test_an_engine_without_rows_fails_a_scorer_and_nobody_else(tmp_path: Path) -> None:
    async with bench(tmp_path, a=engine(rows=False)) as it:
        assert (await answered(it, "chat", Sampling(logprobs=0))).choices[0].text() == "ab"
        with pytest.raises(SmgError) as caught:
            await answered(it, "completions", Sampling(logprobs=0))
        assert (caught.value.status, caught.value.code) == (502, "upstream_logprobs_missing")
        assert it.idle()
