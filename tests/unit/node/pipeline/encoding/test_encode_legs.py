"""Encode legs: pictures are encoded at once, before the call; what breaks, who is blamed, and what is cancelled."""

import asyncio
import gc
import random
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, PulledChunks
from smg_node.engines.disaggregation import Encoding, Pairing, Room
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.transport.grpc_status import DEADLINE_CODE, UNREACHABLE_CODE
from smg_node.fleet.health.circuit_breaker import Breaker, BreakerOptions
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.fleet.workers.worker import Worker
from smg_node.fleet.workers.worker_spec import DeclaredWorker, worker_id_of
from smg_node.media.engine_media import EncodedBatch, TensorBatch
from smg_node.pipeline.encoding.encode_legs import AT_ONCE_MAX, EncodeLegs, EncodeParts
from smg_node.pipeline.reservation import Reservation
from smg_node.system_clock import SystemClock
from support.engine_media.media_requests import qwen_batch, request_of
from support.engines.fake_engine import FakeEngine, card

GRID = (1, 2, 4)


class EncodingEngine(FakeEngine):
    """An engine that encodes; `takes` is how it does."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[EngineRequest] = []
        self.error: SmgError | None = None
        self.gate: asyncio.Event | None = None
        self.most = 0

    async def encode(self, request: EngineRequest) -> None:
        self.encoded.append(request)
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            if self.gate is not None:
                await asyncio.wait_for(self.gate.wait(), request.timeout_s)
            await asyncio.sleep(0)
            if self.error is not None:
                raise self.error
        except TimeoutError:
            raise SmgError(ErrorKind.UPSTREAM_TIMEOUT, "the engine took too long") from None
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.open -= 1


def worker_of(engine: EncodingEngine, host: str) -> Worker:
    url = parse_worker_url(f"grpc://{host}:1?role=encode")
    load = WorkerLoad(worker_id_of(url))
    worker = Worker(DeclaredWorker(url), load, Breaker(BreakerOptions(), random.Random(1)))
    worker.engine = engine
    worker.card = card(
        contract=Contract.TOKENSPEED,
        role="encode",
        pairing=Pairing("room", bootstrap_port=18995, room_bits=63),
    )
    return worker


class Scene:
    """A call of some pictures, all on one encoder but those of `apart`."""

    def __init__(
        self,
        count: int = 3,
        *,
        style: Encoding = "room",
        apart: Sequence[int] = (),
        timeout_s: float = 5.0,
    ) -> None:
        self.engine, self.other = EncodingEngine(), EncodingEngine()
        self.workers = worker_of(self.engine, "a"), worker_of(self.other, "b")
        self.holds = []
        for at in range(count):
            worker = self.workers[at in apart]
            assert worker.engine is not None
            assert worker.card is not None
            worker.hold(2)
            self.holds.append(Reservation(worker, worker.engine, worker.card, 2, 2, alone=True))
        self.seen: list[tuple[str, float]] = []
        parts = EncodeParts(SystemClock(), lambda said, seconds: self.seen.append((said, seconds)))
        numbers = list(range(101, 101 + count))
        self.legs = EncodeLegs(parts, style, self.holds, numbers, timeout_s=timeout_s)
        ids, media = qwen_batch([GRID] * count)
        self.request = request_of(ids, media)
        self.begun: list[EngineRequest] = []
        self.call_error: SmgError | None = None

    def begin(self, request: EngineRequest) -> ChunkStream:
        self.begun.append(request)

        async def chunks() -> AsyncGenerator[Sequence[Chunk], None]:
            if self.call_error is not None:
                raise self.call_error
            yield [Chunk(0, (1, 2))]
            yield [Chunk(0, (3,), finish="stop")]

        return PulledChunks(chunks())

    async def run(self, request: EngineRequest | None = None) -> list[int]:
        stream = self.legs.stream(request or self.request, self.begin)
        ids: list[int] = []

        def take(chunks: Sequence[Chunk]) -> bool:
            for one in chunks:
                ids.extend(one.ids)
            return True

        try:
            over = await stream.pour(take)
            assert over
        finally:
            await stream.aclose()
        return ids

    @property
    def busy(self) -> int:
        return sum(worker.inflight for worker in self.workers)


async def test_every_picture_is_encoded_before_the_call_and_has_a_room_of_its_own() -> None:
    scene = Scene()
    assert await scene.run() == [1, 2, 3]
    (begun,) = scene.begun
    assert begun.rooms == tuple([Room("a", 18995, number) for number in (101, 102, 103)])
    assert not begun.pixels
    assert begun.media is scene.request.media
    numbers = [one.room.number for one in scene.engine.encoded if one.room is not None]
    assert numbers == [101, 102, 103]
    assert {one.request_id for one in scene.engine.encoded} == {"eng-1-e0", "eng-1-e1", "eng-1-e2"}
    media = scene.request.media
    assert isinstance(media, TensorBatch)
    for at, one in enumerate(scene.engine.encoded):
        place = media.ranges[at]
        assert list(one.ids) == list(scene.request.ids[place.offset : place.offset + place.length])
        assert isinstance(one.media, TensorBatch)
        assert one.media.ranges == (replace(place, offset=0),)
    assert scene.busy == 0
    assert [said for said, _ in scene.seen] == ["ok"] * 3


async def test_where_there_is_a_store_the_call_goes_on_as_it_is() -> None:
    scene = Scene(style="cache")
    assert await scene.run() == [1, 2, 3]
    (begun,) = scene.begun
    assert (begun.rooms, begun.pixels) == ((), True)
    assert [one.room for one in scene.engine.encoded] == [None] * 3
    assert all(one.sampling.max_tokens == 1 for one in scene.engine.encoded)
    assert scene.legs.seen_by(card("x")) == card("x")


async def test_nothing_of_the_pictures_is_held_while_the_answer_goes_on() -> None:
    it, gate = Scene(style="cache"), asyncio.Event()

    async def chunks() -> AsyncGenerator[Sequence[Chunk], None]:
        yield [Chunk(0, (3,))]
        await gate.wait()
        yield [Chunk(0, (), finish="stop")]

    media = it.request.media
    assert isinstance(media, TensorBatch)
    before = sys.getrefcount(media)
    stream = it.legs.stream(it.request, lambda _: PulledChunks(chunks()))
    it.request = replace(it.request, media=None)
    assert sys.getrefcount(media) == before
    assert not await stream.pour(lambda _: False)
    for worker in it.workers:
        assert isinstance(worker.engine, EncodingEngine)
        worker.engine.encoded.clear()
    gc.collect()
    assert sys.getrefcount(media) == before - 1
    gate.set()
    while not await stream.pour(lambda _: True):
        pass
    await stream.aclose()


class _Shared(PulledChunks):
    """A call whose tensors went through shared memory."""

    shared = True


async def test_how_the_tensors_went_is_known_of_a_call_whose_pictures_others_encode() -> None:
    it = Scene(style="cache")

    async def chunks() -> AsyncGenerator[Sequence[Chunk], None]:
        yield [Chunk(0, (3,), finish="stop")]

    for way in (_Shared, PulledChunks):
        stream: Any = it.legs.stream(it.request, lambda _, way=way: way(chunks()))  # type: ignore[misc]  # mypy: a default of a lambda
        assert not stream.shared, "nothing has gone yet"
        await stream.pour(lambda _: True)
        assert stream.shared is (way is _Shared)
        await stream.aclose()


async def test_encoders_are_busy_until_the_answer_begins() -> None:
    scene = Scene()
    stream = scene.legs.stream(scene.request, scene.begin)
    assert scene.busy == 3
    found: list[int] = []

    def first(chunks: Sequence[Chunk]) -> bool:
        found.append(scene.busy)
        return False

    assert not await stream.pour(first)
    assert found == [0]
    await stream.aclose()


async def test_a_picture_that_nobody_takes_breaks_the_call_before_it_begins() -> None:
    scene = Scene(apart=[1])
    scene.engine.gate = asyncio.Event()
    scene.other.error = SmgError(ErrorKind.UPSTREAM_FAILED, "gone", code=UNREACHABLE_CODE)
    with pytest.raises(SmgError, match="gone"):
        await scene.run()
    assert scene.begun == []
    assert scene.engine.cancelled == 2
    assert scene.legs.fault is scene.holds[1]
    assert scene.workers[1].suspected
    assert not scene.workers[0].suspected
    assert sorted(said for said, _ in scene.seen) == ["cancelled", "cancelled", "failed"]
    scene.legs.release(0)
    assert scene.busy == 0


async def test_the_reservation_of_the_call_blames_the_encoder_and_nobody_else() -> None:
    scene = Scene(1)
    scene.engine.error = SmgError(ErrorKind.UPSTREAM_FAILED, "broken")
    prefill = worker_of(EncodingEngine(), "p")
    assert prefill.engine is not None
    assert prefill.card is not None
    prefill.hold(9)
    hold = Reservation(prefill, prefill.engine, prefill.card, encodes=scene.legs)
    assert hold.seeing is scene.holds[0].card
    with pytest.raises(SmgError) as caught:
        await scene.run()
    assert hold.culprit is scene.workers[0]
    assert hold.lonely
    hold.failed(caught.value, 1.0)
    assert prefill.breaker.view(1.0).failures == 0
    assert scene.workers[0].breaker.view(1.0).failures == 1
    hold.release(1.0)
    assert (scene.busy, prefill.inflight) == (0, 0)


async def test_an_encoder_that_is_too_slow_is_told_by_the_name_of_its_limit() -> None:
    scene = Scene(1, timeout_s=0.02)
    scene.engine.gate = asyncio.Event()
    with pytest.raises(SmgError, match=r"routing\.encode_timeout_s") as caught:
        await scene.run()
    assert caught.value.code == "encode_timeout"
    assert scene.workers[0].breaker.view(0.0).failures == 1


async def test_a_request_whose_own_time_is_up_blames_no_encoder() -> None:
    scene = Scene(1)
    scene.engine.gate = asyncio.Event()
    with pytest.raises(SmgError) as caught:
        await scene.run(replace(scene.request, timeout_s=0.02))
    assert caught.value.code == DEADLINE_CODE
    assert scene.workers[0].breaker.view(0.0).failures == 0


async def test_a_client_that_leaves_takes_the_calls_along() -> None:
    scene = Scene(4)
    scene.engine.gate = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scene.run())
        while scene.engine.open < 4:  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0)
        running.cancel()
    assert running.cancelled()
    assert (scene.engine.cancelled, scene.engine.open, scene.begun) == (4, 0, [])


async def test_so_many_are_encoded_at_a_time() -> None:
    scene = Scene(2 * AT_ONCE_MAX + 3)
    await scene.run()
    assert scene.engine.most == AT_ONCE_MAX
    assert len(scene.engine.encoded) == 2 * AT_ONCE_MAX + 3


async def test_an_answer_that_never_begins_has_its_encoders_looked_at() -> None:
    scene = Scene(2, apart=[1])
    scene.call_error = SmgError(ErrorKind.UPSTREAM_FAILED, "EPD embedding receive failed")
    with pytest.raises(SmgError, match="receive failed"):
        await scene.run()
    assert all(worker.suspected for worker in scene.workers)
    assert all(worker.breaker.view(0.0).failures == 0 for worker in scene.workers)
    assert scene.legs.fault is None


async def test_pictures_in_another_form_go_past_the_encoders() -> None:
    scene = Scene(2)
    request = replace(scene.request, media=EncodedBatch((b"a", b"b")))
    assert await scene.run(request) == [1, 2, 3]
    assert scene.begun == [request]
    assert scene.engine.encoded == []
    assert scene.busy == 0


async def test_values_are_made_for_the_encoder_where_only_it_sees_them() -> None:
    scene = Scene(1)
    mine = changed(card("x"), vocabulary=7)
    assert scene.legs.seen_by(mine) is scene.holds[0].card
