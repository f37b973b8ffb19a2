"""Simulated encode workers: what they accept, what they hand over, and what becomes of a room to which nothing comes."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace
from smg_grpc_proto.generated import tokenspeed_encoder_pb2 as encoder_pb
from smg_grpc_proto.generated import tokenspeed_scheduler_pb2 as pb

from smg_chaos.engine.pairs.handover import Exchange
from smg_chaos.engine.protocol.rpc_call import Code
from smg_chaos.engine.servers.in_memory import MemoryCall
from smg_chaos.engine.settings import EngineSettings
from smg_node.engines.contracts.media.item_cuts import items_of, single
from smg_node.engines.contracts.tokenspeed import TokenspeedWire
from smg_node.engines.disaggregation import Room
from support.engine_media.media_requests import qwen_batch, request_of
from support.engines.simulated_engine import Simulation

WIRE = TokenspeedWire()
SCHEDULER = "/tokenspeed.grpc.scheduler.TokenSpeedScheduler"
ENCODE = "/tokenspeed.grpc.encoder.TokenSpeedEncoder/Encode"
GRIDS = [(1, 4, 4), (1, 8, 12)]
ENCODER, PREFILL, DECODE = 18995, 19311, 0
SAID: dict[str, Any] = {"contract": "tokenspeed", "vision": "qwen3_vl", "step_s": 0.0}


@dataclass
class Trio:
    """An encoder, a prefill and a decode engine in memory, on one clock."""

    wait_s: float = 5.0
    rate: float = 0.0
    faults: Sequence[str] = ()
    sides: dict[str, Simulation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        exchange = Exchange()
        for role, port in (("encode", ENCODER), ("prefill", PREFILL), ("decode", DECODE)):
            side = Simulation(
                script="pictures",
                faults=self.faults if role == "encode" else (),
                role=role,
                bootstrap_port=port,
                pair_wait_s=self.wait_s,
                prefill_tokens_per_s=self.rate if role == "encode" else 0.0,
                **SAID,
            )
            side.engine.pairs.courier = exchange
            exchange.open("127.0.0.1", port, side.engine.pairs.asked)
            self.sides[role] = side

    def pictures(self) -> tuple[list[int], Any]:
        ids, media = qwen_batch(GRIDS, columns=3 * 2 * 16 * 16)
        placeholder = self.sides["encode"].engine.bundle.placeholder
        assert placeholder is not None
        own = [placeholder if one == media.placeholder else one for one in ids]
        return own, replace(media, placeholder=placeholder)

    def encode(self, at: int, room: int) -> MemoryCall:
        ids, media = self.pictures()
        place = media.ranges[at]
        alone = single(media, at, items_of(media)[at])
        own = ids[place.offset : place.offset + place.length]
        request = replace(request_of(own, alone, name=f"e{room}"), room=Room("", 0, room))
        return self.sides["encode"].face.start(ENCODE, WIRE.encode(request).joined())

    def generate(self, role: str, rooms: Sequence[int], *, kv: int = 77) -> MemoryCall:
        ids, media = self.pictures()
        told = tuple([Room("127.0.0.1", ENCODER, room) for room in rooms])
        request = replace(
            request_of(ids, media, name=f"{role}-{kv}", max_tokens=60),
            rooms=told if role == "prefill" else (),
            pixels=False,
            room=Room("127.0.0.1", PREFILL, kv),
        )
        body = WIRE.generate_media(request, bias_width=None).joined()
        return self.sides[role].face.start(f"{SCHEDULER}/Generate", body)

    def pass_time(self, seconds: float, *calls: MemoryCall) -> None:
        until = seconds
        while until > 0 and not (calls and all(call.end is not None for call in calls)):
            for side in self.sides.values():
                side.face.advance(0.01)
            until -= 0.01


def said(trio: Trio, call: MemoryCall) -> str:
    ids: list[int] = []
    for data in call.messages:
        ids += pb.GenerateResponse.FromString(data).chunk.token_ids
    return trio.sides["decode"].engine.bundle.decode(ids).strip()


def seen(trio: Trio) -> str:
    _, media = trio.pictures()
    named = [hashlib.sha256(bytes(one)).hexdigest()[:8] for one in media.pixels.pieces]
    return f"I see 2: {', '.join(named)}."


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("rate", [0.0, 200.0])
def test_an_answer_begins_when_all_pictures_have_come(order: str, rate: float) -> None:
    trio = Trio(rate=rate)
    if order == "first":
        for at in (0, 1):
            call = trio.encode(at, at + 1)
            (answer,) = call.messages
            assert encoder_pb.EncodeResponse.FromString(answer).accepted
    calls = trio.generate("prefill", [1, 2]), trio.generate("decode", [])
    if order == "last":
        trio.pass_time(0.05)
        assert not calls[0].messages
        for at in (1, 0):
            trio.encode(at, at + 1)
    trio.pass_time(5, *calls)
    assert [call.end is not None and call.end.code for call in calls] == [Code.OK, Code.OK]
    assert said(trio, calls[1]) == seen(trio)
    encoder, prefill = trio.sides["encode"].engine.tally, trio.sides["prefill"].engine.tally
    assert (encoder.encoded, encoder.handed_over, prefill.received) == (2, 2, 2)
    mistakes = [side.engine.tally.media_mistakes for side in trio.sides.values()]
    assert mistakes == [0, 0, 0]


def test_a_room_to_which_nothing_comes_ends_both_calls() -> None:
    trio = Trio(wait_s=0.5)
    trio.encode(0, 1)
    calls = trio.generate("prefill", [1, 2]), trio.generate("decode", [])
    trio.pass_time(3, *calls)
    assert calls[0].end is not None
    assert calls[0].end.code is Code.INTERNAL
    assert "EPD embedding receive failed or timed out" in calls[0].end.message
    assert calls[1].end is not None
    assert calls[1].end.code is not Code.OK
    assert trio.sides["prefill"].engine.tally.received == 0


def test_an_encoder_that_is_gone_ends_the_call_that_needs_it_at_once() -> None:
    trio = Trio(wait_s=60)
    trio.sides["encode"].engine.die(1)
    call = trio.generate("prefill", [1, 2])
    trio.pass_time(1, call)
    assert call.end is not None
    assert call.end.code is Code.INTERNAL


def test_a_picture_that_nobody_fetches_is_dropped() -> None:
    trio = Trio(wait_s=0.5)
    trio.encode(0, 1)
    trio.pass_time(0.2)
    assert len(trio.sides["encode"].engine.pairs.shelf) == 1
    trio.pass_time(1)
    assert len(trio.sides["encode"].engine.pairs.shelf) == 0


def changed(trio: Trio, change: Callable[[Any], None]) -> MemoryCall:
    ids, media = trio.pictures()
    place = media.ranges[0]
    alone = single(media, 0, items_of(media)[0])
    own = ids[place.offset : place.offset + place.length]
    request = replace(request_of(own, alone, name="e1"), room=Room("", 0, 1))
    message = encoder_pb.EncodeRequest.FromString(WIRE.encode(request).joined())
    change(message)
    return trio.sides["encode"].face.start(ENCODE, message.SerializeToString())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: one.ClearField("mm_inputs"), "mm_inputs is required"),
        (lambda one: one.ClearField("items"), "exactly one mm item and one room"),
        (lambda one: one.items.add(bootstrap_room=2), "exactly one mm item and one room"),
        (lambda one: one.mm_inputs.items.add(), "exactly one mm item and one room"),
        (lambda one: one.mm_inputs.items[0].ClearField("placeholders"), "no placeholders"),
        (lambda one: one.mm_inputs.items[0].ClearField("encoder_input"), "without pixels"),
        (
            lambda one: setattr(one.mm_inputs.items[0].placeholders[0], "length", 3),
            "placeholders for",
        ),
        (
            lambda one: setattr(one.mm_inputs.items[0].encoder_input, "dtype", "uint8"),
            "byte length mismatch",
        ),
    ],
)
def test_what_an_encoder_refuses(change: Callable[[Any], None], says: str) -> None:
    trio = Trio()
    call = changed(trio, change)
    assert call.end is not None
    assert call.end.code is Code.INVALID_ARGUMENT
    assert says in call.end.message
    assert trio.sides["encode"].engine.tally.encoded == 0


def test_a_room_has_one_picture() -> None:
    trio = Trio()
    trio.encode(0, 1)
    trio.pass_time(0.1)
    call = trio.encode(1, 1)
    assert call.end is not None
    assert call.end.code is Code.INTERNAL


def test_an_encoder_answers_nobody_and_a_whole_engine_waits_in_no_room() -> None:
    trio = Trio()
    encoder = trio.sides["encode"].face
    call = encoder.start(f"{SCHEDULER}/Generate", b"")
    assert call.end is not None
    assert call.end.code is Code.FAILED_PRECONDITION
    (loads,) = encoder.start(f"{SCHEDULER}/GetLoads", b"").messages
    assert not pb.GetLoadsResponse.FromString(loads).loads
    ids, media = trio.pictures()
    request = replace(
        request_of(ids, media), rooms=(Room("h", 1, 1), Room("h", 1, 2)), pixels=False
    )
    body = WIRE.generate_media(request, bias_width=None).joined()
    whole = Simulation(script="pictures", **SAID)
    refused = whole.face.start(f"{SCHEDULER}/Generate", body)
    assert refused.end is not None
    assert "waits in none" in refused.end.message
    assert whole.face.start(ENCODE, b"").end is not None


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"contract": "vllm", "vision": "qwen3_vl"}, "no words for encoding pictures"),
        ({"contract": "sglang", "vision": "qwen3_vl"}, "no words for encoding pictures"),
        ({"contract": "tokenspeed"}, "--vision"),
    ],
)
def test_engines_that_cannot_be_encoders(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        EngineSettings(role="encode", **settings)
