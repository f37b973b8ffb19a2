"""Processor files of published checkpoints, by family, as far as an image processor goes by them."""

import json
from collections.abc import Mapping
from typing import Any

from smg_node.media.families.registry import UnknownFamily, family_of
from smg_node.media.family import Family
from support.media.tiled_checkpoints import (
    DEEPSEEK_CHECKPOINTS,
    TILED_CHECKPOINTS,
    TILED_TOKENS,
)

CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
PINPOINTS = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]

Files = Mapping[str, Mapping[str, Any]]

_CLIP_TOWER = {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
_LLAVA_PROCESSOR = {"image_token": "<image>", "patch_size": 14, "num_additional_image_tokens": 1}

CHECKPOINTS: Mapping[str, Files] = {
    # Qwen/Qwen2.5-VL-7B-Instruct
    "qwen2_5_vl": {
        "config.json": {
            "model_type": "qwen2_5_vl",
            "image_token_id": 151655,
            "vision_config": {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2},
        },
        "preprocessor_config.json": {
            "min_pixels": 3136,
            "max_pixels": 12845056,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "merge_size": 2,
            **CLIP,
            "image_processor_type": "Qwen2VLImageProcessor",
        },
    },
    # Qwen/Qwen3-VL-8B-Instruct
    "qwen3_vl": {
        "config.json": {
            "model_type": "qwen3_vl",
            "image_token_id": 151655,
            "vision_config": {"patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2},
        },
        "preprocessor_config.json": {
            "size": {"longest_edge": 16777216, "shortest_edge": 65536},
            "patch_size": 16,
            "temporal_patch_size": 2,
            "merge_size": 2,
            **HALF,
            "image_processor_type": "Qwen2VLImageProcessorFast",
        },
    },
    # zai-org/GLM-4.1V-9B-Thinking
    "glm4v": {
        "config.json": {
            "model_type": "glm4v",
            "image_token_id": 151343,
            "vision_config": {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2},
        },
        "preprocessor_config.json": {
            "size": {"shortest_edge": 12544, "longest_edge": 11760000},
            "do_rescale": True,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "merge_size": 2,
            **CLIP,
            "image_processor_type": "Glm4vImageProcessor",
        },
    },
    # moonshotai/Kimi-K2.5
    "kimi_k25": {
        "config.json": {
            "model_type": "kimi_k25",
            "media_placeholder_token_id": 163605,
            "vision_config": {"patch_size": 14, "merge_kernel_size": [2, 2]},
        },
        "preprocessor_config.json": {
            "media_proc_cfg": {
                "in_patch_limit": 16384,
                "patch_size": 14,
                **HALF,
                "merge_kernel_size": 2,
                "fixed_output_tokens": None,
                "patch_limit_on_one_side": 512,
                "in_patch_limit_each_frame": 4096,
            },
        },
    },
    # llava-hf/llava-1.5-7b-hf
    "llava": {
        "config.json": {
            "model_type": "llava",
            "image_token_index": 32000,
            "vision_config": _CLIP_TOWER,
            "vision_feature_layer": -2,
            "vision_feature_select_strategy": "default",
        },
        "preprocessor_config.json": {
            "crop_size": {"height": 336, "width": 336},
            "do_center_crop": True,
            "do_convert_rgb": True,
            "do_normalize": True,
            "do_rescale": True,
            "do_resize": True,
            **CLIP,
            "image_processor_type": "CLIPImageProcessor",
            "resample": 3,
            "rescale_factor": 0.00392156862745098,
            "size": {"shortest_edge": 336},
        },
        "processor_config.json": _LLAVA_PROCESSOR,
    },
    # llava-hf/llava-v1.6-mistral-7b-hf
    "llava_next": {
        "config.json": {
            "model_type": "llava_next",
            "image_token_index": 32000,
            "image_grid_pinpoints": PINPOINTS,
            "vision_config": _CLIP_TOWER,
            "vision_feature_select_strategy": "default",
        },
        "preprocessor_config.json": {
            "aspect_ratio_setting": "anyres",
            "crop_size": {"height": 336, "width": 336},
            "do_center_crop": True,
            "do_pad": True,
            "do_resize": True,
            "image_grid_pinpoints": PINPOINTS,
            **CLIP,
            "image_processor_type": "LlavaNextImageProcessor",
            "resample": 3,
            "size": {"shortest_edge": 336},
        },
        "processor_config.json": _LLAVA_PROCESSOR,
    },
    # meta-llama/Llama-4-Scout-17B-16E-Instruct
    "llama4": {
        "config.json": {
            "model_type": "llama4",
            "image_token_index": 200092,
            "boi_token_index": 200080,
            "eoi_token_index": 200081,
            "vision_config": {"image_size": 336, "patch_size": 14, "pixel_shuffle_ratio": 0.5},
        },
        "preprocessor_config.json": {
            "do_normalize": True,
            **HALF,
            "image_processor_type": "Llama4ImageProcessorFast",
            "max_patches": 16,
            "resample": 2,
            "resize_to_max_canvas": False,
            "size": {"height": 336, "width": 336},
        },
        "processor_config.json": {"patch_size": 14, "pixel_shuffle_ratio": 0.5},
    },
    # mistral-community/pixtral-12b
    "pixtral": {
        "config.json": {
            "model_type": "llava",
            "image_token_index": 10,
            "vision_config": {"model_type": "pixtral", "image_size": 1024, "patch_size": 16},
        },
        "preprocessor_config.json": {
            **CLIP,
            "image_processor_type": "PixtralImageProcessor",
            "patch_size": {"height": 16, "width": 16},
            "resample": 3,
            "size": {"longest_edge": 1024},
        },
        "processor_config.json": {
            "image_break_token": "[IMG_BREAK]",
            "image_end_token": "[IMG_END]",
            "image_token": "[IMG]",
            "patch_size": 16,
        },
    },
    # mistralai/Mistral-Small-3.1-24B-Instruct-2503
    "mistral3": {
        "config.json": {
            "model_type": "mistral3",
            "image_token_index": 10,
            "spatial_merge_size": 2,
            "vision_config": {"model_type": "pixtral", "image_size": 1540, "patch_size": 14},
        },
        "preprocessor_config.json": {
            **CLIP,
            "image_processor_type": "PixtralImageProcessorFast",
            "patch_size": {"height": 14, "width": 14},
            "resample": 3,
            "size": {"longest_edge": 1540},
        },
        "processor_config.json": {
            "image_break_token": "[IMG_BREAK]",
            "image_end_token": "[IMG_END]",
            "image_token": "[IMG]",
            "patch_size": 14,
            "spatial_merge_size": 2,
        },
    },
    # microsoft/Phi-4-multimodal-instruct
    "phi4mm": {
        "config.json": {
            "model_type": "phi4mm",
            "embd_layer": {"image_embd_layer": {"crop_size": 448, "use_hd_transform": True}},
            "img_processor": None,
        },
        "preprocessor_config.json": {
            "dynamic_hd": 36,
            "image_processor_type": "Phi4MMImageProcessor",
        },
    },
    # OpenGVLab/InternVL3-8B-hf
    "internvl": {
        "config.json": {
            "model_type": "internvl",
            "image_token_id": 151667,
            "image_seq_length": 256,
            "vision_config": {"model_type": "internvl_vision", "image_size": [448, 448]},
        },
        "preprocessor_config.json": {
            "crop_to_patches": True,
            "min_patches": 1,
            "max_patches": 12,
            **IMAGENET,
            "image_processor_type": "GotOcr2ImageProcessorFast",
            "resample": 3,
            "size": {"height": 448, "width": 448},
        },
        "processor_config.json": {"image_seq_length": 256},
    },
    # google/gemma-3-4b-it
    "gemma3": {
        "config.json": {
            "model_type": "gemma3",
            "boi_token_index": 255999,
            "eoi_token_index": 256000,
            "image_token_index": 262144,
            "mm_tokens_per_image": 256,
            "vision_config": {"image_size": 896, "patch_size": 14},
        },
        "preprocessor_config.json": {
            "do_convert_rgb": None,
            "do_normalize": True,
            "do_pan_and_scan": None,
            "do_rescale": True,
            "do_resize": True,
            **HALF,
            "image_processor_type": "Gemma3ImageProcessor",
            "image_seq_length": 256,
            "resample": 2,
            "rescale_factor": 0.00392156862745098,
            "size": {"height": 896, "width": 896},
        },
    },
    # google/gemma-4, in the files of transformers 5
    "gemma4": {
        "config.json": {
            "model_type": "gemma4",
            "image_token_id": 258880,
            "boi_token_id": 255999,
            "eoi_token_id": 258882,
            "vision_config": {"patch_size": 16, "pooling_kernel_size": 3},
        },
        "processor_config.json": {
            "image_processor": {
                "do_convert_rgb": True,
                "do_normalize": False,
                "do_rescale": True,
                "do_resize": True,
                "image_mean": [0.0, 0.0, 0.0],
                "image_std": [1.0, 1.0, 1.0],
                "max_soft_tokens": 280,
                "patch_size": 16,
                "pooling_kernel_size": 3,
                "resample": 3,
                "rescale_factor": 0.00392156862745098,
            },
        },
    },
    **TILED_CHECKPOINTS,
    **DEEPSEEK_CHECKPOINTS,
}

TOKENS: Mapping[str, Mapping[str, int]] = {
    "qwen2_5_vl": {"<|image_pad|>": 151655},
    "qwen3_vl": {"<|image_pad|>": 151655},
    "glm4v": {"<|image|>": 151343},
    "kimi_k25": {"<|media_pad|>": 163605},
    "llava": {"<image>": 32000},
    "llava_next": {"<image>": 32000},
    "llama4": {
        "<|image_start|>": 200080,
        "<|image_end|>": 200081,
        "<|tile_x_separator|>": 200084,
        "<|tile_y_separator|>": 200085,
        "<|image|>": 200090,
        "<|patch|>": 200092,
    },
    "pixtral": {"[IMG]": 10, "[IMG_BREAK]": 12, "[IMG_END]": 13},
    "mistral3": {"[IMG]": 10, "[IMG_BREAK]": 12, "[IMG_END]": 13},
    "phi4mm": {"<|endoftext10|>": 200010},
    "internvl": {"<img>": 151665, "</img>": 151666, "<IMG_CONTEXT>": 151667},
    "gemma3": {
        "\n": 107,
        "\n\n": 108,
        "\n\n\n": 109,
        "\n\n\n\n": 110,
        "<start_of_image>": 255999,
        "<end_of_image>": 256000,
    },
    "gemma4": {"<|image|>": 258880},
    **TILED_TOKENS,
}


class Vocabulary:
    """The tokens of a family, as far as it needs them."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        self._tokens = tokens

    def token_id(self, text: str) -> int | None:
        """Return the id of a token."""
        return self._tokens.get(text)


def encoded(files: Files) -> dict[str, bytes]:
    """Return files as a bundle has them."""
    return {name: json.dumps(content).encode() for name, content in files.items()}


def found(
    name: str,
    files: Files | None = None,
    *,
    overrides: Mapping[str, object] | None = None,
    tokens: Mapping[str, int] | None = None,
) -> Family | UnknownFamily | None:
    """Return what the registry makes of a checkpoint, or of `files` with that checkpoint's tokens."""
    return family_of(
        encoded(files if files is not None else CHECKPOINTS[name]),
        overrides=overrides or {},
        tokens=Vocabulary(TOKENS[name] if tokens is None else tokens),
    )


def family(name: str, *, overrides: Mapping[str, object] | None = None) -> Family:
    """Return the family of a published checkpoint."""
    made = found(name, overrides=overrides)
    assert made is not None
    assert not isinstance(made, UnknownFamily), made.reason
    return made


def vocabulary(name: str) -> Vocabulary:
    """Return the tokens of a published checkpoint."""
    return Vocabulary(TOKENS[name])
