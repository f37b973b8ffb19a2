"""Video registry: from the files of a checkpoint to the video processor that its clips need; pure.

By the model_type of config.json, as `families.registry` does it for pictures, and nothing is guessed: clips of other
models go to the engine by reference.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from smg_node.media.families.checkpoint.processor_files import ProcessorError
from smg_node.media.family import TokenLookup
from smg_node.media.video.clip_family import ClipFamily
from smg_node.media.video.clip_files import ClipFiles
from smg_node.media.video.qwen_clips import SteppedClips, TimedClips

CLIP_FAMILIES: Final[Mapping[str, Callable[[ClipFiles], ClipFamily]]] = MappingProxyType(
    {
        "qwen2_vl": SteppedClips,
        "qwen2_5_vl": SteppedClips,
        "qwen3_vl": TimedClips,
        "qwen3_vl_moe": TimedClips,
        "qwen3_5": TimedClips,
        "qwen3_5_moe": TimedClips,
    }
)
"""Video processor by model_type."""


class UnknownClips(msgspec.Struct, frozen=True):
    """A model whose video processor is not known here, and why."""

    reason: str


def clip_family_of(
    files: Mapping[str, bytes], *, overrides: Mapping[str, object], tokens: TokenLookup
) -> ClipFamily | UnknownClips:
    """Return the video processor of a checkpoint.

    `files` are those of a tokenizer bundle, by name; `overrides` may have a `video_processor` with the keys of
    video_preprocessor_config.json.
    """
    try:
        read = ClipFiles(files, overrides=overrides, tokens=tokens)
        maker = CLIP_FAMILIES.get(read.model_type)
        if maker is not None:
            return maker(read)
    except ProcessorError as error:
        return UnknownClips(str(error))
    return UnknownClips(f"clips of model_type {read.model_type!r} are not known here")
