"""Files of conversations: text in the prompt, media by their content, and refusals with their path."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.request import (
    ChatPrompt,
    HandedDocuments,
    MediaPart,
    Part,
    TextPart,
    Turn,
)
from smg_node.pipeline.media.file_reader import FileReader
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.media_options import MediaOptions
from support.http.raw_http import until
from support.media.picture_files import FILES

WHERE = "messages[0].content[0].file"
MP4 = b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00" + bytes(600)


Read = Callable[..., Awaitable[tuple[Any, ...]]]


class Origin:
    """What is found under each URL."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []
        self.tenants: list[str | None] = []
        """Whose kept files might be used."""

    async def fetch(
        self,
        parts: Sequence[MediaPart],
        charge: Callable[[int], None],
        enough: Callable[[bytes], Awaitable[bool]] | None = None,
        tenant: str | None = "",
    ) -> list[bytes]:
        found = []
        for part in parts:
            self.asked.append(part.source)
            self.tenants.append(tenant)
            if part.source not in self.files:
                raise invalid("gone", part.where, code="media_unavailable")
            charge(len(self.files[part.source]))
            found.append(self.files[part.source])
        return found

    async def check(self, parts: Sequence[MediaPart]) -> None:
        raise AssertionError("files are not handed on")


@asynccontextmanager
async def reading(
    files: dict[str, bytes] | None = None, options: MediaOptions | None = None
) -> AsyncIterator[Read]:
    origin, budget = Origin(files or {}), ByteBudget(10_000)
    chosen = options or MediaOptions()
    with ThreadPoolExecutor(1) as threads:
        reader = FileReader(lambda: chosen, lambda: origin, budget, threads)

        async def read(*parts: Part) -> tuple[Part, ...]:
            prompt = ChatPrompt((Turn("system", "s"), Turn("user", parts)))
            content = (await reader.read(prompt)).turns[1].content
            assert isinstance(content, tuple)
            return content

        yield read
    assert budget.taken == 0, "what was fetched is given back"


async def read(*parts: Part, files: dict[str, bytes] | None = None) -> tuple[Part, ...]:
    async with reading(files) as it:
        return await it(*parts)


async def refusal(
    part: MediaPart, files: dict[str, bytes] | None = None, options: MediaOptions | None = None
) -> SmgError:
    with pytest.raises(SmgError) as raised:
        async with reading(files, options) as it:
            await it(part)
    assert raised.value.where == WHERE
    return raised.value


def data_url(content: bytes, media_type: str = "application/octet-stream") -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def file(source: str, name: str = "") -> MediaPart:
    return MediaPart("file", source, WHERE, name=name)


async def test_text_becomes_a_document_on_lines_of_its_own() -> None:
    found = await read(
        TextPart("Read"),
        file(data_url("héllo\n".encode()), 'a "b"\n c.txt'),
        file(base64.b64encode(b"bare").decode()),
        TextPart("What?"),
        TextPart("Now"),
    )
    assert found == (
        TextPart(
            'Read\n<document title="a &quot;b&quot; c.txt">\nhéllo\n</document>\n'
            "<document>\nbare\n</document>\nWhat?"
        ),
        TextPart("Now"),
    )


@pytest.mark.parametrize(
    ("content", "declared", "kind"),
    [
        (FILES["png"], "text/plain", "image"),
        (FILES["jpeg 4:2:0"], "application/pdf", "image"),
        (MP4, "application/octet-stream", "video"),
        (MP4, "audio/mp4", "audio"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "x/y", "audio"),
    ],
)
async def test_a_medium_is_known_by_its_content_and_keeps_its_source(
    content: bytes, declared: str, kind: str
) -> None:
    source = data_url(content, declared)
    (found,) = await read(file(source, "n"))
    assert found == MediaPart(kind, source, WHERE, name="n")  # type: ignore[arg-type]  # a kind


