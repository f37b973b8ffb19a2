"""What is put together around the bytes of tensors is what the published messages read out of it, field by field."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from smg_grpc_proto.generated import common_pb2

from smg_node.engines.contracts.media.fields import SHARED_MIN_BYTES
from smg_node.engines.contracts.wire import MediaWire, Wire
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.media.engine_media import (
    EncodedBatch,
    MediaReference,
    ReferenceBatch,
    Tensor,
    TensorBatch,
)
from support.engine_media.media_requests import GRIDS, llava_batch, qwen_batch, request_of
from support.engines.engine_bench import PB


def media_wire(wire: Wire) -> MediaWire:
    assert isinstance(wire, MediaWire)
    return wire


IMAGE, VIDEO = common_pb2.IMAGE, common_pb2.VIDEO


def sent(contract: Contract, request: EngineRequest, **places: str) -> MessagePieces:
    return media_wire(WIRES[contract]()).generate_media(request, bias_width=None, places=places)


def read(contract: Contract, request: EngineRequest, **places: str) -> Any:
    return PB[contract].GenerateRequest.FromString(sent(contract, request, **places).joined())


def content(tensor: Tensor) -> bytes:
    return b"".join(tensor.pieces)


def same_tensor(found: Any, tensor: Tensor, *, payload: str) -> None:
    assert list(found.shape) == list(tensor.shape)
    assert found.dtype == tensor.dtype
    assert getattr(found, payload) == content(tensor)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_vllm_gets_tensors_ranges_hashes_and_how_they_divide(dtype: Any) -> None:
    ids, media = qwen_batch(dtype=dtype)
    found = read(Contract.VLLM, request_of(ids, media))
    assert list(found.tokenized.input_ids) == ids
    assert found.request_id == "eng-1"
    assert found.sampling_params.max_tokens == 7
    inputs = found.mm_inputs
    same_tensor(inputs.pixel_values, media.pixels, payload="inline")
    assert set(inputs.model_specific_tensors) == {"image_grid_thw", "patches_per_image"}
    for name, tensor in media.sides.items():
        same_tensor(inputs.model_specific_tensors[name], tensor, payload="inline")
    assert inputs.im_token_id == media.placeholder
    ranges = [(one.offset, one.length) for one in inputs.mm_placeholders]
    assert ranges == [(one.offset, one.length) for one in media.ranges]
    assert list(inputs.mm_hashes) == [one.digest for one in media.ranges]
    assert list(inputs.batched_keys) == ["image_grid_thw", "patches_per_image"]
    assert dict(inputs.flat_keys) == {"pixel_values": "patches_per_image"}
    assert list(inputs.keep_on_cpu_keys) == ["image_grid_thw"]
    assert inputs.modality == IMAGE
    assert not inputs.HasField("encoder_input_key")
    assert not found.HasField("media_refs")


def test_vllm_is_told_of_another_key_and_of_a_video() -> None:
    ids, media = llava_batch()
    assert (
        read(Contract.VLLM, request_of(ids, media)).mm_inputs.encoder_input_key == media.pixel_key
    )
    ids, media = qwen_batch(modality="video")
    assert read(Contract.VLLM, request_of(ids, media)).mm_inputs.modality == VIDEO


def test_vllm_finds_a_tensor_in_shared_memory_by_its_name() -> None:
    ids, media = qwen_batch()
    inputs = read(Contract.VLLM, request_of(ids, media), pixel_values="smg-x-1").mm_inputs
    assert inputs.pixel_values.WhichOneof("payload") == "shm"
    handle = inputs.pixel_values.shm
    assert (handle.name, handle.offset, handle.nbytes) == ("smg-x-1", 0, media.pixels.size)
    assert list(inputs.pixel_values.shape) == list(media.pixels.shape)
    grid = inputs.model_specific_tensors["image_grid_thw"]
    same_tensor(grid, media.sides["image_grid_thw"], payload="inline")


def test_a_vllm_that_fetches_the_prompt_from_another_one_gets_no_pixels() -> None:
    ids, media = qwen_batch()
    for transfer, pixels in (
        ('{"do_remote_decode":false,"do_remote_prefill":true,"remote_block_ids":[1]}', False),
        ('{"do_remote_decode":true,"do_remote_prefill":false}', True),
        ('{"do_remote_prefill":"true"}', True),
        ("no JSON", True),
    ):
        request = replace(request_of(ids, media), transfer=transfer)
        found = read(Contract.VLLM, request)
        assert found.kv_transfer_params_json == transfer
        assert found.mm_inputs.HasField("pixel_values") == pixels
        assert set(found.mm_inputs.model_specific_tensors) == set(media.sides)
        assert len(found.mm_inputs.mm_hashes) == len(found.mm_inputs.mm_placeholders) == 2
        large = replace(request, media=large_batch("float32"))
        assert bool(media_wire(WIRES[Contract.VLLM]()).shareable(large)) == pixels


def test_vllm_gets_references_in_order_and_nothing_else() -> None:
    urls = ("https://a.example/1.png", "data:image/png;base64,AAAA")
    media = ReferenceBatch(
        (MediaReference("image", urls[0], "a"), MediaReference("video", urls[1], "b"))
    )
    found = read(Contract.VLLM, request_of([1, 2, 3], media))
    assert [(one.modality, one.url) for one in found.media_refs.items] == [
        (IMAGE, urls[0]),
        (VIDEO, urls[1]),
    ]
    assert not found.HasField("mm_inputs")


def test_sglang_gets_one_item_of_all_pictures() -> None:
    ids, media = qwen_batch()
    found = read(Contract.SGLANG, request_of(ids, media))
    assert list(found.tokenized.input_ids) == ids
    inputs = found.mm_inputs
    same_tensor(inputs.pixel_values, media.pixels, payload="data")
    for name, tensor in media.sides.items():
        same_tensor(inputs.model_specific_tensors[name], tensor, payload="data")
    assert inputs.im_token_id == media.placeholder
    assert [(one.offset, one.length) for one in inputs.mm_placeholders] == [
        (one.offset, one.length) for one in media.ranges
    ]
    assert list(inputs.modalities) == ["image"]


def test_tokenspeed_gets_an_item_for_each_picture() -> None:
    ids, media = qwen_batch()
    items = read(Contract.TOKENSPEED, request_of(ids, media)).mm_inputs.items
    assert len(items) == len(GRIDS)
    for item, one, piece, grid in zip(items, media.ranges, media.pixels.pieces, GRIDS, strict=True):
        assert item.modality == IMAGE
        assert item.content_hash.hex() == one.digest
        assert item.encoder_input.inline == piece
        assert list(item.encoder_input.shape) == [math.prod(grid), media.pixels.shape[1]]
        assert item.encoder_input.dtype == "float32"
        assert [(at.offset, at.length) for at in item.placeholders] == [(one.offset, one.length)]
        assert item.placeholder_token_id == media.placeholder
        sides = item.model_specific_tensors
        assert list(sides["image_grid_thw"].shape) == [1, 3]
        assert sides["image_grid_thw"].inline == b"".join(n.to_bytes(8, "little") for n in grid)
        assert list(sides["patches_per_image"].shape) == [1]


def test_tokenspeed_finds_the_second_picture_in_shared_memory() -> None:
    ids, media = qwen_batch()
    request = request_of(ids, media)
    data = sent(Contract.TOKENSPEED, request, **{"1": "smg-x-2"}).joined()
    items = PB[Contract.TOKENSPEED].GenerateRequest.FromString(data).mm_inputs.items
    assert items[0].encoder_input.WhichOneof("payload") == "inline"
    handle = items[1].encoder_input.shm
    assert (handle.name, handle.nbytes) == ("smg-x-2", len(media.pixels.pieces[1]))


def test_trtllm_gets_the_files_and_the_prompt_as_it_is() -> None:
    files = (b"\xff\xd8 one", b"\x89PNG two")
    found = read(Contract.TRTLLM, request_of([1, 151, 2, 151], EncodedBatch(files)))
    assert list(found.tokenized.input_token_ids) == [1, 151, 2, 151]
    assert list(found.multimodal_input.image_data) == list(files)


def test_the_bytes_of_a_tensor_are_the_buffers_that_they_came_in() -> None:
    """No copy: what a message is made of shares the memory of the batch."""
    ids, media = qwen_batch()
    buffers = tuple(bytearray(piece) for piece in media.pixels.pieces)
    media = replace(media, pixels=replace(media.pixels, pieces=buffers))
    for contract in (Contract.VLLM, Contract.SGLANG, Contract.TOKENSPEED):
        message = sent(contract, request_of(ids, media))
        assert {id(buffer) for buffer in buffers} <= {id(view.obj) for view in message}
        assert len(message) == len(message.joined())


def test_a_request_without_pictures_comes_from_the_template_as_ever() -> None:
    ids, media = qwen_batch()
    for contract in (Contract.VLLM, Contract.SGLANG, Contract.TOKENSPEED):
        wire = WIRES[contract]()
        plain = request_of(ids, None)
        text = wire.generate(plain, bias_width=None)
        with_media = media_wire(wire).generate_media(request_of(ids, media), bias_width=None)
        assert with_media.joined().startswith(text)
        assert wire.generate(plain, bias_width=None) == text


def test_mlx_takes_no_pictures() -> None:
    assert not isinstance(WIRES[Contract.MLX](), MediaWire)


@given(
    grids=st.lists(
        st.tuples(st.just(1), st.sampled_from([2, 4]), st.sampled_from([2, 6])),
        min_size=1,
        max_size=5,
    )
)
def test_any_number_of_pictures_reads_back(grids: list[tuple[int, int, int]]) -> None:
    ids, media = qwen_batch(grids, dtype="uint8", columns=3)
    inputs = read(Contract.VLLM, request_of(ids, media)).mm_inputs
    assert inputs.pixel_values.inline == content(media.pixels)
    items = read(Contract.TOKENSPEED, request_of(ids, media)).mm_inputs.items
    assert [item.encoder_input.inline for item in items] == list(media.pixels.pieces)


def large_batch(dtype: Any) -> TensorBatch:
    _, media = qwen_batch([(1, 2, 2), (1, 64, 64)], dtype=dtype, columns=48)
    return media


def test_large_tensors_can_be_shared_where_the_contract_has_it() -> None:
    media = large_batch("float32")
    request = request_of([1], media)
    wires = {
        contract: media_wire(WIRES[contract]()) for contract in WIRES if contract.value != "mlx"
    }
    assert media.pixels.size >= SHARED_MIN_BYTES
    assert list(wires[Contract.VLLM].shareable(request)) == ["pixel_values"]
    assert list(wires[Contract.TOKENSPEED].shareable(request)) == ["1"]
    assert not wires[Contract.SGLANG].shareable(request)
    assert not wires[Contract.TRTLLM].shareable(request_of([1], EncodedBatch((b"x",))))


def test_tokenspeed_shares_no_bytes_because_it_refuses_them_there() -> None:
    request = request_of([1], large_batch("uint8"))
    assert not media_wire(WIRES[Contract.TOKENSPEED]()).shareable(request)
    assert media_wire(WIRES[Contract.VLLM]()).shareable(request)
