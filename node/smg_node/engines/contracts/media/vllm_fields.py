"""Media fields of vLLM's contract: tensors, in the message or in shared memory, and references. Pure.

The engine trusts them: which ids of a range are features follows from `im_token_id`, how tensors divide into items from
`batched_keys` and `flat_keys`, and the identity of a picture, for its encoder cache and its prefix cache, from
`mm_hashes`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from smg_grpc_proto.generated import common_pb2
from smg_grpc_proto.generated import vllm_engine_pb2 as pb

from smg_node.engines.contracts.media.fields import Pieces, TensorFields, shareable, wrapped
from smg_node.engines.contracts.wire import Places
from smg_node.media.engine_media import (
    EngineMedia,
    Modality,
    ReferenceBatch,
    Tensor,
    TensorBatch,
)

_REQUEST: Final = pb.GenerateRequest.DESCRIPTOR.fields_by_name
_INPUTS: Final = pb.MultimodalInputs.DESCRIPTOR.fields_by_name
_TENSOR: Final = TensorFields(data=1, shape=2, dtype=3, shared=4)
_PIXELS: Final = _INPUTS["pixel_values"].number
_SIDES: Final = _INPUTS["model_specific_tensors"].number
_USUAL_KEY: Final = "pixel_values"
_FAMILIES_MAX: Final = 64
_MODALITIES: Final = {
    "image": common_pb2.IMAGE,
    "video": common_pb2.VIDEO,
    "audio": common_pb2.AUDIO,
}


def vllm_fields(media: EngineMedia, places: Places, *, bare: bool = False) -> Pieces:
    """Return the further fields of a GenerateRequest that has pictures.

    A `bare` one has no main tensor: an engine that fetches the prompt from another one computes no features, and needs
    the rest for the positions of tokens.
    """
    if isinstance(media, TensorBatch):
        inside: Pieces = [_about(media)]
        if not bare:
            pixels = _TENSOR.pieces(media.pixels, places.get(media.pixel_key, ""))
            inside += wrapped(_PIXELS, pixels)
        inside += _TENSOR.by_name(_SIDES, media.sides, places)
        return wrapped(_REQUEST["mm_inputs"].number, inside)
    assert isinstance(media, ReferenceBatch), "vLLM engines take no files"
    references = pb.MediaRefs()
    for item in media.items:
        references.items.add(modality=_MODALITIES[item.modality], url=item.url)
    return wrapped(_REQUEST["media_refs"].number, [references.SerializeToString()])


def vllm_shareable(media: EngineMedia | None) -> Mapping[str, Tensor]:
    """Return the tensors that the engine could open in shared memory, by name."""
    if not isinstance(media, TensorBatch):
        return {}
    return shareable({media.pixel_key: media.pixels, **media.sides})


def _about(media: TensorBatch) -> bytes:
    """Return all that is no tensor."""
    about = pb.MultimodalInputs(mm_hashes=[one.digest for one in media.ranges])
    for one in media.ranges:
        about.mm_placeholders.add(offset=one.offset, length=one.length)
    flat = tuple(media.flat_keys.items())
    always = _always(
        media.placeholder,
        media.modality,
        media.pixel_key,
        media.batched_keys,
        flat,
        media.cpu_keys,
    )
    data: bytes = about.SerializeToString()
    return always + data


@lru_cache(_FAMILIES_MAX)
def _always(
    placeholder: int,
    modality: Modality,
    pixel_key: str,
    batched: tuple[str, ...],
    flat: tuple[tuple[str, str], ...],
    on_cpu: tuple[str, ...],
) -> bytes:
    """Return what is the same for all pictures of a model."""
    about = pb.MultimodalInputs(
        im_token_id=placeholder,
        batched_keys=batched,
        flat_keys=dict(flat),
        keep_on_cpu_keys=on_cpu,
        modality=_MODALITIES[modality],
    )
    if pixel_key != _USUAL_KEY:
        about.encoder_input_key = pixel_key
    data: bytes = about.SerializeToString()
    return data
