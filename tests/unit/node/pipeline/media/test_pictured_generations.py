"""Generations of prompts with pictures: what engines are handed, what is refused and when, and what comes back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import MediaPart, Sampling
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest, MediaCard
from smg_node.media.engine_media import EncodedBatch, TensorBatch
from smg_node.pipeline.media.media_options import MediaOptions
from support.engines.fake_engine import FakeEngine, Script, says
from support.http.raw_http import until
from support.media.pictured_bench import chat, picture, pictured, seeing
from support.media.plain_pictures import PLACE, refusal

FILES = {"https://x/a": "30x2:a", "https://x/b": "20x2:b", "https://x/broken": "10x2:!"}
A, B, C = "https://x/a", "https://x/b", "https://x/c"
SHORT = Sampling(max_tokens=10)


def sent(engine: FakeEngine, at: int = -1) -> EngineRequest:
    return engine.requests[at]


async def test_an_engine_gets_the_expanded_prompt_and_the_tensors(tmp_path: Path) -> None:
    engine = seeing()
    async with pictured(tmp_path, FILES, {"one": engine}) as it:
        answer = await it.bench.answer(SHORT, prompts=chat("look", picture(A), "!", picture(B, 3)))
        assert answer.choices[0].text() == "hello"
        request = sent(engine)
        expected = [*b"user:look", *[PLACE] * 3, *b"!", *[PLACE] * 2, *b";"]
        assert list(request.ids) == expected
        media = request.media
        assert isinstance(media, TensorBatch)
        assert media.pixels.dtype == "uint8"
        assert media.pixels.pieces == (b"30x2:a", b"20x2:b")
        spans = [(each.offset, each.length, each.where) for each in media.ranges]
        assert spans == [
            (9, 3, "messages[0].content[1]"),
            (13, 2, "messages[0].content[3]"),
        ]
        assert answer.usage.prompt_tokens == len(expected)
        assert answer.usage.image_tokens == 5


async def test_a_journey_tells_of_each_picture(tmp_path: Path) -> None:
    async with pictured(tmp_path, FILES) as it:
        await it.bench.answer(SHORT, prompts=chat("look", picture(A)))
        (journey,) = it.bench.journal.get("req_1")
        (seen,) = journey.pictures
        assert (seen.family, seen.width, seen.height, seen.tokens) == ("plain", 30, 2, 3)
        assert seen.way == "tensors"
        assert len(seen.digest) == 64
        assert seen.worker
        assert (seen.maker, seen.transport) == ("node", "message")


async def test_a_journey_tells_who_made_a_picture(tmp_path: Path) -> None:
    files = seeing(MediaCard(frozenset({"encoded"})))
    for engine, makers in ((seeing(), ["node", "kept"]), (files, ["engine", "engine"])):
        async with pictured(tmp_path, FILES, {"one": engine}) as it:
            for _ in range(2):
                await it.bench.answer(SHORT, prompts=chat("look", picture(A)))
            journeys = it.bench.journal.get("req_1")
            found = [one.maker for journey in journeys for one in journey.pictures]
            assert sorted(found) == sorted(makers)


async def test_the_same_picture_twice_is_got_and_made_once(tmp_path: Path) -> None:
    engine = seeing()
    async with pictured(tmp_path, FILES, {"one": engine}) as it:
        for _ in range(2):
            await it.bench.answer(SHORT, prompts=chat("look", picture(A), picture(A, 2)))
        assert it.source.got == [A, A]
        assert it.source.decodes == 1
        media = sent(engine).media
        assert isinstance(media, TensorBatch)
        assert len(media.ranges) == 2
        assert len({each.digest for each in media.ranges}) == 1


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (("look", picture("https://x/none")), (400, "media_unavailable", "messages[0].content[1]")),
        (("look", picture("https://x/broken")), (400, "invalid_image", "messages[0].content[1]")),
        (("typed \x07", picture(A)), (400, "invalid_value", "messages")),
        (
            ("look", MediaPart("audio", A, "messages[0].content[1]")),
            (400, "unsupported_parameter", "messages[0].content[1]"),
        ),
    ],
)
async def test_what_cannot_be_shown_is_refused_with_its_path_and_no_engine_hears_of_it(
    tmp_path: Path, content: Sequence[str | MediaPart], found: tuple[int, str, str]
) -> None:
    engine = seeing()
    async with pictured(tmp_path, FILES, {"one": engine}) as it:
        error = await it.bench.error(SHORT, prompts=chat(*content))
        assert refusal(error) == found
        assert not engine.requests
        assert it.bench.idle()


@pytest.mark.parametrize(
    ("card", "why"),
    [
        (None, "takes no pictures"),
        (MediaCard(frozenset({"tensors"}), items_max={"image": 1}), "at most 1 pictures"),
    ],
)
async def test_what_no_worker_takes_is_refused_before_anything_is_fetched(
    tmp_path: Path, card: MediaCard | None, why: str
) -> None:
    async with pictured(tmp_path, FILES, {"one": seeing(card)}) as it:
        error = await it.bench.error(SHORT, prompts=chat("look", picture(A), picture(B, 2)))
        assert refusal(error) == (400, "unsupported_parameter", "messages[0].content[1]")
        assert why in error.message
        assert it.source.got == []


async def test_a_picture_of_too_many_tokens_is_refused_before_it_is_worked_on(
    tmp_path: Path,
) -> None:
    small = seeing(MediaCard(frozenset({"tensors"}), tokens_max=2))
    async with pictured(tmp_path, FILES, {"one": small}) as it:
        error = await it.bench.error(SHORT, prompts=chat("look", picture(A)))
        assert "at most 2 tokens a picture" in error.message
        assert it.source.decodes == 0


async def test_workers_that_see_are_chosen_among_others(tmp_path: Path) -> None:
    blind, other = seeing(None), seeing()
    async with pictured(tmp_path, FILES, {"one": blind, "two": other}) as it:
        for _ in range(4):
            await it.bench.answer(SHORT, prompts=chat("look", picture(A)))
        assert not blind.requests
        assert len(other.requests) == 4


def broken_after(text: str) -> FakeEngine:
    """Return an engine that says some of an answer and then fails."""

    async def script(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, tuple(text.encode()))]
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "gone")

    return seeing(script=script)


async def test_an_answer_goes_on_elsewhere_with_its_pictures_in_that_workers_dtype(
    tmp_path: Path,
) -> None:
    first = broken_after("he")
    halves = seeing(MediaCard(frozenset({"tensors"}), dtype="bfloat16"), says("llo"))
    async with pictured(tmp_path, FILES, {"one": first, "two": halves}) as it:
        texts = set()
        for _ in range(4):
            answer = await it.bench.answer(SHORT, prompts=chat("look", picture(A)))
            texts.add(answer.choices[0].text())
        assert texts <= {"hello", "llo"}
        went_on = [
            request for request in halves.requests if bytes(request.ids[-2:].tolist()) == b"he"
        ]
        assert went_on
        prompt = [*b"user:look", *[PLACE] * 3, *b";"]
        for request in went_on:
            assert list(request.ids) == [*prompt, *b"he"]
            assert isinstance(request.media, TensorBatch)
            assert request.media.pixels.dtype == "bfloat16"
        assert it.source.decodes == 1


async def test_an_answer_goes_on_at_an_engine_that_is_handed_files(tmp_path: Path) -> None:
    first, files = broken_after("he"), seeing(MediaCard(frozenset({"encoded"})), says("llo"))
    async with pictured(tmp_path, FILES, {"one": first, "two": files}) as it:
        for _ in range(4):
            await it.bench.answer(SHORT, prompts=chat("look", picture(A)))
        prompt = [*b"user:look", PLACE, *b";"]
        for request in files.requests:
            assert list(request.ids) in (prompt, [*prompt, *b"he"])
            assert request.media == EncodedBatch((b"30x2:a",))
        assert any(list(request.ids)[-2:] == [*b"he"] for request in files.requests)


async def test_several_answers_share_the_pictures(tmp_path: Path) -> None:
    engine = seeing()
    async with pictured(tmp_path, FILES, {"one": engine}) as it:
        await it.bench.answer(Sampling(max_tokens=10, n=3), prompts=chat("look", picture(A)))
        assert len({id(request.media) for request in engine.requests}) == 1
        assert it.source.decodes == 1


async def test_memory_that_others_have_is_waited_for_by_the_client(tmp_path: Path) -> None:
    options = MediaOptions(inflight_bytes=300)
    async with pictured(tmp_path, {**FILES, C: "31x2:c"}, options=options) as it:
        it.source.gate.clear()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(it.bench.answer(SHORT, prompts=chat("look", picture(A))))
            await until(lambda: it.workshop.budget.taken > 0 and len(it.workshop.works) > 0)
            error = await it.bench.error(SHORT, prompts=chat("look", picture(B)))
            assert error.status == 429
            assert error.retry_after_s
            it.source.gate.set()
        assert first.result().choices[0].text() == "hello"
        both = chat("look", *[picture(url, at) for at, url in enumerate((B, C), 1)])
        assert (await it.bench.error(SHORT, prompts=both)).status == 413


async def test_work_ends_when_the_client_leaves(tmp_path: Path) -> None:
    engine = seeing()
    async with pictured(tmp_path, FILES, {"one": engine}) as it:
        it.source.gate.clear()
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(it.bench.answer(SHORT, prompts=chat("look", picture(A))))
            await until(lambda: len(it.workshop.works) > 0)
            asked.cancel()
        assert it.workshop.budget.taken == 0
        assert len(it.workshop.works) == 0
        assert not engine.requests
        it.source.gate.set()


async def test_a_prompt_that_would_be_cut_through_its_pictures_is_refused(tmp_path: Path) -> None:
    async with pictured(tmp_path, FILES) as it:
        prompts = chat("look", picture(A))
        error = await it.bench.error(SHORT, prompts=prompts, truncate=5)
        assert refusal(error) == (400, "unsupported_parameter", "truncate_prompt_tokens")
        assert (await it.bench.answer(SHORT, prompts=prompts, truncate=50)).choices[0].text()


async def test_the_context_is_that_of_the_expanded_prompt(tmp_path: Path) -> None:
    files = {"https://x/wide": "60000x1:w"}
    async with pictured(tmp_path, files) as it:
        error = await it.bench.error(SHORT, prompts=chat("look", picture("https://x/wide")))
        assert error.code == "context_length_exceeded"
        assert "6010" in error.message
        assert it.source.decodes == 0, "its size is told by its header"
        assert it.workshop.budget.taken == 0


async def test_a_prompt_that_some_worker_takes_is_that_workers_to_refuse(
    tmp_path: Path,
) -> None:
    small, large = seeing(), seeing()
    small.model_card = replace(small.model_card, context=20)
    async with pictured(tmp_path, FILES, {"small": small, "large": large}) as it:
        prompts = chat("a prompt of some twenty tokens", picture(A))
        sampling = Sampling(max_tokens=10)
        for _ in range(6):
            async for _ in it.bench.start(sampling, prompts=prompts).events():
                pass
        assert it.source.decodes == 1, "nobody knows whose it is before it is placed"
        assert large.requests
        assert not small.requests


def holding(gate: asyncio.Event) -> Script:
    """Return a script that says something, and goes on when it may."""

    async def script(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, tuple(b"he"))]
        await gate.wait()
        yield [Chunk(0, tuple(b"llo"), finish="stop")]

    return script


async def test_what_only_a_first_token_needs_is_given_back_while_the_answer_streams(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    engine = seeing(MediaCard(frozenset({"tensors"})), holding(gate))
    async with pictured(tmp_path, FILES, {"one": engine}) as it:
        texts_and_files = len(A) + len("30x2:a")
        it.source.gate.clear()
        async with asyncio.TaskGroup() as group:
            prompts = chat("look", picture(A))
            asked = group.create_task(it.bench.answer(SHORT, prompts=prompts))
            await until(lambda: it.workshop.budget.taken > texts_and_files)
            it.source.gate.set()
            await until(lambda: it.workshop.budget.taken == texts_and_files)
            assert not asked.done()
            gate.set()
        assert asked.result().choices[0].text() == "hello"


async def test_an_answer_that_breaks_after_that_goes_on_all_the_same(tmp_path: Path) -> None:
    first, second = broken_after("he"), seeing(script=says("llo"))
    options = MediaOptions(cache_bytes=0)
    async with pictured(tmp_path, FILES, {"one": first, "two": second}, options=options) as it:
        it.kept.cache.resize(0)
        texts = [
            (await it.bench.answer(SHORT, prompts=chat("look", picture(A)))).choices[0].text()
            for _ in range(4)
        ]
        assert "hello" in texts
        assert it.source.decodes == 4 + texts.count("hello"), "once more for each that broke"
