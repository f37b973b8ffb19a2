"""Tokens that come soon after others share an event and a write, and nothing is lost or kept by it."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import cast

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import BlockEnd, Delta, Event, Fail
from smg_node.http.message.delta_coalescing import DeltaCoalescer
from smg_node.http.message.event_stream import EventStream
from support.http.http_node import FakeRun, chat, ending, node, opening
from support.http.raw_http import RawClient, ask, connect, until

CHAT = "/v1/chat/completions"
STREAM = json.dumps(chat(stream=True)).encode()
LONG_MS = 1000
"""Longer than any of these tests takes, unless it waits for the timer."""


def contents(raw: bytes) -> list[str]:
    """The texts of a stream's frames, in order, the role's empty one left out."""
    chunks = [json.loads(frame[6:]) for frame in raw.split(b"\n\n") if frame[:7] == b"data: {"]
    found = [
        one["delta"].get("content", "") for chunk in chunks for one in chunk.get("choices", ())
    ]
    return [text for text in found if text]


async def rest(client: RawClient) -> bytes:
    """Read a stream to its clean end."""
    raw = b""
    while part := await client.chunk():
        raw += part
    return raw


async def talk(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Say five words, each in a batch of its own."""
    yield [*opening(), Delta(0, 0, "a", 1)]
    for word in "bcde":
        yield [Delta(0, 0, word, 1)]
    yield ending("abcde")


async def test_by_default_every_token_is_an_event() -> None:
    async with node(talk) as served:
        answer = await ask(served.port, "POST", CHAT, STREAM)
        assert served.sample("smg_node_stream_joined_events_total") == 0
    assert contents(answer.body) == ["a", "b", "c", "d", "e"]


async def test_the_first_token_goes_at_once_and_the_end_takes_along_what_waits() -> None:
    async with node(talk, coalesce_ms=LONG_MS) as served:
        answer = await ask(served.port, "POST", CHAT, STREAM)
        assert served.sample("smg_node_stream_joined_events_total") == 3
    assert contents(answer.body) == ["a", "bcde"]
    assert answer.body.endswith(b"data: [DONE]\n\n")


async def test_what_waits_is_written_by_the_timer() -> None:
    go_on = asyncio.Event()

    async def paused(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "a", 1)]
        yield [Delta(0, 0, "b", 1)]
        yield [Delta(0, 0, "c", 1)]
        await go_on.wait()
        yield ending("abc")

    async with node(paused, coalesce_ms=30) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM)
        await client.head()
        assert contents(await client.chunk()) == ["a"]
        assert contents(await client.chunk()) == ["bc"]
        go_on.set()
        assert (await rest(client)).endswith(b"data: [DONE]\n\n")


async def test_a_failure_comes_after_what_waited() -> None:
    async def breaks(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "a", 1)]
        yield [Delta(0, 0, "b", 1)]
        broken = SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died", code="upstream_error")
        yield [BlockEnd(0, 0, "text", "ab"), Fail(broken)]

    async with node(breaks, coalesce_ms=LONG_MS) as served:
        answer = await ask(served.port, "POST", CHAT, STREAM)
    assert contents(answer.body) == ["a", "b"]
    assert b"the engine died" in answer.body.split(b"\n\n")[-2]


async def test_a_stream_that_the_node_cuts_says_what_waited_first() -> None:
    waits = asyncio.Event()

    async def hangs(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "a", 1)]
        yield [Delta(0, 0, "b", 1)]
        waits.set()
        await asyncio.Event().wait()

    async with (
        node(hangs, coalesce_ms=LONG_MS, grace_s=0.0) as served,
        connect(served.port) as client,
    ):
        await client.send("POST", CHAT, STREAM)
        await client.head()
        await waits.wait()
        served.server.hurry()
        await served.server.drain()
        raw = await rest(client)
    assert contents(raw) == ["a", "b"]
    assert b'"error"' in raw.split(b"\n\n")[-2]


async def test_it_may_be_switched_on_and_off_while_the_node_serves() -> None:
    async with node(talk) as served:
        parts = served.parts
        parts.retune(replace(parts.options, coalesce_ms=LONG_MS), parts.reading, parts.dialects)
        on = await ask(served.port, "POST", CHAT, STREAM)
        parts.retune(replace(parts.options, coalesce_ms=0), parts.reading, parts.dialects)
        off = await ask(served.port, "POST", CHAT, STREAM)
    assert contents(on.body) == ["a", "bcde"]
    assert contents(off.body) == ["a", "b", "c", "d", "e"]


