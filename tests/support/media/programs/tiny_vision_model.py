"""Writes a folder with a tiny Qwen-VL model of random weights, whose answers depend on the pictures it is shown.

Run by the interpreter of an engine's environment, which has torch and transformers: `python tiny_vision_model.py FOLDER
KIND`, with the folder of tests on the path. KIND is qwen3_vl or qwen2_5_vl. 1.6 to 1.9 million parameters.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken

from support.models.tiny_tokenizer import SPECIAL, TEXT_END, TURN_END, token_id, trained_tokenizer

VISION = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content is string %}{{- message.content }}{%- else %}{%- for part in message.content %}"
    "{%- if part.type == 'image' or 'image' in part %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- elif part.type == 'video' or 'video' in part %}{{- '<|vision_start|><|video_pad|><|vision_end|>' }}"
    "{%- elif 'text' in part %}{{- part.text }}{%- endif %}{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
TEXT: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "initializer_range": 0.2,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}


def main(folder: Path, kind: str) -> None:
    """Write the model, its tokenizer and the files of its picture processor."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = trained_tokenizer()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in VISION]
    )
    ids = {text: token_id(tokenizer, text) for text in (*SPECIAL, *VISION)}
    rows = -(-tokenizer.get_vocab_size() // 64) * 64
    torch.manual_seed(7)
    model = _model(kind, rows, ids)
    model.to(torch.float32).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "Qwen2TokenizerFast",
            "eos_token": TURN_END,
            "pad_token": TEXT_END,
            "chat_template": TEMPLATE,
        },
    )
    _write(
        folder / "generation_config.json",
        {"eos_token_id": [ids[TURN_END]], "pad_token_id": ids[TEXT_END]},
    )
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    for name, value in _processor(kind).items():
        _write(folder / name, value)


def _model(kind: str, rows: int, ids: dict[str, int]) -> Any:
    common = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "tie_word_embeddings": False,
    }
    text = {**TEXT, "vocab_size": rows, "eos_token_id": ids[TURN_END], "bos_token_id": None}
    if kind == "qwen3_vl":
        text["rope_parameters"] = {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_section": [6, 5, 5],
            "mrope_interleaved": True,
        }
        vision = {
            "depth": 2,
            "hidden_size": 64,
            "num_heads": 2,
            "intermediate_size": 128,
            "out_hidden_size": 128,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "num_position_embeddings": 256,
            "deepstack_visual_indexes": [0],
            "initializer_range": 0.2,
        }
        config = transformers.Qwen3VLConfig(text_config=text, vision_config=vision, **common)
        return transformers.Qwen3VLForConditionalGeneration(config)
    text["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": [4, 6, 6],
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "num_heads": 2,
        "intermediate_size": 128,
        "out_hidden_size": 128,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "window_size": 112,
        "fullatt_block_indexes": [1],
        "initializer_range": 0.2,
    }
    config = transformers.Qwen2_5_VLConfig(text_config=text, vision_config=vision, **common)
    return transformers.Qwen2_5_VLForConditionalGeneration(config)


def _processor(kind: str) -> dict[str, Any]:
    three = kind == "qwen3_vl"
    half = [0.5, 0.5, 0.5]
    clip = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    mean, std = (half, half) if three else clip
    image = {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "processor_class": "Qwen3VLProcessor" if three else "Qwen2_5_VLProcessor",
        "size": {"shortest_edge": 65_536, "longest_edge": 262_144}
        if three
        else {"shortest_edge": 3136, "longest_edge": 262_144},
        "patch_size": 16 if three else 14,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": mean,
        "image_std": std,
    }
    video = {
        **image,
        "video_processor_type": "Qwen3VLVideoProcessor" if three else "Qwen2VLVideoProcessor",
    }
    del video["image_processor_type"]
    return {"preprocessor_config.json": image, "video_preprocessor_config.json": video}


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
