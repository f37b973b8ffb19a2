"""Vocabulary of a tiny byte-level BPE tokenizer, built in code and always the same.

256 byte tokens, then a few hundred merges learned from a fixed text (most frequent pair first;
among equals the pair that sorts first), then the special tokens and markers. Everything UTF-8 can
be encoded, and characters outside the text's alphabet take one token per byte: exactly the split
characters a detokeniser must survive.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from smg_chaos.engine.scripts.corpus import CHAT_TEMPLATE, TRAINING_TEXT
from smg_chaos.engine.scripts.vision_files import (
    processor_files,
    vision_config,
    vision_template,
    vision_tokens,
)

SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Markers stay visible when special tokens are skipped.
MARKERS: Final = (
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
MERGES_MAX: Final = 320
_WORD: Final = re.compile(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+")

_Pair = tuple[str, str]
_BYTE_LEVEL: Final = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}


def byte_letters() -> tuple[str, ...]:
    """Return the printable letter that stands for each byte in byte-level vocabularies.

    Printable Latin-1 bytes stand for themselves, the other 68 are moved to U+0100 and up.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters, moved = [], 0
    for byte in range(256):
        if byte in printable:
            letters.append(chr(byte))
        else:
            letters.append(chr(0x100 + moved))
            moved += 1
    return tuple(letters)


def _learn(text: str, count: int) -> list[_Pair]:
    letters = byte_letters()
    words = Counter(_WORD.findall(text))
    split = {word: [letters[byte] for byte in word.encode()] for word in words}
    merges: list[_Pair] = []
    while len(merges) < count:
        pairs: Counter[_Pair] = Counter()
        for word, pieces in split.items():
            for pair in pairwise(pieces):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < 2:
            break
        merges.append(best)
        for word, pieces in split.items():
            split[word] = _merged(pieces, best)
    return merges


def _merged(pieces: list[str], pair: _Pair) -> list[str]:
    merged: list[str] = []
    at = 0
    while at < len(pieces):
        if tuple(pieces[at : at + 2]) == pair:
            merged.append(pieces[at] + pieces[at + 1])
            at += 2
        else:
            merged.append(pieces[at])
            at += 1
    return merged


def _added(token_id: int, text: str, *, special: bool) -> dict[str, Any]:
    return {
        "id": token_id,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }


def tiny_files(
    *, vocabulary: int, context: int, vision: str = "", area_max: int = 0
) -> Mapping[str, bytes]:
    """Return the bundle's files by name.

    `vocabulary` is what config.json claims (a padded matrix): at least what the tokenizer holds,
    or ValueError. With `vision`, the family of a model that sees pictures, there are their tokens, and their
    processor's files (`area_max`: see `processor_files`).
    """
    merges = _learn(TRAINING_TEXT, MERGES_MAX)
    tokens = [*byte_letters(), *(left + right for left, right in merges)]
    first_added, seen = len(tokens), vision_tokens(vision)
    special, extra = (*SPECIAL, *seen), (*SPECIAL, *MARKERS, *seen)
    if vocabulary < first_added + len(extra):
        raise ValueError(f"the built-in tokenizer has {first_added + len(extra)} tokens")
    added = [
        _added(first_added + at, text, special=text in special) for at, text in enumerate(extra)
    ]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": _BYTE_LEVEL,
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: at for at, token in enumerate(tokens)},
            "merges": [list(pair) for pair in merges],
        },
    }
    end_of_text, end_of_turn = first_added, first_added + SPECIAL.index("<|im_end|>")
    return {
        "tokenizer.json": _json(tokenizer),
        "tokenizer_config.json": _json(_tokenizer_config(added, context, special, vision)),
        "config.json": _json(
            {
                **_model_config(vocabulary, context, end_of_text, end_of_turn),
                **vision_config(vision, {str(one["content"]): one["id"] for one in added}),
            }
        ),
        "generation_config.json": _json(
            {
                "bos_token_id": end_of_text,
                "pad_token_id": end_of_text,
                "eos_token_id": [end_of_turn, end_of_text],
                "do_sample": True,
            }
        ),
        **{name: _json(content) for name, content in processor_files(vision, area_max).items()},
    }


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def _tokenizer_config(
    added: list[dict[str, Any]], context: int, special: Sequence[str], vision: str
) -> dict[str, Any]:
    decoder = {str(entry["id"]): {k: v for k, v in entry.items() if k != "id"} for entry in added}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "additional_special_tokens": list(special),
        "chat_template": vision_template(CHAT_TEMPLATE, vision),
        "added_tokens_decoder": decoder,
    }


def _model_config(
    vocabulary: int, context: int, end_of_text: int, end_of_turn: int
) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": vocabulary,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-6,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_turn,
        "pad_token_id": end_of_text,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }
