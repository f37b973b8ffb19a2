"""The node's requests with pictures, at simulated engines of every contract: what is right is seen, the rest is not."""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from msgspec.structs import replace

from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.simulator.engine import Engine
from smg_node.core.errors import SmgError
from smg_node.engines.contracts.media.checks import MediaCheckError
from smg_node.engines.engine import Contract, EngineRequest, MediaCard, ModelCard
from smg_node.engines.engine_options import EngineOptions, SharedMemoryOpener
from smg_node.engines.grpc.contract_detection import open_engine
from smg_node.engines.grpc.media_call import MediaCalls
from smg_node.engines.grpc.remote_engine import RemoteEngine
from smg_node.engines.shared_memory import FOLDER, PREFIX
from smg_node.media.engine_media import (
    Dtype,
    EncodedBatch,
    EngineMedia,
    MediaReference,
    Modality,
    ReferenceBatch,
    Tensor,
    TensorBatch,
)
from support.engine_media.media_requests import filled, ints, prompt_of, qwen_batch, request_of
from support.engines.engine_bench import collected, ids_of
from support.engines.simulated_engine import served

COLUMNS = 3 * 2 * 16 * 16
GRIDS = [(1, 4, 4), (1, 8, 12)]
PNG = b"\x89PNG\r\n\x1a\n one"
JPEG = b"\xff\xd8\xff two"


@dataclass
class Side:
    """A simulated engine, and the node's view of it."""

    simulated: Engine
    engine: RemoteEngine
    card: ModelCard

    @property
    def placeholder(self) -> int:
        found = self.simulated.bundle.placeholder
        assert found is not None
        return found

    def pictures(
        self, grids: Sequence[tuple[int, int, int]] = GRIDS, *, dtype: Dtype | None = None
    ) -> tuple[list[int], TensorBatch]:
        media_card = self.card.media
        assert media_card is not None
        wanted: Dtype = "uint8" if media_card.device_normalizes else media_card.dtype
        ids, media = qwen_batch(grids, dtype=dtype or wanted, columns=COLUMNS)
        return self.named(ids, media)

    def named(self, ids: list[int], media: TensorBatch) -> tuple[list[int], TensorBatch]:
        """The same with the placeholder of the engine's model."""
        own = [self.placeholder if one == media.placeholder else one for one in ids]
        return own, replace(media, placeholder=self.placeholder)

    async def answer(self, ids: list[int], media: EngineMedia | None, name: str = "a") -> str:
        request: EngineRequest = request_of(ids, media, name=name, max_tokens=100)
        return self.simulated.bundle.decode(ids_of(await collected(self.engine, request))).strip()


def seen(*contents: bytes) -> str:
    named = ", ".join(hashlib.sha256(one).hexdigest()[:8] for one in contents)
    return f"I see {len(contents)}: {named}."


@contextmanager
def simulated(
    contract: str, *, server: Any = "grpc", **settings: Any
) -> Iterator[tuple[str, Engine]]:
    said = {"contract": contract, "vision": "qwen3_vl", "step_s": 0.0, **settings}
    with served(Wanted(settings=said, script="pictures", server=server)) as engines:
        yield engines.address, engines.engines[0]


@asynccontextmanager
async def open_side(
    address: str, engine: Engine, contract: str, **options: Any
) -> AsyncIterator[Side]:
    """Call a simulated engine as the node does, for the length of a block."""
    remote = await open_engine(address, EngineOptions(**options), contract=Contract(contract))
    try:
        yield Side(engine, remote, await remote.card(10))
    finally:
        await remote.close()


@pytest.mark.parametrize("server", ["grpc", "h2"])
@pytest.mark.parametrize("transport", ["h2", "grpcio"])
@pytest.mark.parametrize("contract", ["vllm", "sglang", "tokenspeed"])
async def test_the_engine_sees_the_pictures_that_were_sent(
    contract: str, transport: str, server: str
) -> None:
    with simulated(contract, server=server) as (address, engine):
        async with open_side(address, engine, contract, transport=transport) as side:
            ids, media = side.pictures()
            assert await side.answer(ids, media) == seen(*map(bytes, media.pixels.pieces))
            one_ids, one = side.pictures([(1, 2, 2)])
            assert await side.answer(one_ids, one, "b") == seen(bytes(one.pixels.pieces[0]))
            assert await side.answer([1, 2, 3], None, "c") == "I see no picture."
        assert engine.tally.media_mistakes == 0
        assert engine.tally.pictures == 3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
