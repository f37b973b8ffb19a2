"""Vision files: what a built-in tokenizer bundle has besides where its model sees pictures.

Tokens around and for pictures, a template that writes them, the part of config.json that image processors go by, and
the processor's own files, with the numbers of published checkpoints of the family.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_chaos.engine.media.vision_models import MODELS, VisionModel

_CLIP_MEAN: Final = [0.48145466, 0.4578275, 0.40821073]
_CLIP_STD: Final = [0.26862954, 0.26130258, 0.27577711]
_TEXT_PART: Final = "{%- if part.text -%}"
_PICTURE_PART: Final = (
    "{%- if part.type in ('image', 'image_url') or 'image' in part -%}{{ 'IMAGE' }}CLIPS"
    "{%- elif part.text -%}"
)
_CLIP_PART: Final = "{%- elif part.type == 'KIND' or 'KIND' in part -%}{{ 'MARK' }}"


def vision_tokens(vision: str) -> tuple[str, ...]:
    """Return the special tokens of pictures, videos and sound; none for a model of text."""
    if not vision:
        return ()
    model = MODELS[vision]
    named = (model.opens, model.closes, *model.anchors().values())
    return tuple(one for one in (*named, model.sound_opens, model.sound_closes) if one)


def vision_template(template: str, vision: str) -> str:
    """Return a chat template that writes an anchor for each picture, video and sound, in the order of the parts."""
    if not vision:
        return template
    model = MODELS[vision]
    assert _TEXT_PART in template, "the template of the corpus"
    written = f"{model.opens}{model.anchor}{model.closes}"
    marks = {
        "video": f"{model.opens}{model.video}{model.closes}" if model.video else "",
        "audio": f"{model.sound_opens}{model.sound}{model.sound_closes}",
    }
    clips = [
        _CLIP_PART.replace("KIND", kind).replace("MARK", mark)
        for kind, mark in marks.items()
        if mark
    ]
    part = _PICTURE_PART.replace("IMAGE", written).replace("CLIPS", "".join(clips))
    return template.replace(_TEXT_PART, part)


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
    if model.hears:
        return fields | {
            "thinker_config": {
                "image_token_index": ids[model.anchor],
                "video_token_index": ids[model.video],
                "audio_token_index": ids[model.sound],
                "vision_config": {"model_type": f"{model.name}_vision_encoder"},
                "audio_config": {"model_type": f"{model.name}_audio_encoder"},
            }
        }
    return fields | {
        "image_token_id": ids[model.anchor],
        "video_token_id": ids[model.video],
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
    if model.hears:
        return {"preprocessor_config.json": _omni(model)}
    if not model.patch:
        return {"preprocessor_config.json": _llava(), "processor_config.json": _llava_processor()}
    old = vision == "qwen2_5_vl"
    bounds: dict[str, Any] = (
        {"min_pixels": 3136, "max_pixels": area_max or 12845056}
        if old
        else {"size": {"shortest_edge": 65536, "longest_edge": area_max or 16777216}}
    )
    common = {
        "patch_size": model.patch,
        "temporal_patch_size": model.frames,
        "merge_size": model.merge,
        "image_mean": _CLIP_MEAN if old else [0.5, 0.5, 0.5],
        "image_std": _CLIP_STD if old else [0.5, 0.5, 0.5],
        "processor_class": "Qwen2_5_VLProcessor" if old else "Qwen3VLProcessor",
    }
    image = {**bounds, **common, "image_processor_type": _processor(model)}
    if old:
        return {"preprocessor_config.json": image}
    video = {
        "size": {"shortest_edge": 4096, "longest_edge": 25165824},
        **common,
        "video_processor_type": "Qwen3VLVideoProcessor",
    }
    return {"preprocessor_config.json": image, "video_preprocessor_config.json": video}


def _processor(model: VisionModel) -> str:
    return "Qwen2VLImageProcessor" if model.name == "qwen2_5_vl" else "Qwen2VLImageProcessorFast"


def _omni(model: VisionModel) -> dict[str, Any]:
    return {
        "image_processor_type": "Qwen2VLImageProcessor",
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "Qwen2_5OmniProcessor",
        "patch_size": model.patch,
        "merge_size": model.merge,
        "temporal_patch_size": model.frames,
        "sampling_rate": 16_000,
        "feature_size": 128,
    }


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
