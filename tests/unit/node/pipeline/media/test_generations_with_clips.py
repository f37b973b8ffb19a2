"""Generations of prompts with videos and sound: what engines are referred to, what is refused, and when."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import MediaKind, MediaPart, Sampling
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest, MediaCard
from smg_node.media.engine_media import MediaReference, ReferenceBatch, TensorBatch
from smg_node.pipeline.media.media_options import MediaOptions
from support.engines.fake_engine import FakeEngine, says
from support.media.pictured_bench import SOUNDS, VIDEOS, chat, picture, pictured, seeing
from support.media.plain_pictures import PLACE, refusal

A, FILM, SONG = "https://x/a", "https://x/film", "https://x/song"
FILES = {A: "30x2:a", FILM: "moving", SONG: "loud"}
INLINE = "data:video/mp4;base64,AAAA"
SHORT = Sampling(max_tokens=10)
ALL = (VIDEOS, SOUNDS)
READING = MediaCard(
    frozenset({"tensors", "references"}),
    device_normalizes=True,
    schemes=frozenset({"http", "https", "data"}),
)
HANDING_ON = MediaOptions(clip_urls="handed_on")


def clip(kind: MediaKind, url: str, at: int = 1) -> MediaPart:
    return MediaPart(kind, url, f"messages[0].content[{at}]")


def data_url(kind: str, content: str) -> str:
    return f"data:{kind}/octet-stream;base64,{b64encode(content.encode()).decode()}"


def referred(request: EngineRequest) -> tuple[MediaReference, ...]:
    assert isinstance(request.media, ReferenceBatch)
    return request.media.items


async def test_a_video_goes_by_reference_with_the_pictures_and_sound_beside_it(
    tmp_path: Path,
) -> None:
    engine = seeing(READING)
    async with pictured(tmp_path, FILES, {"one": engine}, clips=ALL) as it:
        prompts = chat("look", clip("video", INLINE), picture(A, 2), clip("audio", SONG, 3), "!")
        answer = await it.bench.answer(SHORT, prompts=prompts)
        assert answer.choices[0].text() == "hello"
        (request,) = engine.requests
        assert list(request.ids) == [*b"user:look", 8, PLACE, 11, *b"!;"]
        where = "messages[0].content"
        assert referred(request) == (
            MediaReference("video", INLINE, f"{where}[1]"),
            MediaReference("image", data_url("image", FILES[A]), f"{where}[2]"),
            MediaReference("audio", data_url("audio", FILES[SONG]), f"{where}[3]"),
        )
        assert it.source.looked == [INLINE]
        assert it.source.decodes == 0
        (journey,) = it.bench.journal.get("req_1")
        assert [each.way for each in journey.pictures] == ["references"] * 3
        assert [each.transport for each in journey.pictures] == [""] * 3, "they are no tensors"


@pytest.mark.parametrize("said", [(60, -1, -1), (60, 60, 60)])
async def test_the_prompt_is_as_long_as_the_engine_says(
    tmp_path: Path, said: tuple[int, ...]
) -> None:
    async def script(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        for text, count in zip((b"he", b"llo"), said, strict=False):
            yield [Chunk(0, tuple(text), prompt_tokens=count, cached_tokens=40)]
        yield [Chunk(0, (), finish="stop", prompt_tokens=said[2])]

    async with pictured(tmp_path, FILES, {"one": seeing(READING, script)}, clips=ALL) as it:
        answer = await it.bench.answer(SHORT, prompts=chat("look", clip("video", INLINE)))
        assert answer.choices[0].text() == "hello"
        assert (answer.usage.prompt_tokens, answer.usage.cached_tokens) == (60, 40)
        alone = await it.bench.answer(SHORT, prompts=chat("look", picture(A)))
        assert alone.usage.prompt_tokens < 20, "what this node expands it counts itself"


async def test_pictures_alone_are_made_here_as_before(tmp_path: Path) -> None:
    engine = seeing(READING)
    async with pictured(tmp_path, FILES, {"one": engine}, clips=ALL) as it:
        await it.bench.answer(SHORT, prompts=chat("look", picture(A)))
        assert isinstance(engine.requests[0].media, TensorBatch)


@pytest.mark.parametrize(
    ("options", "url", "got", "looked"),
    [
        (MediaOptions(), data_url("video", "moving"), [FILM], []),
        (HANDING_ON, FILM, [], [FILM]),
        (MediaOptions(where="engine"), FILM, [], [FILM]),
    ],
)
async def test_a_url_is_fetched_or_handed_on_as_the_operator_wants(
    tmp_path: Path, options: MediaOptions, url: str, got: list[str], looked: list[str]
) -> None:
    engine = seeing(READING)
    async with pictured(tmp_path, FILES, {"one": engine}, clips=ALL, options=options) as it:
        await it.bench.answer(SHORT, prompts=chat("look", clip("video", FILM)))
        assert [each.url for each in referred(engine.requests[0])] == [url]
        assert (it.source.got, it.source.looked) == (got, looked)


async def test_pictures_are_got_where_only_clips_are_handed_on(tmp_path: Path) -> None:
    engine = seeing(READING)
    async with pictured(tmp_path, FILES, {"one": engine}, clips=ALL, options=HANDING_ON) as it:
        await it.bench.answer(SHORT, prompts=chat("look", clip("video", FILM), picture(A, 2)))
        urls = [each.url for each in referred(engine.requests[0])]
        assert urls == [FILM, data_url("image", FILES[A])]
        assert it.source.got == [A]


async def test_the_same_url_may_be_a_video_and_a_sound(tmp_path: Path) -> None:
    engine = seeing(READING)
    async with pictured(tmp_path, FILES, {"one": engine}, clips=ALL) as it:
        prompts = chat("look", clip("video", FILM), clip("audio", FILM, 2), clip("video", FILM, 3))
        await it.bench.answer(SHORT, prompts=prompts)
        kinds = [each.modality for each in referred(engine.requests[0])]
        assert kinds == ["video", "audio", "video"]
        assert it.source.got == [FILM, FILM]


@pytest.mark.parametrize(
    ("content", "options", "found"),
    [
        (("look", clip("video", "data:x!")), MediaOptions(), "invalid_value"),
        (("look", clip("audio", "https://x/none")), MediaOptions(), "media_unavailable"),
        (("look", clip("video", "https://private/a")), HANDING_ON, "media_forbidden"),
        (("typed \x08", clip("video", INLINE)), MediaOptions(), "invalid_value"),
    ],
)
async def test_what_cannot_be_had_is_refused_and_no_engine_hears_of_it(
    tmp_path: Path, content: Sequence[str | MediaPart], options: MediaOptions, found: str
) -> None:
    engine = seeing(READING)
    async with pictured(tmp_path, FILES, {"one": engine}, clips=ALL, options=options) as it:
        error = await it.bench.error(SHORT, prompts=chat(*content))
        where = "messages" if "typed" in str(content[0]) else "messages[0].content[1]"
        assert refusal(error) == (400, found, where)
        assert not engine.requests
        assert it.bench.idle()


@pytest.mark.parametrize(
    ("card", "where", "why"),
    [
        (None, "auto", "the model 'tiny' takes no videos"),
        (MediaCard(frozenset({"tensors"})), "auto", "vLLM takes them by reference"),
        (MediaCard(frozenset({"encoded"})), "auto", "vLLM takes them by reference"),
        (READING, "node", "media.where is `node`"),
    ],
)
async def test_engines_that_take_none_are_named_before_anything_is_fetched(
    tmp_path: Path, card: MediaCard | None, where: str, why: str
) -> None:
    options = MediaOptions(where=where)  # type: ignore[arg-type]  # one of its words
    workers = {"one": seeing(card)}
    async with pictured(tmp_path, FILES, workers, clips=ALL, options=options) as it:
        prompts = chat("look", picture(A), clip("video", FILM, 2))
        error = await it.bench.error(SHORT, prompts=prompts)
        at = 1 if card is None else 2
        assert refusal(error) == (400, "unsupported_parameter", f"messages[0].content[{at}]")
        assert card is None or why in error.message
        assert it.source.got == it.source.looked == []


async def test_why_this_node_makes_no_tensors_of_videos_is_told(tmp_path: Path) -> None:
    workers, options = {"one": seeing(READING)}, MediaOptions(where="node")
    async with pictured(tmp_path, FILES, workers, clips=ALL, options=options) as it:
        error = await it.bench.error(SHORT, prompts=chat("look", clip("video", FILM)))
        assert error.message.endswith("no tensors of videos (videos are not known here)")
        assert it.source.got == []


async def test_a_model_that_hears_nothing_says_so(tmp_path: Path) -> None:
    async with pictured(tmp_path, FILES, {"one": seeing(READING)}, clips=(VIDEOS,)) as it:
        error = await it.bench.error(SHORT, prompts=chat("look", clip("audio", SONG)))
        assert error.message == "the model 'tiny' takes no sound"
        assert it.source.got == []


def broken_after(text: str) -> FakeEngine:
    """Return an engine that says some of an answer and then fails."""

    async def script(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, tuple(text.encode()))]
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "gone")

    return seeing(READING, script)


async def test_an_answer_goes_on_elsewhere_with_the_same_references(tmp_path: Path) -> None:
    first, second = broken_after("he"), seeing(READING, says("llo"))
    engines = {"one": first, "two": second}
    async with pictured(tmp_path, FILES, engines, clips=ALL) as it:
        for _ in range(4):
            await it.bench.answer(SHORT, prompts=chat("look", clip("video", FILM)))
        went_on = [each for each in second.requests if list(each.ids)[-2:] == [*b"he"]]
        assert went_on
        for request in went_on:
            assert list(request.ids) == [*b"user:look", 8, *b";he"]
            assert referred(request)[0].url == data_url("video", "moving")


async def test_what_clips_take_is_counted_while_they_are_under_way(tmp_path: Path) -> None:
    long = f"data:video/mp4;base64,{'AAAA' * 100}"
    options = MediaOptions(inflight_bytes=500)
    async with pictured(
        tmp_path, FILES, {"one": seeing(READING)}, clips=ALL, options=options
    ) as it:
        await it.bench.answer(SHORT, prompts=chat("look", clip("video", long)))
        error = await it.bench.error(
            SHORT, prompts=chat("look", clip("video", long), clip("video", f"{long}AAAA", 2))
        )
        assert error.status == 413
        assert it.workshop.budget.taken == 0
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("content", "beginnings"),
    [
        ((picture(A), picture(A, 2)), True),
        ((clip("video", FILM),), False),
        ((picture(A), clip("video", FILM, 2)), False),
        ((picture(A), clip("video", INLINE, 2)), False),
    ],
)
async def test_of_pictures_alone_that_are_counted_beginnings_are_enough(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    content: Sequence[MediaPart],
    beginnings: bool,
) -> None:
    async with pictured(tmp_path, FILES, {"one": seeing(READING)}, clips=ALL) as it:
        asked: list[tuple[list[str], bool, str | None]] = []
        files = it.source.files

        async def noted(
            parts: Sequence[MediaPart],
            charge: Callable[[int], None],
            alike: Callable[[int, int], bool] | None = None,
            tenant: str | None = "",
        ) -> Sequence[bytes]:
            asked.append(([part.source for part in parts], alike is not None, tenant))
            return await files(parts, charge, alike, tenant)

        monkeypatch.setattr(it.source, "files", noted)
        model = it.bench.fleet.models.find("tiny")
        assert model is not None
        (prompt,) = chat("look", *content)
        preparer = it.bench.generator._parts.preparer
        prepared = await preparer.counted(prompt, model)
        assert len(prepared.ids) > len("user:look;")
        fetched = list(dict.fromkeys(part.source for part in content if part.source != INLINE))
        assert asked == [(fetched, beginnings, "")]
        assert it.workshop.budget.taken == 0
        assert it.source.decodes == 0
