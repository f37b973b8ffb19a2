"""Calls with pictures over real transports: whole, checked, bounded, and with nothing left in shared memory."""

import asyncio
import gc
import logging
import os
import weakref
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from msgspec import structs
from smg_grpc_proto.generated import vllm_engine_pb2 as pb

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.engine_options import EngineOptions, SharedMemoryOpener
from smg_node.engines.shared_memory import SharedMemory
from smg_node.media.engine_media import TensorBatch
from support.engine_media.media_requests import qwen_batch, request_of
from support.engines import engine_bench
from support.engines.engine_bench import Bench, collected, failure
from support.engines.engine_server import RefusalError

bench = partial(engine_bench.bench, takes_bytes=256 << 20)
LARGE = [(1, 64, 64), (1, 128, 128)]
INLINE = EngineOptions(first_event_s=20, stall_s=20)


@pytest.fixture(params=["h2", "grpcio"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(engine_bench, "TRANSPORT", request.param)
    return str(request.param)


def large(name: str = "eng-1", **changes: Any) -> tuple[EngineRequest, TensorBatch]:
    ids, media = qwen_batch(LARGE, columns=96, **changes)
    return request_of(ids, media, name=name), media


def introduces(served: Bench, namespace: str = "", *, vision: bool = True, **server: Any) -> None:
    model = pb.GetModelInfoResponse(served_model_name="m", supports_vision=vision)
    about = pb.GetServerInfoResponse(shm_namespace_id=namespace, **server)
    served.server.unary[served.path("GetModelInfo")] = lambda _: model.SerializeToString()
    served.server.unary[served.path("GetServerInfo")] = lambda _: about.SerializeToString()


def last_inputs(served: Bench) -> Any:
    data = served.server.calls_of("Generate")[-1].request
    return pb.GenerateRequest.FromString(data).mm_inputs


async def test_a_large_tensor_arrives_as_it_was(transport: str) -> None:
    async with bench(options=INLINE) as served:
        served.says(served.chunk(7), served.complete())
        request, media = large()
        assert media.pixels.size > 7 << 20
        chunks = await collected(served.engine, request)
        assert [one for chunk in chunks for one in chunk.ids] == [7]
        inputs = last_inputs(served)
        assert inputs.pixel_values.inline == b"".join(media.pixels.pieces)


async def test_calls_with_and_without_pictures_share_a_connection(transport: str) -> None:
    async with bench(options=INLINE) as served:
        served.says(served.chunk(7), served.complete())
        asked = [large(f"picture-{at}")[0] for at in range(3)]
        asked += [engine_bench.request(f"text-{at}") for at in range(5)]
        answers = await asyncio.gather(*(collected(served.engine, one) for one in asked))
        assert all(chunks[0].ids for chunks in answers)
        sizes = sorted(len(call.request) for call in served.server.calls_of("Generate"))
        assert sizes[4] < 1000
        assert sizes[5] > 7 << 20


async def test_a_message_over_the_bound_is_a_413_that_says_what_to_do(transport: str) -> None:
    async with bench(options=replace(INLINE, media_message_max_bytes=1 << 20)) as served:
        error = await failure(served.engine, large()[0])
        assert error.kind is ErrorKind.TOO_LARGE
        assert "max_pixels" in error.message
        assert str(1 << 20) in error.message
        assert not served.server.calls_of("Generate")


async def test_a_text_as_large_is_still_refused_at_its_own_bound(transport: str) -> None:
    async with bench(options=replace(INLINE, message_max_bytes=70_000)) as served:
        served.says(served.complete())
        await failure(served.engine, engine_bench.request(stop=("x" * 80_000,)))
        await collected(served.engine, large()[0])


async def test_what_contradicts_itself_never_leaves_and_is_logged_with_shapes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with bench(options=INLINE) as served:
        introduces(served)
        await served.engine.card(5)
        request, media = large()
        short = structs.replace(media.ranges[0], length=media.ranges[0].length - 1)
        bad = structs.replace(media, ranges=(short, *media.ranges[1:]))
        with caplog.at_level(logging.ERROR):
            error = await failure(served.engine, structs.replace(request, media=bad))
        assert (error.kind, error.code) == (ErrorKind.INTERNAL, "media_check_failed")
        assert error.where == "messages[0].content[0]"
        assert "float32[20480, 96]" in caplog.text
        assert not served.server.calls_of("Generate")


async def test_the_card_of_the_moment_decides() -> None:
    async with bench(options=INLINE) as served:
        served.says(served.complete())
        introduces(served, mm_device_do_normalize=True)
        await served.engine.card(5)
        await failure(served.engine, large("a")[0])
        await collected(served.engine, large("b", dtype="uint8")[0])
        introduces(served)
        await served.engine.card(5)
        await failure(served.engine, large("c", dtype="uint8")[0])
        await collected(served.engine, large("d")[0])
        introduces(served, vision=False)
        await served.engine.card(5)
        await failure(served.engine, large("e")[0])


async def test_an_engine_without_pictures_is_never_sent_one() -> None:
    async with bench(Contract.MLX, INLINE) as served:
        error = await failure(served.engine, large()[0])
        assert error.code == "media_check_failed"


# ── Shared memory ───────────────────────────────────────────────────────────


class Opened(SharedMemoryOpener):
    """Shared memory in a folder of the test's own."""

    def __init__(self, memory: SharedMemory) -> None:
        super().__init__()
        self._opened = memory


@pytest.fixture
def memory(tmp_path: Path) -> SharedMemory:
    return SharedMemory(tmp_path)


def sharing(memory: SharedMemory) -> EngineOptions:
    return replace(INLINE, open_memory=Opened(memory))


def reader(served: Bench, folder: Path, *, unlink: bool = True) -> list[bytes]:
    """Let the engine read tensors as servicers do; what it read comes into the list."""
    read: list[bytes] = []

    async def script(data: bytes) -> AsyncIterator[bytes]:
        inputs = pb.GenerateRequest.FromString(data).mm_inputs
        if inputs.pixel_values.WhichOneof("payload") == "shm":
            path = folder / inputs.pixel_values.shm.name
            read.append(path.read_bytes())
            assert len(read[-1]) == inputs.pixel_values.shm.nbytes
            if unlink:
                path.unlink()
        else:
            read.append(inputs.pixel_values.inline)
        yield served.chunk(7)
        yield served.complete()

    served.generates(script)
    return read


@pytest.mark.parametrize("unlink", [True, False])
async def test_tensors_go_through_shared_memory_where_it_is_the_same(
    transport: str, memory: SharedMemory, tmp_path: Path, *, unlink: bool
) -> None:
    async with bench(options=sharing(memory)) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)
        read = reader(served, tmp_path, unlink=unlink)
        request, media = large()
        await collected(served.engine, request)
        assert read == [b"".join(media.pixels.pieces)]
        assert len(served.server.calls_of("Generate")[0].request) < 20_000
        assert not os.listdir(tmp_path)


@pytest.mark.parametrize("shared", [True, False])
async def test_nothing_of_a_tensor_is_held_by_a_call_whose_answer_goes_on(
    transport: str, memory: SharedMemory, *, shared: bool
) -> None:
    async with bench(options=sharing(memory) if shared else INLINE) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)
        gate = asyncio.Event()

        async def script(_: bytes) -> AsyncIterator[bytes]:
            yield served.chunk(7)
            await gate.wait()
            yield served.complete()

        served.generates(script)
        request, known = _known_by(*large())
        stream = served.engine.call(request)
        assert getattr(stream, "shared", False) is False
        del request
        assert not await stream.pour(lambda _: False), "it has said something"
        gc.collect()
        assert known() is None
        assert getattr(stream, "shared", False) is shared
        gate.set()
        while not await stream.pour(lambda _: True):
            pass
        await stream.aclose()


