"""Processor files of more published checkpoints: of tiles, of squares of other encoders, and of readers of documents.

They belong to `CHECKPOINTS` and `TOKENS` of `support.media.checkpoints`; those of DeepSeek-OCR do not, because small
pictures are no tensors of theirs.
"""

from collections.abc import Mapping
from typing import Any

Files = Mapping[str, Mapping[str, Any]]

_CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_ALWAYS = {
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "rescale_factor": 0.00392156862745098,
}
_SIGLIP = {"model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14}
_GRID = [[384 * rows, 384 * columns] for rows in range(1, 7) for columns in range(1, 7)]
_GRANITE_GRID = [
    [384 * rows, 384 * columns]
    for rows, columns in (
        *((1, columns) for columns in range(2, 11)),
        *((2, columns) for columns in range(1, 6)),
        *((3, columns) for columns in range(1, 4)),
        *((rows, columns) for rows in (4, 5) for columns in (1, 2)),
        *((rows, 1) for rows in range(6, 11)),
    )
]
_INTERNVL_CHAT = {
    "model_type": "internvl_chat",
    "downsample_ratio": 0.5,
    "dynamic_image_size": True,
    "force_image_size": 448,
    "max_dynamic_patch": 12,
    "min_dynamic_patch": 1,
    "use_thumbnail": True,
    "vision_config": {"model_type": "intern_vit_6b", "image_size": 448, "patch_size": 14},
}

TILED_CHECKPOINTS: Mapping[str, Files] = {
    # llava-hf/llava-interleave-qwen-0.5b-hf
    "llava_siglip": {
        "config.json": {
            "model_type": "llava",
            "image_token_index": 151646,
            "vision_config": _SIGLIP,
            "vision_feature_layer": -1,
            "vision_feature_select_strategy": "full",
        },
        "preprocessor_config.json": {
            **_ALWAYS,
            **_HALF,
            "image_processor_type": "SiglipImageProcessor",
            "resample": 3,
            "size": {"height": 384, "width": 384},
        },
    },
    # google/gemma-3n-E4B-it
    "gemma3n": {
        "config.json": {
            "model_type": "gemma3n",
            "boi_token_id": 255999,
            "eoi_token_id": 262144,
            "image_token_id": 262145,
            "vision_soft_tokens_per_image": 256,
            "vision_config": {"model_type": "gemma3n_vision"},
        },
        "preprocessor_config.json": {
            **_ALWAYS,
            **_HALF,
            "do_normalize": False,
            "image_processor_type": "SiglipImageProcessorFast",
            "resample": 2,
            "size": {"height": 768, "width": 768},
        },
        "processor_config.json": {"audio_seq_length": 188, "image_seq_length": 256},
    },
    # ibm-granite/granite-vision-3.3-2b
    "llava_next_siglip": {
        "config.json": {
            "model_type": "llava_next",
            "image_grid_pinpoints": _GRANITE_GRID,
            "image_token_index": 49155,
            "vision_config": _SIGLIP,
            "vision_feature_layer": [-24, -20, -12, -1],
            "vision_feature_select_strategy": "full",
        },
        "preprocessor_config.json": {
            **_ALWAYS,
            **_HALF,
            "crop_size": {"height": 384, "width": 384},
            "do_center_crop": True,
            "do_pad": True,
            "image_grid_pinpoints": _GRANITE_GRID,
            "image_processor_type": "LlavaNextImageProcessor",
            "resample": 3,
            "size": {"height": 384, "width": 384},
        },
    },
    # rednote-hilab/dots.ocr
    "dots_ocr": {
        "config.json": {
            "model_type": "dots_ocr",
            "image_token_id": 151665,
            "vision_config": {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 1},
        },
        "preprocessor_config.json": {
            **_CLIP,
            "image_processor_type": "Qwen2VLImageProcessor",
            "max_pixels": 11289600,
            "merge_size": 2,
            "min_pixels": 3136,
            "patch_size": 14,
            "temporal_patch_size": 1,
        },
    },
    # zai-org/GLM-OCR
    "glm_ocr": {
        "config.json": {
            "model_type": "glm_ocr",
            "image_token_id": 59280,
            "vision_config": {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2},
        },
        "preprocessor_config.json": {
            **_CLIP,
            "do_rescale": True,
            "image_processor_type": "Glm46VImageProcessor",
            "merge_size": 2,
            "patch_size": 14,
            "size": {"shortest_edge": 12544, "longest_edge": 9633792},
            "temporal_patch_size": 2,
        },
    },
    # llava-hf/llava-onevision-qwen2-7b-ov-hf
    "llava_onevision": {
        "config.json": {
            "model_type": "llava_onevision",
            "image_grid_pinpoints": _GRID,
            "image_token_index": 151646,
            "vision_aspect_ratio": "anyres_max_9",
            "vision_config": _SIGLIP,
            "vision_feature_select_strategy": "full",
        },
        "preprocessor_config.json": {
            **_ALWAYS,
            **_HALF,
            "do_pad": True,
            "image_grid_pinpoints": _GRID,
            "image_processor_type": "LlavaOnevisionImageProcessor",
            "resample": 3,
            "size": {"height": 384, "width": 384},
        },
        "processor_config.json": {"num_image_tokens": 729, "vision_aspect_ratio": "anyres_max_9"},
    },
    # HuggingFaceM4/Idefics3-8B-Llama3
    "idefics3": {
        "config.json": {
            "model_type": "idefics3",
            "image_token_id": 128257,
            "scale_factor": 2,
            "vision_config": {"model_type": "idefics3", "image_size": 364, "patch_size": 14},
        },
        "preprocessor_config.json": {
            **_ALWAYS,
            **_HALF,
            "do_image_splitting": True,
            "do_pad": True,
            "image_processor_type": "Idefics3ImageProcessor",
            "max_image_size": {"longest_edge": 364},
            "resample": 1,
            "size": {"longest_edge": 1456},
        },
        "processor_config.json": {"image_seq_len": 169},
    },
    # HuggingFaceTB/SmolVLM2-2.2B-Instruct
    "smolvlm": {
        "config.json": {
            "model_type": "smolvlm",
            "image_token_id": 49190,
            "scale_factor": 3,
            "vision_config": {"model_type": "smolvlm_vision", "image_size": 384, "patch_size": 14},
        },
        "preprocessor_config.json": {
            **_ALWAYS,
            **_HALF,
            "do_image_splitting": True,
            "do_pad": True,
            "image_processor_type": "SmolVLMImageProcessor",
            "max_image_size": {"longest_edge": 384},
            "resample": 1,
            "size": {"longest_edge": 1536},
        },
        "processor_config.json": {"image_seq_len": 81},
    },
    # CohereLabs/command-a-vision-07-2025
    "cohere2_vision": {
        "config.json": {
            "model_type": "cohere2_vision",
            "downsample_factor": 2,
            "image_token_id": 255036,
            "vision_config": {**_SIGLIP, "image_size": 512, "patch_size": 16},
        },
        "preprocessor_config.json": {
            **_ALWAYS,
            **_HALF,
            "crop_to_patches": True,
            "image_processor_type": "Cohere2VisionImageProcessorFast",
            "max_patches": 12,
            "min_patches": 1,
            "patch_size": 16,
            "resample": 3,
            "size": {"height": 512, "width": 512},
        },
    },
    # OpenGVLab/InternVL3-8B
    "internvl_chat": {
        "config.json": _INTERNVL_CHAT,
        "preprocessor_config.json": {
            **_CLIP,
            "crop_size": 448,
            "do_center_crop": True,
            "do_resize": True,
            "feature_extractor_type": "CLIPFeatureExtractor",
            "size": 448,
        },
    },
}

_DEEPSEEK = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "normalize": True}
_VL2_CANVASES = [
    [384 * columns, 384 * rows]
    for columns, rows in (
        [(1, 1)]
        + [pair for side in range(2, 10) for pair in ((1, side), (side, 1))]
        + [(2, 2), (2, 3), (3, 2), (2, 4), (4, 2), (3, 3)]
    )
]