async def test_a_vllm_that_does_not_normalise_gets_floats_of_its_type(dtype: Any) -> None:
    with simulated("vllm", media_normalizes=False, media_dtype=dtype) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            assert side.card.media is not None
            assert (side.card.media.device_normalizes, side.card.media.dtype) == (False, dtype)
            ids, media = side.pictures()
            assert media.pixels.dtype == dtype
            assert await side.answer(ids, media) == seen(*map(bytes, media.pixels.pieces))


async def test_whole_pictures_of_a_llava() -> None:
    with simulated("vllm", vision="llava", context=4096) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            ids, ranges = prompt_of([(1, 48, 48)] * 2)
            shape = (2, 3, 336, 336)
            content = filled(shape, "float32")
            media = TensorBatch(
                modality="image",
                pixel_key="pixel_values",
                pixels=Tensor(shape, "float32", (content,)),
                sides={},
                flat_keys={},
                batched_keys=("pixel_values",),
                cpu_keys=(),
                placeholder=151,
                ranges=ranges,
            )
            half = len(content) // 2
            answer = await side.answer(*side.named(ids, media))
            assert answer == seen(content[:half], content[half:])


async def test_references_come_as_urls_and_only_where_they_are_taken() -> None:
    media = ReferenceBatch((MediaReference("image", "https://a.example/1.png", "p"),))
    with simulated("vllm", media_references=True) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            assert side.card.media is not None
            assert side.card.media.schemes == {"http", "https", "data"}
            ids = [1, side.placeholder, 2]
            assert await side.answer(ids, media) == seen(b"https://a.example/1.png")
    with simulated("vllm") as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            with pytest.raises(MediaCheckError):
                await side.answer([1, side.placeholder, 2], media)


REFERRED: Final[tuple[tuple[Modality, str], ...]] = (
    ("image", "https://a.example/1.png"),
    ("video", "data:video/mp4;base64,AAAA"),
    ("audio", "https://a.example/1.wav"),
)


async def test_videos_and_sound_come_as_references_beside_pictures() -> None:
    media = ReferenceBatch(tuple([MediaReference(kind, url, "p") for kind, url in REFERRED]))
    with simulated("vllm", vision="qwen2_5_omni", media_references=True) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            marks = [engine.bundle.placeholders[kind] for kind, _ in REFERRED]
            answer = await side.answer([1, *marks, 2], media)
            image, video, audio = (
                hashlib.sha256(url.encode()).hexdigest()[:8] for _, url in REFERRED
            )
            assert answer == f"I see 3: {image}, video {video}, audio {audio}."
        assert engine.tally.media_mistakes == 0


@pytest.mark.parametrize(
    ("vision", "settings", "url", "marks", "words"),
    [
        ("qwen3_vl", {}, "https://a/1", 0, "0 placeholders of video in the prompt for 1 items"),
        ("qwen3_vl", {}, "https://a/1", 2, "2 placeholders of video in the prompt for 1 items"),
        ("qwen3_vl", {"media_item_bytes_max": 2}, "data:video/mp4;base64,AAAA", 1, "above the 2-"),
        ("qwen3_vl", {}, "data:video/mp4,AAAA", 1, "Only base64 data URLs"),
        ("llava", {}, "https://a/1", 0, "above this worker's limit of 0"),
    ],
)
async def test_what_a_vllm_refuses_of_a_video_is_refused(
    vision: str, settings: dict[str, Any], url: str, marks: int, words: str
) -> None:
    media = ReferenceBatch((MediaReference("video", url, "p"),))
    with simulated("vllm", vision=vision, media_references=True, **settings) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            mark = engine.bundle.placeholders.get("video", 0)
            with pytest.raises(SmgError) as raised:
                await side.answer([1, *[mark] * marks, 2], media)
            assert words in str(raised.value.message) + str(raised.value.__cause__)
        assert engine.tally.media_mistakes >= 1