@pytest.mark.parametrize("shared", [True, False])
async def test_a_first_engine_of_a_pair_tells_how_tensors_went_to_it(
    memory: SharedMemory, tmp_path: Path, *, shared: bool
) -> None:
    async with bench(options=sharing(memory) if shared else INLINE) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)
        read = reader(served, tmp_path)
        request, media = large()
        assert (await served.engine.prefill(request)).shared is shared
        assert read == [b"".join(media.pixels.pieces)]


def _known_by(
    request: EngineRequest, media: TensorBatch
) -> "tuple[EngineRequest, weakref.ref[Any]]":
    """Return the request with its tensor in an array of which nothing is held but by it."""
    array = np.frombuffer(b"".join(media.pixels.pieces), dtype=np.uint8).copy()
    pixels = structs.replace(media.pixels, pieces=(array.data,))
    media = structs.replace(media, pixels=pixels)
    return structs.replace(request, media=media), weakref.ref(array)


@pytest.mark.parametrize("namespace", ["", "elsewhere:22"])
async def test_another_folder_of_the_same_name_is_not_used(
    memory: SharedMemory, tmp_path: Path, namespace: str
) -> None:
    async with bench(options=sharing(memory)) as served:
        introduces(served, namespace)
        await served.engine.card(5)
        read = reader(served, tmp_path)
        request, media = large()
        await collected(served.engine, request)
        assert read == [b"".join(media.pixels.pieces)]
        assert not len(memory)


