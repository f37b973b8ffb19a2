"""Whoever has seen nothing of an answer may be given another one; and what ends an answer, streamed or not."""

from pathlib import Path
from typing import Any

import pytest

from smg_node.core.generation.events import Fail
from support.answers.chat_chunks import DONE, blocks, chunk, event
from support.engines.chat_relay_bench import GOOD, ROLE, bench, fine
from support.engines.relay_bench import lost, streamed, worker


@pytest.mark.parametrize(
    "rest",
    [
        (lost(),),
        (),
        (DONE,),
        (b"data: {\n\n", DONE),
        (chunk("error"), DONE),
        (event({"error": {"message": "cuda", "code": 500}}),),
        (chunk("stop"), event({"error": {"message": "cuda"}}), DONE),
    ],
)
async def test_who_does_not_stream_has_seen_nothing_and_is_told_by_another(
    tmp_path: Path, rest: Any
) -> None:
    torn = worker(lambda call: streamed(ROLE, chunk(content="so"), *rest))
    async with bench(tmp_path, a=torn, b=worker(fine)) as b:
        for _ in range(2):
            assert blocks(await b.events(stream=False)) == ["text Hi!"]
        assert [one.kind for one in b.relays.outcomes] == ["ok", "ok"]
    assert torn.calls
    async with bench(tmp_path, a=torn) as b:
        error = await b.failure(stream=False)
        assert error.status == 502
        assert "part of the answer" not in error.message


async def test_an_error_after_the_finish_is_an_error(tmp_path: Path) -> None:
    rest = (chunk("stop"), event({"error": {"message": "cuda"}}), DONE)
    torn = worker(lambda call: streamed(chunk(content="so"), *rest))
    async with bench(tmp_path, w=torn) as b:
        error = await b.failure()
        assert (error.status, error.code) == (502, "upstream_error")


async def test_an_answer_without_done_is_whole_if_it_finished(tmp_path: Path) -> None:
    async with bench(tmp_path, w=worker(lambda call: streamed(*GOOD[:-1]))) as b:
        for stream in (False, True):
            events = await b.events(stream=stream)
            assert blocks(events) == ["text Hi!"]
            assert not isinstance(events[-1], Fail)


async def test_who_polls_may_have_seen_some_of_it(tmp_path: Path) -> None:
    torn = worker(lambda call: streamed(ROLE, chunk(content="so"), lost()))
    async with bench(tmp_path, a=torn, b=torn) as b:
        events = await b.events(stream=False, polled=True)
        assert blocks(events) == ["text so"]
        assert isinstance(events[-1], Fail)
        assert b.relays.outcomes[0].attempts == 1