async def test_a_client_that_goes_away_while_tokens_wait_harms_nobody() -> None:
    waits = asyncio.Event()

    async def hangs(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "a", 1)]
        yield [Delta(0, 0, "b", 1)]
        waits.set()
        await asyncio.Event().wait()

    async with node(hangs, coalesce_ms=50) as served:
        async with connect(served.port) as client:
            await client.send("POST", CHAT, STREAM)
            await client.head()
            await waits.wait()
            client.vanish()
        await until(lambda: served.generations.runs[-1].closed)
        await asyncio.sleep(0.06)
        assert (await ask(served.port, "GET", "/liveness")).status == 200


# ── The timer itself ─────────────────────────────────────────────────────────


class Words:
    """Presents texts as they are; fails on demand."""

    def __init__(self) -> None:
        self.fails = False

    def frames(self, events: Sequence[Event]) -> bytes:
        if self.fails:
            raise ValueError("cannot be presented")
        return "|".join(event.text for event in events if isinstance(event, Delta)).encode()

    def around(self) -> FrameTemplate | None:
        return FrameTemplate(b"", b"|", str.encode)

    def answer(self, _answer: Answer) -> bytes:
        return b"{}"


def uncounted(_saved: int) -> None:
    """Count nothing."""


class Sink:
    """A stream that remembers what the timer writes."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.behind = False
        self.gone = False
        self.broken = False

    def put(self, frames: bytes) -> bool:
        if self.gone:
            raise ConnectionResetError("the client is gone")
        self.writes.append(frames)
        return self.behind

    def break_off(self) -> None:
        self.broken = True


def words(*texts: str) -> list[Event]:
    return [Delta(0, 0, text, 1) for text in texts]


async def test_all_streams_are_written_in_one_wake_up() -> None:
    saved: list[int] = []
    joining = DeltaCoalescer(coalesce_ms=20, on_saved=saved.append)
    sinks = [Sink() for _ in range(3)]
    for sink in sinks:
        presenter = joining.over(Words(), cast(EventStream, sink))
        assert presenter.frames(words("a")) == b"a"
        assert presenter.frames(words("b")) == b""
        assert presenter.frames(words("c", "d")) == b""
    await until(lambda: sinks[0].writes)
    assert [sink.writes for sink in sinks] == [[b"bcd"]] * 3
    assert saved == [2, 2, 2]


async def test_nothing_waits_for_a_client_that_is_behind() -> None:
    joining, sink = DeltaCoalescer(coalesce_ms=20, on_saved=uncounted), Sink()
    presenter = joining.over(Words(), cast(EventStream, sink))
    sink.behind = True
    assert presenter.frames(words("a")) == b"a"
    assert presenter.frames(words("b")) == b""
    await until(lambda: sink.writes)
    # Its owner has to hear of it, and hears of writes only.
    assert presenter.frames(words("c")) == b"c"


@pytest.mark.parametrize("what", ["gone", "unpresentable"])
async def test_one_stream_that_cannot_be_written_to_keeps_no_other_from_it(what: str) -> None:
    joining = DeltaCoalescer(coalesce_ms=20, on_saved=uncounted)
    bad, good, words_of_bad = Sink(), Sink(), Words()
    for sink, inner in ((bad, words_of_bad), (good, Words())):
        presenter = joining.over(inner, cast(EventStream, sink))
        presenter.frames(words("a"))
        presenter.frames(words("b"))
    bad.gone, words_of_bad.fails = what == "gone", what == "unpresentable"
    await until(lambda: good.writes)
    assert (bad.writes, good.writes) == ([], [b"b"])
    assert bad.broken == (what == "unpresentable")


async def test_after_its_end_nothing_is_written() -> None:
    joining, sink = DeltaCoalescer(coalesce_ms=1, on_saved=uncounted), Sink()
    presenter = joining.over(Words(), cast(EventStream, sink))
    presenter.frames(words("a"))
    presenter.frames(words("b"))
    joining.close()
    await asyncio.sleep(0.01)
    assert sink.writes == []


async def test_a_slow_stream_is_left_as_it_is() -> None:
    joining, sink = DeltaCoalescer(coalesce_ms=2, on_saved=uncounted), Sink()
    presenter = joining.over(Words(), cast(EventStream, sink))
    for word in ("a", "b", "c"):
        assert presenter.frames(words(word)) == word.encode()
        await asyncio.sleep(0.01)
