"""Media fields of TokenSpeed's contract: one item for each picture, with tensors of its own. Pure.

A picture's identity is its `content_hash`, of which the engine reads eight bytes. Main tensors may be in shared memory
if they are floating-point: the engine hands those on by name, and refuses others.
"""

from collections.abc import Mapping
from typing import Final

from smg_grpc_proto.generated import common_pb2
from smg_grpc_proto.generated import tokenspeed_scheduler_pb2 as pb

from smg_node.engines.contracts.media.cards import FLOATS
from smg_node.engines.contracts.media.fields import Pieces, TensorFields, shareable, wrapped
from smg_node.engines.contracts.media.item_cuts import items_of
from smg_node.engines.contracts.wire import NOWHERE, Places
from smg_node.media.engine_media import EngineMedia, Tensor, TensorBatch

_REQUEST: Final = pb.GenerateRequest.DESCRIPTOR.fields_by_name
_ITEMS: Final = pb.MultimodalInputs.DESCRIPTOR.fields_by_name["items"].number
_ITEM: Final = pb.MultimodalItem.DESCRIPTOR.fields_by_name
_TENSOR: Final = TensorFields(data=3, shape=1, dtype=2, shared=4)
_PIXELS: Final = _ITEM["encoder_input"].number
_SIDES: Final = _ITEM["model_specific_tensors"].number
_MODALITIES: Final = {"image": common_pb2.IMAGE, "video": common_pb2.VIDEO}


def tokenspeed_fields(media: EngineMedia, places: Places) -> Pieces:
    """Return the further fields of a GenerateRequest that has pictures."""
    assert isinstance(media, TensorBatch), "TokenSpeed engines take tensors only"
    items: Pieces = []
    for at, (one, item) in enumerate(zip(media.ranges, items_of(media), strict=True)):
        about = pb.MultimodalItem(
            modality=_MODALITIES[media.modality],
            content_hash=bytes.fromhex(one.digest),
            placeholder_token_id=media.placeholder,
        )
        about.placeholders.add(offset=one.offset, length=one.length)
        inside = [
            about.SerializeToString(),
            *wrapped(_PIXELS, _TENSOR.pieces(item.pixels, places.get(str(at), ""))),
            *_TENSOR.by_name(_SIDES, item.sides, NOWHERE),
        ]
        items += wrapped(_ITEMS, inside)
    return wrapped(_REQUEST["mm_inputs"].number, items)


def tokenspeed_shareable(media: EngineMedia | None) -> Mapping[str, Tensor]:
    """Return the main tensors that the engine could open in shared memory, by the number of their item."""
    if not isinstance(media, TensorBatch) or media.pixels.dtype not in FLOATS:
        return {}
    return shareable({str(at): one.pixels for at, one in enumerate(items_of(media))})
