"""Vision files: what a built-in tokenizer bundle has besides where its model sees pictures.

Tokens around and for pictures, a template that writes them, the part of config.json that image processors go by, and
the processor's own files, with the numbers of published checkpoints of the family.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_chaos.engine.media.vision_models import MODELS, VisionModel

_CLIP_MEAN: Final = [0.48145466, 0.4578275, 0.40821073]
_CLIP_STD: Final = [0.26862954, 0.26130258, 0.27577711]
_VIDEO: Final = "<|video_pad|>"
_TEXT_PART: Final = "{%- if part.text -%}"
_PICTURE_PART: Final = (
    "{%- if part.type in ('image', 'image_url') or 'image' in part -%}{{ '%s' }}"
    "{%%- elif part.text -%%}"
)


def vision_tokens(vision: str) -> tuple[str, ...]:
    """Return the special tokens of pictures; none for a model of text."""
    if not vision:
        return ()
    model = MODELS[vision]
    named = (model.opens, model.closes, model.anchor, _VIDEO if model.patch else "")
    return tuple(one for one in named if one)


def vision_template(template: str, vision: str) -> str:
    """Return a chat template that writes an anchor for each picture, in the order of the parts."""
    if not vision:
        return template
    model = MODELS[vision]
    assert _TEXT_PART in template, "the template of the corpus"
    written = f"{model.opens}{model.anchor}{model.closes}"
    return template.replace(_TEXT_PART, _PICTURE_PART.replace("%s", written).replace("%%", "%"))


def vision_config(vision: str, ids: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of config.json that are other than those of a model of text; `ids` by token."""
    if not vision:
        return {}
    model = MODELS[vision]
    fields: dict[str, Any] = {"model_type": model.name, "architectures": [model.architecture]}
    if not model.patch:
        return fields | {
            "image_token_index": ids[model.anchor],
            "vision_config": {
                "model_type": "clip_vision_model",
                "image_size": 336,
                "patch_size": 14,
            },
            "vision_feature_select_strategy": "default",
        }
    return fields | {
        "image_token_id": ids[model.anchor],
        "video_token_id": ids[_VIDEO],
        "vision_start_token_id": ids[model.opens],
        "vision_end_token_id": ids[model.closes],
        "vision_config": {
            "model_type": model.name,
            "patch_size": model.patch,
            "spatial_patch_size": model.patch,
            "temporal_patch_size": model.frames,
            "spatial_merge_size": model.merge,
        },
    }


def processor_files(vision: str, area_max: int = 0) -> dict[str, dict[str, Any]]:
    """Return the files of the image processor, by name; `area_max` is the largest area of families that have one, 0: theirs."""
    if not vision:
        return {}
    model = MODELS[vision]
    if not model.patch:
        return {"preprocessor_config.json": _llava(), "processor_config.json": _llava_processor()}
    old = vision == "qwen2_5_vl"
    bounds: dict[str, Any] = (
        {"min_pixels": 3136, "max_pixels": area_max or 12845056}
        if old
        else {"size": {"shortest_edge": 65536, "longest_edge": area_max or 16777216}}
    )
    return {
        "preprocessor_config.json": {
            **bounds,
            "patch_size": model.patch,
            "temporal_patch_size": model.frames,
            "merge_size": model.merge,
            "image_mean": _CLIP_MEAN if old else [0.5, 0.5, 0.5],
            "image_std": _CLIP_STD if old else [0.5, 0.5, 0.5],
            "image_processor_type": _processor(model),
            "processor_class": "Qwen2_5_VLProcessor" if old else "Qwen3VLProcessor",
        }
    }


def _processor(model: VisionModel) -> str:
    return "Qwen2VLImageProcessor" if model.name == "qwen2_5_vl" else "Qwen2VLImageProcessorFast"


def _llava() -> dict[str, Any]:
    return {
        "crop_size": {"height": 336, "width": 336},
        "do_center_crop": True,
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": _CLIP_MEAN,
        "image_std": _CLIP_STD,
        "image_processor_type": "CLIPImageProcessor",
        "resample": 3,
        "rescale_factor": 1 / 255,
        "size": {"shortest_edge": 336},
    }


def _llava_processor() -> dict[str, Any]:
    return {
        "processor_class": "LlavaProcessor",
        "image_token": "<image>",
        "patch_size": 14,
        "num_additional_image_tokens": 1,
        "vision_feature_select_strategy": "default",
    }
