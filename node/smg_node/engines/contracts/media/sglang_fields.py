"""Media fields of SGLang's contract: the tensors of images, always in the message. Pure.

One item holds all pictures of a request, and the engine makes their identity itself, from all of their values.
"""

from typing import Final

from smg_grpc_proto.generated import sglang_scheduler_pb2 as pb

from smg_node.engines.contracts.media.fields import Pieces, TensorFields, wrapped
from smg_node.engines.contracts.wire import NOWHERE
from smg_node.media.engine_media import EngineMedia, TensorBatch

_REQUEST: Final = pb.GenerateRequest.DESCRIPTOR.fields_by_name
_INPUTS: Final = pb.MultimodalInputs.DESCRIPTOR.fields_by_name
_TENSOR: Final = TensorFields(data=1, shape=2, dtype=3)
_PIXELS: Final = _INPUTS["pixel_values"].number
_SIDES: Final = _INPUTS["model_specific_tensors"].number


def sglang_fields(media: EngineMedia) -> Pieces:
    """Return the further fields of a GenerateRequest that has pictures."""
    assert isinstance(media, TensorBatch), "SGLang engines take tensors only"
    assert media.modality == "image", "and of images only"
    about = pb.MultimodalInputs(im_token_id=media.placeholder, modalities=[media.modality])
    for one in media.ranges:
        about.mm_placeholders.add(offset=one.offset, length=one.length)
    inside = [
        about.SerializeToString(),
        *wrapped(_PIXELS, _TENSOR.pieces(media.pixels)),
        *_TENSOR.by_name(_SIDES, media.sides, NOWHERE),
    ]
    return wrapped(_REQUEST["mm_inputs"].number, inside)
