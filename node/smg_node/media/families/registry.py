"""Registry of families: from the files of a checkpoint to the image processor that its pictures need; pure.

The model_type of config.json says which family it is, and nothing is guessed: a model that sees and is not known here
is told apart from one that sees nothing, and its pictures go to the engine by reference.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    ProcessorError,
    ProcessorFiles,
    ProcessorValue,
)
from smg_node.media.family import Family, TokenLookup
from smg_node.media.seeing import sees

_Maker: TypeAlias = Callable[[ProcessorFiles], Family]

FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "qwen2_vl": "qwen2_vl",
        "qwen2_5_vl": "qwen2_vl",
        "qwen3_vl": "qwen3_vl",
        "qwen3_vl_moe": "qwen3_vl",
        "qwen3_5": "qwen3_vl",
        "qwen3_5_moe": "qwen3_vl",
        "llava": "llava",
        "llava_next": "llava_next",
        "llama4": "llama4",
        "mistral3": "mistral3",
        "phi4mm": "phi4",
        "phi4_multimodal": "phi4",
        "kimi_k25": "kimi",
        "glm4v": "glm4v",
        "glm4v_moe": "glm4v",
        "glm46v": "glm4v",
        "glm_ocr": "glm4v",
        "dots_ocr": "dots_ocr",
        "internvl": "internvl",
        "internvl_chat": "internvl_chat",
        "gemma3": "gemma3",
        "gemma3n": "gemma3n",
        "gemma4": "gemma4",
        "llava_onevision": "llava_onevision",
        "idefics3": "idefics3",
        "smolvlm": "idefics3",
        "cohere2_vision": "cohere2_vision",
        "deepseek_vl_v2": "deepseek",
    }
)
"""Family by model_type. Checkpoints of Pixtral call themselves `llava`; their vision_config tells them apart."""

BY_REFERENCE: Final = frozenset({"kimi_k25"})
"""Families whose tensors no engine was seen to take yet: where a worker takes references, these are the safer way."""


class UnknownFamily(msgspec.Struct, frozen=True):
    """A model that sees, with an image processor that is not known here: its pictures go by reference; and why."""

    model_type: str
    reason: str


def family_of(
    files: Mapping[str, bytes], *, overrides: Mapping[str, object], tokens: TokenLookup
) -> Family | UnknownFamily | None:
    """Return the family of a checkpoint; None for a model that sees nothing.

    `files` are those of a tokenizer bundle, by name; `overrides` has the keys of preprocessor_config.json.
    """
    model_type = ""
    try:
        read = ProcessorFiles(files, overrides=overrides, tokens=tokens)
        model_type = read.model_type
        maker = _maker(FAMILIES.get(model_type))
        if maker is not None:
            return maker(read)
        if not sees(read.config):
            return None
    except ProcessorError as error:
        return UnknownFamily(model_type, str(error))
    return UnknownFamily(model_type, f"model_type {model_type!r} is not among the known families")


def values_in_force(family: Family) -> tuple[ProcessorValue, ...]:
    """Return the numbers that a family made by `family_of` goes by, and where each was found."""
    return family.values if isinstance(family, CheckpointFamily) else ()


def _maker(family: str | None) -> _Maker | None:
    """Return what makes a family; its module is loaded with the first checkpoint that needs it."""
    match family:
        case None:
            return None
        case "llava":
            return _llava
        case "gemma3":
            from smg_node.media.families.fixed_size.gemma3 import Gemma3Family

            return Gemma3Family
        case "gemma3n":
            from smg_node.media.families.fixed_size.gemma3 import Gemma3nFamily

            return Gemma3nFamily
        case _:
            return _native_size(family) or _tiled(family)


def _llava(files: ProcessorFiles) -> Family:
    """Return LLaVA, or Pixtral where the encoder is Pixtral's."""
    vision = files.config.get("vision_config")
    if isinstance(vision, dict) and vision.get("model_type") == "pixtral":
        from smg_node.media.families.native_size.pixtral import pixtral

        return pixtral(files)
    from smg_node.media.families.fixed_size.llava import LlavaFamily

    return LlavaFamily(files)


def _native_size(family: str) -> _Maker | None:
    """Return what makes one of the families in `native_size`, None for another one."""
    match family:
        case "qwen2_vl":
            from smg_node.media.families.native_size.qwen_vl import qwen2_vl

            return qwen2_vl
        case "qwen3_vl":
            from smg_node.media.families.native_size.qwen_vl import qwen3_vl

            return qwen3_vl
        case "dots_ocr":
            from smg_node.media.families.native_size.qwen_vl import dots_ocr

            return dots_ocr
        case "glm4v":
            from smg_node.media.families.native_size.glm4v import Glm4vFamily

            return Glm4vFamily
        case "kimi":
            from smg_node.media.families.native_size.kimi import KimiFamily

            return KimiFamily
        case "mistral3":
            from smg_node.media.families.native_size.pixtral import mistral3

            return mistral3
        case "gemma4":
            from smg_node.media.families.native_size.gemma4 import Gemma4Family

            return Gemma4Family
        case _:
            return None


def _tiled(family: str) -> _Maker:
    """Return what makes one of the families in `tiled`."""
    match family:
        case "llava_next":
            from smg_node.media.families.tiled.llava_next import LlavaNextFamily

            return LlavaNextFamily
        case "llava_onevision":
            from smg_node.media.families.tiled.llava_next import LlavaOneVisionFamily

            return LlavaOneVisionFamily
        case "llama4":
            from smg_node.media.families.tiled.llama4 import Llama4Family

            return Llama4Family
        case "phi4":
            from smg_node.media.families.tiled.phi4 import Phi4Family

            return Phi4Family
        case "internvl":
            from smg_node.media.families.tiled.internvl import InternVlFamily

            return InternVlFamily
        case "internvl_chat":
            from smg_node.media.families.tiled.internvl_chat import InternVlChatFamily

            return InternVlChatFamily
        case "deepseek":
            from smg_node.media.families.tiled.deepseek import deepseek

            return deepseek
        case "cohere2_vision":
            from smg_node.media.families.tiled.cohere2_vision import Cohere2VisionFamily

            return Cohere2VisionFamily
        case _:
            from smg_node.media.families.tiled.idefics3 import Idefics3Family

            assert family == "idefics3"
            return Idefics3Family
