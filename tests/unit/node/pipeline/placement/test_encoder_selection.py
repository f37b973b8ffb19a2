"""Who encodes a picture: by its digest, among those that can hand over to whoever works the prompt off."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import token_ids
from smg_node.core.journey import Chosen, Journey
from smg_node.engines.disaggregation import Pairing
from smg_node.engines.engine import Contract, MediaCard, Prefilled
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.encoding.encode_legs import EncodeLegs
from smg_node.pipeline.pairs.pair_reservation import PairReservation
from smg_node.pipeline.placement.placement_request import EncodeRule, PlacementRequest
from smg_node.pipeline.placement.placer import PlacerOptions
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Avoid
from smg_node.routing.policy import PromptPictures
from support.engines.fake_engine import FakeEngine, card
from support.engines.generation_bench import Bench, bench_of
from support.fleet.fleet_builder import FAST, declare, set_aside

CALM = replace(FAST, probe_interval_s=60.0)
QUICK = PlacerOptions("round_robin", wait_for_worker_s=0.05)
PICTURES = tuple((f"{number:064x}", 10 * number) for number in range(1, 7))
FLOATS = MediaCard(ways=frozenset({"tensors"}), dtype="float32")
HALVES = MediaCard(ways=frozenset({"tensors"}), dtype="bfloat16")
ROOM = Pairing("room", "mooncake", 18995, "", 63)


class EncodingEngine(FakeEngine):
    """An engine that encodes pictures."""

    async def encode(self, request: object) -> None:
        """Accept it."""


def engine(contract: Contract, role: str, media: MediaCard | None = FLOATS) -> EncodingEngine:
    found = EncodingEngine()
    found.contract = contract
    pairing = ROOM if contract is Contract.TOKENSPEED and role != "regular" else None
    found.model_card = card(contract=contract, role=role, pairing=pairing, media=media)
    return found


@dataclass
class Scene:
    """Encoders and those they encode for, by the names of their hosts."""

    bench: Bench
    journey: Journey

    def worker(self, host: str) -> Worker:
        return self.bench.fleet.get(f"grpc://{host}:1")

    async def place(
        self,
        *,
        avoid: str = "",
        pictures: int = 6,
        avoiding: Avoid | None = None,
        encodes: str | None = None,
        looked: PromptPictures | None = None,
    ) -> Reservation:
        model = self.bench.fleet.served("tiny")
        assert model is not None
        wish = PlacementRequest(
            asyncio.get_running_loop().time() + 0.3,
            token_ids(list(range(100))),
            avoid=avoiding or Avoid(failed=frozenset(str(self.worker(host).id) for host in avoid)),
            encodable=PICTURES[:pictures],
            journey=self.journey,
            pictures=looked or (_seen(pictures) if pictures else None),
            encodes=None if encodes is None else lambda worker: worker.url.host in encodes,
        )
        return await self.bench.placer.hold(model, wish)

    async def hosts(self, **how: object) -> str:
        """Return who encodes the pictures of a call, in order; the call is over at once."""
        hold = await self.place(**how)  # type: ignore[arg-type]  # handed through
        hold.release(0)
        legs = hold.encodes
        if legs is None:
            return ""
        assert isinstance(legs, EncodeLegs)
        return "".join([one.worker.url.host for one in legs._holds])

    def idle(self) -> bool:
        return all(worker.load.inflight == 0 for worker in self.bench.fleet.workers())


def _seen(pictures: int) -> PromptPictures:
    """Return the same pictures as policies see them."""
    return PromptPictures(b"1", 0, tuple([(99, tokens) for _, tokens in PICTURES[:pictures]]))


@asynccontextmanager
async def scene(
    folder: Path,
    engines: dict[str, EncodingEngine],
    *,
    queries: Sequence[str] = (),
    placing: PlacerOptions = QUICK,
) -> AsyncIterator[Scene]:
    async with bench_of(folder, dict(engines), options=CALM, placing=placing) as it:
        declare(it.fleet, *queries)
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in it.fleet.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        yield Scene(it, Journey("r", "n", "chat", "tiny", 0))


def tokenspeed(encoders: str = "xyz") -> dict[str, EncodingEngine]:
    named = {host: engine(Contract.TOKENSPEED, "encode") for host in encoders}
    named["p"] = engine(Contract.TOKENSPEED, "prefill")
    named["d"] = engine(Contract.TOKENSPEED, "decode")
    return named


async def test_a_picture_goes_where_it_went_before_and_pictures_are_spread(tmp_path: Path) -> None:
    async with scene(tmp_path, tokenspeed()) as it:
        first = await it.hosts()
        assert len(first) == 6
        assert len(set(first)) > 1
        assert all([await it.hosts() == first for _ in range(5)])
        set_aside(it.bench.fleet, it.worker(first[0]).id, on=True)
        moved = await it.hosts()
        assert first[0] not in moved
        kept = [at for at, host in enumerate(first) if host != first[0]]
        assert [moved[at] for at in kept] == [first[at] for at in kept]
        assert it.idle()


async def test_the_journey_tells_who_encodes_what(tmp_path: Path) -> None:
    async with scene(tmp_path, tokenspeed()) as it:
        await it.hosts(pictures=2)
        steps = [step for step in it.journey.steps if isinstance(step, Chosen)]
        assert [step.role for step in steps] == ["prefill", "decode", "encode", "encode"]
        told = [(step.note, step.prompt_tokens, step.policy, step.of) for step in steps[2:]]
        assert told == [
            ("picture 1 of 2", 10, "consistent_hashing", 3),
            ("picture 2 of 2", 20, "consistent_hashing", 3),
        ]


async def test_an_encoder_is_counted_in_with_the_tokens_of_its_own_picture_only(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, tokenspeed()) as it:
        hold = await it.place()
        legs = hold.encodes
        assert isinstance(legs, EncodeLegs)
        assert [(one.tokens, one.encoder) for one in legs._holds] == [
            (tokens, None) for _, tokens in PICTURES[:6]
        ]
        hold.release(0)
        assert it.idle()


async def test_one_that_is_full_of_a_popular_picture_gets_help(tmp_path: Path) -> None:
    async with scene(tmp_path, tokenspeed()) as it:
        holds = [await it.place(pictures=1) for _ in range(40)]
        busy = [it.worker(host).inflight for host in "xyz"]
        assert sum(busy) == 40
        assert min(busy) > 0
        for hold in holds:
            hold.release(0)
        assert it.idle()


async def test_policies_are_a_matter_of_settings(tmp_path: Path) -> None:
    placing = replace(QUICK, encode=EncodeRule("round_robin"))
    async with scene(tmp_path, tokenspeed(), placing=placing) as it:
        assert sorted(await it.hosts()) == list("xxyyzz")
    placing = replace(QUICK, encode_policies={"tiny": "round_robin"})
    async with scene(tmp_path, tokenspeed(), placing=placing) as it:
        assert sorted(await it.hosts()) == list("xxyyzz")


async def test_who_failed_is_left_out_and_without_any_the_prefill_worker_encodes(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, tokenspeed("xy")) as it:
        assert set(await it.hosts(avoid="x")) == {"y"}
        assert await it.hosts(avoid="xy") == ""
        hold = await it.place(avoid="xy")
        assert hold.seeing is it.worker("p").card
        hold.release(0)
        assert it.idle()


async def test_without_a_fallback_such_a_call_is_refused_and_text_is_not(tmp_path: Path) -> None:
    placing = replace(QUICK, encode=EncodeRule(fallback=False))
    async with scene(tmp_path, tokenspeed("x"), placing=placing) as it:
        assert await it.hosts() == "xxxxxx"
        set_aside(it.bench.fleet, it.worker("x").id, on=True)
        with pytest.raises(SmgError, match="no worker that encodes pictures for 'tiny'") as caught:
            await it.hosts()
        assert caught.value.kind is ErrorKind.OVERLOADED
        assert await it.hosts(pictures=0) == ""
        assert it.idle()


async def test_without_a_fallback_one_that_failed_is_asked_again_where_no_other_can_be(
    tmp_path: Path,
) -> None:
    placing = replace(QUICK, encode=EncodeRule(fallback=False))
    async with scene(tmp_path, tokenspeed("xy"), placing=placing) as it:
        assert set(await it.hosts(avoid="x")) == {"y"}
        assert set(await it.hosts(avoid="xy")) <= {"x", "y"}
        gone = Avoid(gone=frozenset(str(it.worker(host).id) for host in "xy"))
        with pytest.raises(SmgError, match="no worker that encodes pictures for 'tiny'"):
            await it.place(avoiding=gone)
        assert it.idle()


async def test_one_that_answers_alone_cannot_wait_in_rooms(tmp_path: Path) -> None:
    engines = {
        "x": engine(Contract.TOKENSPEED, "encode"),
        "a": engine(Contract.TOKENSPEED, "regular"),
    }
    async with scene(tmp_path, engines) as it:
        assert await it.hosts() == ""


async def test_a_vllm_finds_pictures_in_a_store_whether_it_answers_alone_or_not(
    tmp_path: Path,
) -> None:
    engines = {"x": engine(Contract.VLLM, "regular"), "a": engine(Contract.VLLM, "regular")}
    queries = ("grpc://x:1?role=encode", "grpc://a:1")
    async with scene(tmp_path, engines, queries=queries) as it:
        assert it.worker("x").encoding == "cache"
        assert await it.hosts() == "xxxxxx"
        assert {await it.hosts(pictures=0) for _ in range(5)} == {""}


async def test_a_call_whose_pictures_others_encode_is_not_placed_without_asking_for_them(
    tmp_path: Path,
) -> None:
    engines = {"x": engine(Contract.VLLM, "regular"), "a": engine(Contract.VLLM, "regular")}
    queries = ("grpc://x:1?role=encode", "grpc://a:1")
    async with scene(tmp_path, engines, queries=queries) as it:
        model = it.bench.fleet.served("tiny")
        assert model is not None
        text = PlacementRequest(float("inf"), token_ids([1]), fits=lambda worker: True)
        hold = it.bench.placer.soon(model, text)
        assert hold is not None
        hold.release(0)
        assert (
            it.bench.placer.soon(model, msgspec.structs.replace(text, encodable=PICTURES)) is None
        )
        assert it.idle()


async def test_encoders_of_another_contract_group_or_type_of_values_are_left_out(
    tmp_path: Path,
) -> None:
    engines = {
        "x": engine(Contract.VLLM, "regular", HALVES),
        "y": engine(Contract.VLLM, "regular"),
        "z": engine(Contract.VLLM, "regular"),
        "a": engine(Contract.VLLM, "regular"),
        "t": engine(Contract.TOKENSPEED, "encode"),
    }
    queries = (
        "grpc://x:1?role=encode&label.encode_group=one",
        "grpc://y:1?role=encode&label.encode_group=one",
        "grpc://z:1?role=encode",
        "grpc://t:1?label.encode_group=one",
        "grpc://a:1?label.encode_group=one",
    )
    async with scene(tmp_path, engines, queries=queries) as it:
        assert await it.hosts() == "yyyyyy"


async def test_a_client_that_wants_an_encoder_itself_gets_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, tokenspeed("x")) as it:
        model = it.bench.fleet.served("tiny")
        assert model is not None
        wish = PlacementRequest(
            asyncio.get_running_loop().time() + 0.3,
            token_ids([1]),
            target=str(it.worker("x").id),
        )
        with pytest.raises(SmgError) as caught:
            await it.bench.placer.hold(model, wish)
        assert caught.value.code == "worker_unavailable"
        wish = PlacementRequest(
            asyncio.get_running_loop().time() + 0.3,
            token_ids([1]),
            target=str(it.worker("p").id),
            encodable=PICTURES[:1],
        )
        hold = await it.bench.placer.hold(model, wish)
        assert hold.encodes is not None
        hold.release(0)
        assert it.idle()


async def test_one_that_does_not_take_so_large_a_picture_is_left_out(tmp_path: Path) -> None:
    small = MediaCard(ways=frozenset({"tensors"}), tokens_max=59)
    engines = {
        "x": engine(Contract.VLLM, "regular", small),
        "y": engine(Contract.VLLM, "regular"),
        "a": engine(Contract.VLLM, "regular"),
    }
    queries = ("grpc://x:1?role=encode", "grpc://y:1?role=encode", "grpc://a:1")
    async with scene(tmp_path, engines, queries=queries) as it:
        assert set(await it.hosts()) == {"y"}
        assert "x" in "".join([await it.hosts(pictures=5)])


async def test_encoders_that_the_pictures_were_not_made_for_are_left_out(tmp_path: Path) -> None:
    async with scene(tmp_path, tokenspeed()) as it:
        assert set(await it.hosts(encodes="xz")) == {"x", "z"}
        assert await it.hosts(encodes="") == "", "who works the prompt off encodes them itself"
        assert it.idle()


@pytest.mark.parametrize("encoder", ["x", ""])
async def test_a_prompt_whose_pictures_others_encode_measures_nobody(
    tmp_path: Path, encoder: str
) -> None:
    pictures = PromptPictures(bytes(8), 0, tuple((at, 100) for at in range(1, 7)))
    async with scene(tmp_path, tokenspeed()) as it:
        hold = await it.place(encodes=encoder, looked=pictures)
        assert isinstance(hold, PairReservation)
        assert (hold.encodes is not None) is bool(encoder)
        hold.prefill.prompt_tokens = 5000
        hold.prefilled(Prefilled(prompt_tokens=5000, cached_tokens=0))
        measured = it.worker("p").encoded is not None
        assert measured is not bool(encoder)
        hold.release(0)