async def test_trtllm_gets_files_and_the_prompt_unexpanded() -> None:
    """Row 22 of the acceptance table."""
    with simulated("trtllm") as (address, engine):
        async with open_side(address, engine, "trtllm") as side:
            mark = side.placeholder
            answer = await side.answer([1, mark, 2, mark], EncodedBatch((PNG, JPEG)))
            assert answer == seen(PNG, JPEG)
            with pytest.raises(SmgError):
                await side.answer([1, mark, mark, mark], EncodedBatch((PNG, JPEG)), "b")
        assert engine.tally.media_mistakes == 1


async def test_the_card_is_what_the_flags_say() -> None:
    settings = {"media_items": "image=3,video=0", "media_tokens_max": 77, "shared_memory": True}
    with simulated("vllm", **settings) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            assert side.card.media is not None
            boot, _, device = side.card.media.shared_memory.partition(":")
            assert boot
            assert int(device) == FOLDER.stat().st_dev
            assert side.card.media == MediaCard(
                ways=frozenset({"tensors"}),
                device_normalizes=True,
                items_max={"image": 3, "video": 0},
                tokens_max=77,
                shared_memory=f"{boot}:{device}",
                video_tensors=True,
            )
            bundle = await side.engine.tokenizer(20)
            assert "preprocessor_config.json" in bundle.files
    with simulated("vllm", vision="") as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            assert side.card.media is None
            assert "preprocessor_config.json" not in (await side.engine.tokenizer(20)).files


# ── What is wrong ───────────────────────────────────────────────────────────


def cut(media: TensorBatch, **fields: Any) -> TensorBatch:
    return replace(media, ranges=(replace(media.ranges[0], **fields), *media.ranges[1:]))


async def wrong(side: Side, name: str) -> tuple[list[int], TensorBatch]:
    """A request that the node would never send, past its own checks."""
    ids, media = side.pictures()
    length = media.ranges[0].length
    if name == "a range one short":
        return ids, cut(media, length=length - 1)
    if name == "ids missing":
        at = media.ranges[0].offset
        return [*ids[:at], 7, *ids[at + 1 :]], media
    if name == "floats":
        return side.pictures(dtype="float32")
    if name == "another grid":
        grid = ints((2, 3), 1, 4, 4, 1, 8, 8)
        return ids, replace(media, sides={**media.sides, "image_grid_thw": grid})
    assert name == "the same hash"
    return ids, cut(media, digest=media.ranges[1].digest)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send what the node's checks would stop, to see what engines do with it."""
    monkeypatch.setattr(MediaCalls, "_checked", lambda self, _: self._wire)


WRONG = ["a range one short", "ids missing", "floats", "another grid", "the same hash"]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", WRONG)
async def test_a_strict_engine_refuses_and_counts_what_is_wrong(name: str) -> None:
    with simulated("vllm") as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            right_ids, right = side.pictures()
            expected = await side.answer(right_ids, right, "first")
            with pytest.raises(SmgError, match="media: "):
                await side.answer(*(await wrong(side, name)), "second")
            assert await side.answer(right_ids, right, "third") == expected
        assert engine.tally.media_mistakes >= 1
        assert engine.tally.refused == 1


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ["a range one short", "ids missing", "floats"])
async def test_a_trusting_engine_answers_something_else(name: str) -> None:
    """Row 8 of the acceptance table: status OK, and another answer."""
    with simulated("vllm", media_trusting=True) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            ids, media = await wrong(side, name)
            fresh = replace(
                media,
                ranges=tuple(replace(one, digest=one.digest[::-1]) for one in media.ranges),
            )
            answer = await side.answer(ids, fresh, "first")
            assert answer.startswith("I see 2: ")
            assert answer != seen(*map(bytes, media.pixels.pieces))
        assert engine.tally.media_mistakes >= 1
        assert engine.tally.refused == 0