async def test_small_tensors_go_in_the_message(memory: SharedMemory, tmp_path: Path) -> None:
    async with bench(options=sharing(memory)) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)
        read = reader(served, tmp_path)
        ids, media = qwen_batch()
        await collected(served.engine, request_of(ids, media))
        assert read == [b"".join(media.pixels.pieces)]


async def test_without_room_they_go_in_the_message(tmp_path: Path) -> None:
    memory = SharedMemory(tmp_path, held_max_bytes=1 << 20)
    async with bench(options=sharing(memory)) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)
        read = reader(served, tmp_path)
        request, media = large()
        await collected(served.engine, request)
        assert read == [b"".join(media.pixels.pieces)]
        assert not os.listdir(tmp_path)


async def test_a_hundred_calls_of_which_half_fail_or_are_cancelled_leave_nothing(
    memory: SharedMemory, tmp_path: Path
) -> None:
    """Row 15 of the acceptance table: shared memory is as it was, whatever became of the calls."""
    async with bench(options=sharing(memory)) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)

        async def script(data: bytes) -> AsyncIterator[bytes]:
            request = pb.GenerateRequest.FromString(data)
            name = request.mm_inputs.pixel_values.shm.name
            kind = request.request_id.split("-")[0]
            if kind == "refused":
                raise RefusalError(grpc.StatusCode.UNAVAILABLE, "not now")
            if kind == "silent":
                await asyncio.Event().wait()
            (tmp_path / name).unlink()
            yield served.chunk(7)
            if kind == "broken":
                raise RefusalError(grpc.StatusCode.UNAVAILABLE, "gone")
            yield served.complete()

        served.generates(script)
        kinds = [
            "good",
            "good",
            "good",
            "good",
            "good",
            "refused",
            "silent",
            "broken",
            "early",
            "closed",
        ]
        ids, media = qwen_batch([(1, 64, 64)], columns=96)

        async def one(kind: str, number: int) -> str:
            request = request_of(ids, media, name=f"{kind}-{number}")
            if kind == "closed":
                await served.engine.call(request).aclose()
                return kind
            patience_s = {"early": 0.0005 * number, "silent": 0.3}.get(kind, 20.0)
            try:
                async with asyncio.timeout(patience_s):
                    await collected(served.engine, request)
            except (SmgError, TimeoutError):
                return "failed"
            return "good"

        wanted = [(kinds[at % 10], at) for at in range(100)]
        ended = await asyncio.gather(*(one(*what) for what in wanted))
        assert ended.count("good") >= 50
        async with asyncio.timeout(20):
            await (
                asyncio.get_running_loop().shutdown_default_executor()
            )  # and with it what was cancelled
        assert not os.listdir(tmp_path)


async def test_an_engine_that_cannot_open_a_file_gets_the_next_tensor_in_the_message(
    memory: SharedMemory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(options=sharing(memory)) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)

        async def script(data: bytes) -> AsyncIterator[bytes]:
            inputs = pb.GenerateRequest.FromString(data).mm_inputs
            if inputs.pixel_values.WhichOneof("payload") == "shm":
                raise RefusalError(grpc.StatusCode.INTERNAL, "[Errno 13] Permission denied")
            yield served.chunk(7)
            yield served.complete()

        served.generates(script)
        with caplog.at_level(logging.WARNING):
            await failure(served.engine, large("a")[0])
        assert "shared memory" in caplog.text
        chunks: list[Chunk] = await collected(served.engine, large("b")[0])
        assert chunks[0].ids[0] == 7
        assert not os.listdir(tmp_path)


async def test_an_engine_that_breaks_in_the_middle_has_read_its_tensors(
    transport: str, memory: SharedMemory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(options=sharing(memory)) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)
        shared: list[bool] = []

        async def script(data: bytes) -> AsyncIterator[bytes]:
            inputs = pb.GenerateRequest.FromString(data).mm_inputs
            shared.append(inputs.pixel_values.WhichOneof("payload") == "shm")
            yield served.chunk(7)
            raise RefusalError(grpc.StatusCode.INTERNAL, "broken")

        served.generates(script)
        with caplog.at_level(logging.WARNING):
            for name in ("a", "b"):
                await failure(served.engine, large(name)[0])
        assert "shared memory" not in caplog.text
        assert shared == [True, True]
        assert not os.listdir(tmp_path)


async def test_a_prefill_takes_its_tensors_the_same_way(
    memory: SharedMemory, tmp_path: Path
) -> None:
    async with bench(options=sharing(memory)) as served:
        introduces(served, memory.namespace)
        await served.engine.card(5)
        read = reader(served, tmp_path)
        request, media = large()
        await served.engine.prefill(request)
        assert read == [b"".join(media.pixels.pieces)]
        assert not os.listdir(tmp_path)
