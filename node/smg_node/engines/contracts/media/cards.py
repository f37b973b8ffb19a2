"""Media cards: what the metadata of each contract says of the pictures that its engine takes. Pure.

An absent field is false or unknown: older servicers have fewer of them. Of numbers and words that make no sense nothing
is believed, because an engine's own check of them is what it is told here.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from smg_grpc_proto.generated import common_pb2

from smg_node.engines.engine import MediaCard
from smg_node.media.engine_media import Dtype

Metadata: TypeAlias = Any
"""A protobuf message of GetModelInfo or GetServerInfo."""

FLOATS: Final = frozenset({"float32", "float16", "bfloat16"})
MODALITIES: Final = frozenset({"image", "video", "audio"})
_TEXT_MAX: Final = 256


def vllm_media(process: Metadata) -> MediaCard:
    """Return what a vLLM says of its pictures that was not started for text only."""
    ways = {"tensors", "references"} if process.mm_processor else {"tensors"}
    return MediaCard(
        ways=frozenset(ways),
        device_normalizes=process.mm_device_do_normalize,
        dtype=float_dtype(process.multimodal_encoder_dtype, process.model_dtype),
        items_max=item_limits(process.mm_item_limits),
        tokens_max=process.mm_encoder_budget if process.mm_encoder_budget > 0 else None,
        shared_memory=process.shm_namespace_id[:_TEXT_MAX],
        video_tensors=True,
        schemes=frozenset(_words(process.mm_media_ref_schemes))
        if process.mm_processor
        else frozenset(),
    )


def sglang_media(arguments: Mapping[str, object]) -> MediaCard:
    """Return what an SGLang with vision says: tensors of images, in the message. It casts them itself."""
    return MediaCard(
        ways=frozenset({"tensors"}),
        dtype=float_dtype(str(arguments.get("dtype", ""))),
        items_max={"video": 0},
    )


def tokenspeed_media(about: Metadata, scheduler: Mapping[str, object]) -> MediaCard | None:
    """Return what TokenSpeed says; `scheduler` is its scheduler_info. None where it hears and sees nothing."""
    modalities = frozenset(about.supported_modalities)
    sees = common_pb2.IMAGE in modalities if modalities else about.supports_vision
    if not sees:
        return None
    video = not modalities or common_pb2.VIDEO in modalities
    return MediaCard(
        ways=frozenset({"tensors"}),
        dtype=float_dtype(about.multimodal_encoder_dtype, about.model_dtype),
        items_max={} if video else {"video": 0},
        shared_memory=str(scheduler.get("shm_namespace_id") or "")[:_TEXT_MAX],
    )


def float_dtype(*names: str) -> Dtype:
    """Return the first of these names that is a floating-point type of tensors; float32 where none is."""
    for name in names:
        short = name.removeprefix("torch.")
        if short in FLOATS:
            return cast("Dtype", short)
    return "float32"


def item_limits(text: str) -> dict[str, int]:
    """Return limits written as `image=8,video=1`; what is not of that form is left out."""
    found: dict[str, int] = {}
    for word in _words(text):
        name, _, number = word.partition("=")
        if name in MODALITIES and number.isascii() and number.isdecimal():
            found[name] = min(int(number[:10]), 1 << 31)
    return found


def _words(text: str) -> list[str]:
    return [word.strip().lower() for word in text[:_TEXT_MAX].split(",") if word.strip()]
