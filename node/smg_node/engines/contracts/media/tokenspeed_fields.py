"""Media fields of TokenSpeed's contract: one item for each picture, with tensors of its own. Pure.

A picture's identity is its `content_hash`, of which the engine reads eight bytes. Main tensors may be in shared memory
if they are floating-point: the engine hands those on by name, and refuses others.

A picture that another engine encodes has no main tensor: whoever works the prompt off waits for it in its room
(`encode_bootstrap_info`), and the encoder is sent the tensor with the number of that room, in a call for each picture.
"""

from collections.abc import Mapping
from typing import Final

from smg_grpc_proto.generated import common_pb2
from smg_grpc_proto.generated import tokenspeed_encoder_pb2 as encoder_pb
from smg_grpc_proto.generated import tokenspeed_scheduler_pb2 as pb

from smg_node.engines.contracts.media.cards import FLOATS
from smg_node.engines.contracts.media.fields import (
    Pieces,
    TensorFields,
    shareable,
    with_fields,
    wrapped,
)
from smg_node.engines.contracts.media.item_cuts import Item, items_of
from smg_node.engines.contracts.pairing_rules import meet
from smg_node.engines.contracts.wire import NOWHERE, Places, parsed
from smg_node.engines.engine import EngineRequest
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.media.engine_media import EngineMedia, MediaRange, Tensor, TensorBatch

_REQUEST: Final = pb.GenerateRequest.DESCRIPTOR.fields_by_name
_ENCODE: Final = encoder_pb.EncodeRequest.DESCRIPTOR.fields_by_name
_ITEMS: Final = pb.MultimodalInputs.DESCRIPTOR.fields_by_name["items"].number
_ITEM: Final = pb.MultimodalItem.DESCRIPTOR.fields_by_name
_TENSOR: Final = TensorFields(data=3, shape=1, dtype=2, shared=4)
_PIXELS: Final = _ITEM["encoder_input"].number
_SIDES: Final = _ITEM["model_specific_tensors"].number
_MODALITIES: Final = {"image": common_pb2.IMAGE, "video": common_pb2.VIDEO}


def tokenspeed_fields(request: EngineRequest, places: Places) -> Pieces:
    """Return the further fields of a GenerateRequest that has pictures."""
    batch = _tensors(request.media)
    items: Pieces = []
    for at, (one, item) in enumerate(zip(batch.ranges, items_of(batch), strict=True)):
        place = places.get(str(at), "")
        items += _item(batch, one, item, place, pixels=request.pixels)
    fields = wrapped(_REQUEST["mm_inputs"].number, items)
    if request.rooms:
        told = pb.GenerateRequest()
        for at, room in enumerate(request.rooms):
            meet(told.encode_bootstrap_info.items.add(item_index=at), room)
        fields.append(told.SerializeToString())
    return fields


def encode_request(request: EngineRequest, places: Places) -> MessagePieces:
    """Return the EncodeRequest of the one picture of `request`, for the room whose number it has."""
    batch = _tensors(request.media)
    assert request.room is not None, "whoever encodes is told where it is waited for"
    (one,), (item,) = batch.ranges, items_of(batch)
    told = encoder_pb.EncodeRequest(request_id=request.request_id)
    told.items.add(bootstrap_room=request.room.number)
    items = _item(batch, one, item, places.get("0", ""), pixels=True)
    return with_fields(told.SerializeToString(), wrapped(_ENCODE["mm_inputs"].number, items))


def encode_accepted(data: bytes) -> bool:
    """Return whether an EncodeResponse says that the picture was taken."""
    return bool(parsed(encoder_pb.EncodeResponse, data).accepted)


def tokenspeed_shareable(media: EngineMedia | None) -> Mapping[str, Tensor]:
    """Return the main tensors that the engine could open in shared memory, by the number of their item."""
    if not isinstance(media, TensorBatch) or media.pixels.dtype not in FLOATS:
        return {}
    return shareable({str(at): one.pixels for at, one in enumerate(items_of(media))})


def _tensors(media: EngineMedia | None) -> TensorBatch:
    assert isinstance(media, TensorBatch), "TokenSpeed engines take tensors only"
    return media


def _item(batch: TensorBatch, one: MediaRange, item: Item, place: str, *, pixels: bool) -> Pieces:
    """Return one item of MultimodalInputs."""
    about = pb.MultimodalItem(
        modality=_MODALITIES[batch.modality],
        content_hash=bytes.fromhex(one.digest),
        placeholder_token_id=batch.placeholder,
    )
    about.placeholders.add(offset=one.offset, length=one.length)
    inside: Pieces = [about.SerializeToString()]
    if pixels:
        inside += wrapped(_PIXELS, _TENSOR.pieces(item.pixels, place))
    inside += _TENSOR.by_name(_SIDES, item.sides, NOWHERE)
    return wrapped(_ITEMS, inside)
