"""Media fields of TensorRT-LLM's contract: the files of the pictures, as clients sent them. Pure.

The engine decodes, resizes and expands by itself, so the prompt has one placeholder for each picture.
"""

from typing import Final

from smg_grpc_proto.generated import trtllm_service_pb2 as pb

from smg_node.engines.contracts.media.fields import Pieces, wrapped
from smg_node.media.engine_media import EncodedBatch, EngineMedia

_INPUT: Final = pb.GenerateRequest.DESCRIPTOR.fields_by_name["multimodal_input"].number
_FILE: Final = pb.MultimodalInput.DESCRIPTOR.fields_by_name["image_data"].number


def trtllm_fields(media: EngineMedia) -> Pieces:
    """Return the further fields of a GenerateRequest that has pictures."""
    assert isinstance(media, EncodedBatch), "TensorRT-LLM engines take files only"
    files: Pieces = []
    for item in media.items:
        files += wrapped(_FILE, [item])
    return wrapped(_INPUT, files)
