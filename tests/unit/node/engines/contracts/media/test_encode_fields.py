"""A picture that is encoded elsewhere: what its encoder is sent, and what whoever works the prompt off is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from smg_grpc_proto.generated import tokenspeed_encoder_pb2 as encoder_pb
from smg_grpc_proto.generated import tokenspeed_scheduler_pb2 as pb

from smg_node.core.errors import SmgError
from smg_node.engines.contracts.media.checks import MediaCheckError, check_media
from smg_node.engines.contracts.media.item_cuts import items_of, single
from smg_node.engines.contracts.tokenspeed import TokenspeedWire
from smg_node.engines.contracts.wire import EncodeWire
from smg_node.engines.disaggregation import Room
from smg_node.engines.engine import EngineRequest, MediaCard
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.media.engine_media import TensorBatch
from support.engine_media.media_requests import GRIDS, PLACEHOLDER, qwen_batch, request_of

WIRE = TokenspeedWire()
ROOMS = (Room("enc-a", 18995, 1 << 62), Room("enc-b", 18996, 7))
CARD = MediaCard(ways=frozenset({"tensors"}), dtype="bfloat16")


def apart(**changes: object) -> EngineRequest:
    """A request whose pictures are encoded elsewhere."""
    ids, media = qwen_batch()
    request = replace(request_of(ids, media), rooms=ROOMS, pixels=False)
    return replace(request, **changes)


def one_of(at: int, grids: list[tuple[int, int, int]]) -> tuple[EngineRequest, TensorBatch]:
    """The request to the encoder of picture `at`, and all pictures."""
    ids, media = qwen_batch(grids)
    place = media.ranges[at]
    own = ids[place.offset : place.offset + place.length]
    request = request_of(own, single(media, at, items_of(media)[at]), name=f"eng-1-e{at}")
    return replace(request, room=Room("", 0, 99)), media


def test_only_tokenspeed_has_a_service_for_it() -> None:
    able = [name.value for name, wire in WIRES.items() if isinstance(wire(), EncodeWire)]
    assert able == ["tokenspeed"]


def test_the_prefill_engine_is_told_rooms_and_gets_no_values() -> None:
    request = apart()
    assert isinstance(request.media, TensorBatch)
    check_media(request, CARD)
    data = WIRE.generate_media(request, bias_width=None).joined()
    found = pb.GenerateRequest.FromString(data)
    told = [
        (one.item_index, one.bootstrap_host, one.bootstrap_port, one.bootstrap_room)
        for one in found.encode_bootstrap_info.items
    ]
    assert told == [(0, "enc-a", 18995, 1 << 62), (1, "enc-b", 18996, 7)]
    for item, place in zip(found.mm_inputs.items, request.media.ranges, strict=True):
        assert not item.HasField("encoder_input")
        assert "image_grid_thw" in item.model_specific_tensors
        assert item.content_hash.hex() == place.digest
        assert item.placeholder_token_id == PLACEHOLDER
        assert [(one.offset, one.length) for one in item.placeholders] == [
            (place.offset, place.length)
        ]
    assert list(found.tokenized.input_ids) == list(request.ids)
    assert not WIRE.shareable(request)


def test_the_decode_engine_gets_neither_values_nor_rooms() -> None:
    data = WIRE.generate_media(apart(rooms=()), bias_width=None).joined()
    found = pb.GenerateRequest.FromString(data)
    assert not found.HasField("encode_bootstrap_info")
    assert not any(item.HasField("encoder_input") for item in found.mm_inputs.items)


@given(
    st.lists(
        st.tuples(st.just(1), st.sampled_from([2, 4, 6]), st.sampled_from([2, 4, 8])),
        min_size=1,
        max_size=5,
    ),
    st.data(),
)
def test_an_encoder_is_sent_its_picture_alone_with_its_room(
    grids: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(grids) - 1))
    request, media = one_of(at, grids)
    check_media(request, MediaCard(ways=frozenset({"tensors"}), dtype="float32"))
    found = encoder_pb.EncodeRequest.FromString(WIRE.encode(request).joined())
    assert found.request_id == f"eng-1-e{at}"
    assert [one.bootstrap_room for one in found.items] == [99]
    (item,) = found.mm_inputs.items
    assert item.encoder_input.inline == bytes(media.pixels.pieces[at])
    assert list(item.encoder_input.shape) == [grids[at][1] * grids[at][2], media.pixels.shape[1]]
    assert [one.length for one in item.placeholders] == [media.ranges[at].length]
    assert item.content_hash.hex() == media.ranges[at].digest


@pytest.mark.parametrize(
    "changes",
    [
        {"rooms": ROOMS[:1]},
        {"rooms": (*ROOMS, Room("c", 1, 3))},
        {"rooms": (ROOMS[0], ROOMS[0])},
        {"rooms": (ROOMS[0], Room("c", 1, 0))},
        {"pixels": True},
    ],
    ids=["one is missing", "one too many", "one twice", "no number", "values go along"],
)
def test_rooms_that_do_not_fit_never_leave(changes: dict[str, object]) -> None:
    with pytest.raises(MediaCheckError):
        check_media(apart(**changes), CARD)


def test_an_answer_says_whether_the_picture_was_taken() -> None:
    assert WIRE.accepted(encoder_pb.EncodeResponse(accepted=True).SerializeToString())
    assert not WIRE.accepted(b"")
    with pytest.raises(SmgError):
        WIRE.accepted(b"\xff")


def test_a_picture_alone_has_the_values_it_had_among_others() -> None:
    _, media = qwen_batch(GRIDS)
    for at, item in enumerate(items_of(media)):
        alone = single(media, at, item)
        (again,) = items_of(alone)
        assert b"".join(again.pixels.pieces) == bytes(media.pixels.pieces[at])
        assert alone.ranges[0].offset == 0