def _ocr(architecture: str) -> Files:
    return {
        "config.json": {
            "architectures": [architecture],
            "candidate_resolutions": [[1024, 1024]],
            "model_type": "deepseek_vl_v2",
            "vision_config": {"model_type": "vision", "image_size": 1024},
        },
        "processor_config.json": {
            **_DEEPSEEK,
            "candidate_resolutions": [[1024, 1024]],
            "downsample_ratio": 4,
            "patch_size": 16,
        },
    }


DEEPSEEK_CHECKPOINTS: Mapping[str, Files] = {
    # deepseek-ai/deepseek-vl2-tiny
    "deepseek_vl2": {
        "config.json": {
            "architectures": ["DeepseekVLV2ForCausalLM"],
            "candidate_resolutions": _VL2_CANVASES,
            "model_type": "deepseek_vl_v2",
            "vision_config": {"model_type": "vision", "image_size": 384, "patch_size": 14},
        },
        "processor_config.json": {
            **_DEEPSEEK,
            "candidate_resolutions": _VL2_CANVASES,
            "downsample_ratio": 2,
            "patch_size": 14,
        },
    },
}

# deepseek-ai/DeepSeek-OCR, deepseek-ai/DeepSeek-OCR-2
OCR_CHECKPOINTS: Mapping[str, Files] = {
    "deepseek_ocr": _ocr("DeepseekOCRForCausalLM"),
    "deepseek_ocr2": _ocr("DeepseekOCR2ForCausalLM"),
}

_MARKS = [(row, column) for row in range(1, 7) for column in range(1, 7)]
_NEWLINES = {"\n": 198, "\n\n": 271}

TILED_TOKENS: Mapping[str, Mapping[str, int]] = {
    "llava_siglip": {"<image>": 151646},
    "gemma3n": {
        "\n": 107,
        "\n\n": 108,
        "\n\n\n": 109,
        "\n\n\n\n": 110,
        "<start_of_image>": 255999,
        "<end_of_image>": 262144,
        "<image_soft_token>": 262145,
    },
    "llava_onevision": {"<image>": 151646},
    "llava_next_siglip": {"<image>": 49155},
    "dots_ocr": {"<|imgpad|>": 151665},
    "glm_ocr": {"<|image|>": 59280},
    "idefics3": {
        **_NEWLINES,
        "<image>": 128257,
        "<fake_token_around_image>": 128256,
        "<global-img>": 128300,
        **{f"<row_{row}_col_{column}>": 128301 + 6 * row + column for row, column in _MARKS},
    },
    "smolvlm": {
        **_NEWLINES,
        "<image>": 49190,
        "<fake_token_around_image>": 49189,
        "<global-img>": 49152,
        **{f"<row_{row}_col_{column}>": 49146 + 6 * row + column for row, column in _MARKS},
    },
    "cohere2_vision": {
        "<|IMG_PATCH|>": 255036,
        "<|START_OF_IMG|>": 255033,
        "<|END_OF_IMG|>": 255034,
        "<|IMG_LINE_BREAK|>": 255032,
    },
    "deepseek_vl2": {"<image>": 100003},
    "internvl_chat": {"<img>": 151665, "</img>": 151666, "<IMG_CONTEXT>": 151667},
}
OCR_TOKENS = {"<image>": 128815}