@pytest.mark.usefixtures("unchecked")
async def test_a_trusting_engine_believes_a_hash_more_than_the_picture() -> None:
    with simulated("vllm", media_trusting=True) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            ids, media = side.pictures([(1, 2, 2)])
            first = await side.answer(ids, media, "first")
            other = Tensor(media.pixels.shape, "uint8", (filled(media.pixels.shape, "uint8", 99),))
            assert await side.answer(ids, replace(media, pixels=other), "second") == first


@pytest.mark.usefixtures("unchecked")
async def test_a_trusting_engine_stops_for_everybody_where_tensors_contradict_each_other() -> None:
    """That nothing of the kind is ever sent is what the node's checks are for."""
    with simulated("vllm", media_trusting=True) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            with pytest.raises(SmgError):
                await side.answer(*(await wrong(side, "another grid")), "first")
            with pytest.raises(SmgError):
                await side.answer([1, 2, 3], None, "second")
        assert engine.dead


@pytest.mark.usefixtures("unchecked")
async def test_a_word_that_is_no_type_and_missing_hashes_end_their_own_request() -> None:
    with simulated("vllm", media_trusting=True) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            ids, media = side.pictures([(1, 2, 2)])
            double: Any = "float64"
            content = bytes(8 * media.pixels.shape[0] * media.pixels.shape[1])
            odd = Tensor(media.pixels.shape, double, (content,))
            with pytest.raises(SmgError):
                await side.answer(ids, replace(media, pixels=odd), "first")
            assert (await side.answer(ids, media, "second")).startswith("I see 1: ")


async def test_a_decode_engine_takes_the_grids_and_hashes_without_the_pixels() -> None:
    """The transfer itself fails, as there is no other engine: what is asked is whether the request is right."""
    with simulated("vllm", role="decode", pair_wait_s=0.2) as (address, engine):
        async with open_side(address, engine, "vllm") as side:
            ids, media = side.pictures()
            told = {"do_remote_prefill": True, "do_remote_decode": False, "remote_engine_id": "x"}
            more = {"remote_block_ids": [1], "remote_host": "127.0.0.1", "remote_port": 1}
            request = replace(request_of(ids, media), transfer=json.dumps({**told, **more}))
            with pytest.raises(SmgError) as raised:
                await collected(side.engine, request)
            assert "media" not in raised.value.message
        assert engine.tally.media_mistakes == 0
        assert engine.tally.pictures == 2


# ── Shared memory ───────────────────────────────────────────────────────────


def ours() -> set[str]:
    return {name for name in os.listdir(FOLDER) if name.startswith(PREFIX)}


@pytest.mark.parametrize("contract", ["vllm", "tokenspeed"])
async def test_large_tensors_come_through_shared_memory_and_leave_it_as_it_was(
    contract: str,
) -> None:
    before = ours()
    settings = {"shared_memory": True, "context": 8192, "blocks": 2048}
    with simulated(contract, **settings) as (address, engine):
        opener = SharedMemoryOpener()
        async with open_side(address, engine, contract, open_memory=opener) as side:
            ids, media = side.pictures([(1, 2, 2), (1, 16, 24)])
            expected = seen(*map(bytes, media.pixels.pieces))
            assert await side.answer(ids, media) == expected
            assert engine.tally.shared == 1
            many = [
                side.answer(ids, media, f"n-{at}") if at % 2 else _given_up(side, ids, media, at)
                for at in range(20)
            ]
            answers = await asyncio.gather(*many)
            assert answers[1::2] == [expected] * 10
            await asyncio.get_running_loop().shutdown_default_executor()
            assert not len(opener())
    assert ours() == before


async def _given_up(side: Side, ids: list[int], media: TensorBatch, at: int) -> str:
    try:
        async with asyncio.timeout(0.001 * at):
            return await side.answer(ids, media, f"given-up-{at}")
    except TimeoutError:
        return ""