async def test_files_elsewhere_are_fetched_and_become_what_they_are() -> None:
    url = "https://x.test/a"
    assert await read(file(url), files={url: b"words"}) == (
        TextPart("<document>\nwords\n</document>"),
    )
    (found,) = await read(file(url), files={url: MP4})
    assert found == MediaPart("video", data_url(MP4, "video/mp4"), WHERE)


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (data_url(b"%PDF-1.7\nx"), "unsupported_media", "no model here reads a PDF"),
        (data_url(b"PK\x03\x04docx"), "unsupported_media", "it is application/zip"),
        (data_url(b"\x80\x81"), "unsupported_media", "of no kind that is known"),
        (data_url(b"a\0b"), "unsupported_media", "of no kind that is known"),
        ("data:text/plain;base64,AAA", "invalid_value", "no multiple of 4"),
        ("data:text/plain,words", "invalid_value", "must be base64: data:text/plain;base64,…"),
        ("not base64!", "invalid_value", "is not base64"),
        ("file:///etc/passwd", "invalid_value", "must be an http, https or data URL"),
        ("https://x.test/none", "media_unavailable", "gone"),
        ("https://x.test/pdf", "unsupported_media", "no model here reads a PDF"),
    ],
)
async def test_what_no_model_can_be_shown_is_refused(source: str, code: str, words: str) -> None:
    files = {"https://x.test/pdf": b"%PDF-1.4"}
    error = await refusal(file(source), files)
    assert (error.code, words in error.message) == (code, True), error.message


async def test_each_kind_has_its_own_limit() -> None:
    options = MediaOptions(image_bytes_max=8, video_bytes_max=700, audio_bytes_max=9)
    error = await refusal(file(data_url(b"nine chars")), options=options)
    assert error.code == "media_too_large"
    assert "media.image_bytes_max" in error.message
    async with reading(options=options) as it:
        (found,) = await it(file(data_url(MP4)))
        assert found.kind == "video"
    url = "https://x.test/a"
    error = await refusal(file(url), {url: b"fLaC" + bytes(20)}, options)
    assert "a sound may have at most 9 bytes" in error.message


async def test_what_is_fetched_counts_as_long_as_it_is_read() -> None:
    url = "https://x.test/large"
    with pytest.raises(SmgError) as raised:
        await read(file(url), files={url: bytes(20_000)})
    assert raised.value.status == 413
    assert "media.inflight_bytes" in raised.value.message


@pytest.mark.parametrize("apart", [False, True])
async def test_where_tenants_are_kept_apart_no_fetched_file_is_kept(*, apart: bool) -> None:
    url, budget = "https://x.test/text", ByteBudget(1_000)
    origin, options = Origin({url: b"text"}), MediaOptions(tenants_apart=apart)
    with ThreadPoolExecutor(1) as threads:
        reader = FileReader(lambda: options, lambda: origin, budget, threads)
        await reader.read(ChatPrompt((Turn("user", (file(url),)),)))
    assert origin.tenants == [None if apart else ""]


async def test_files_of_one_prompt_count_together_as_long_as_it_is_read() -> None:
    url = "https://x.test/"
    files = {f"{url}{at}": MP4 + bytes([at]) * 2000 for at in range(4)}
    parts = [file(one) for one in files]
    assert len(await read(*parts[:2], files=files)) == 2
    with pytest.raises(SmgError) as raised:
        await read(*parts, files=files)
    assert raised.value.code == "media_too_large"
    assert "media.inflight_bytes" in raised.value.message


async def test_a_prompt_that_is_not_to_be_lost_waits_for_room_and_others_do_not() -> None:
    url, budget = "https://x.test/text", ByteBudget(100)
    origin = Origin({url: b"four", f"{url}/large": bytes(101)})
    with ThreadPoolExecutor(1) as threads:
        reader = FileReader(MediaOptions, lambda: origin, budget, threads)
        prompt = ChatPrompt((Turn("user", (file(url),)),))
        until_s = time.monotonic() + 20
        budget.add(101)
        with pytest.raises(SmgError) as raised:
            await reader.read(prompt)
        assert raised.value.code == "media_busy"
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(reader.read(prompt, until_s))
            await until(lambda: budget.waiting == 1)
            budget.give(1)
        (turn,) = reading.result().turns
        assert turn.content == (TextPart("<document>\nfour\n</document>"),)
        assert budget.taken == 100
        budget.give(100)
        large = ChatPrompt((Turn("user", (file(f"{url}/large"),)),))
        with pytest.raises(SmgError) as raised:
            await reader.read(large, until_s)
        assert raised.value.code == "media_too_large"
        assert budget.taken == 0


async def test_a_conversation_without_files_stays_and_documents_are_shown_with_the_turns() -> None:
    handed = HandedDocuments(({"text": "t"},), ((0, "q"),))
    with ThreadPoolExecutor(1) as threads:
        reader = FileReader(MediaOptions, lambda: Origin({}), ByteBudget(1), threads)
        turns = (Turn("user", "a"), Turn("user", (TextPart("b"), MediaPart("image", "u", "w"))))
        assert (await reader.read(ChatPrompt(turns))).turns == turns
        with_file = ChatPrompt((Turn("user", (file(data_url(b"x")),)),), handed=handed)
        assert (await reader.read(with_file)).handed is None
