"""Vocabularies for tests: a real one of 151,643 ranks, and small ones of every other family.

The real one is Qwen's, out of the package `dashscope` (dependency group `vocab`). It is used as the
*.tiktoken file it is, and as a tokenizer.json whose merges are recovered from the ranks; that takes a
second, so the result is kept under `.cache/` in the repository. The others are made here, from the
texts the tests use anyway.
"""

import base64
import hashlib
import importlib.util
import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.decoding.token_table import byte_alphabet
from smg_node.tokens.files.tiktoken_families import FAMILIES
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from smg_node.tokens.loader import load
from support.models.sample_documents import prose

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "vocabulary"
QWEN_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
QWEN_PATTERN = FAMILIES["qwen"].pattern


def bundle_of(files: Mapping[str, bytes | str | Mapping[str, Any]]) -> TokenizerBundle:
    """Return a bundle; text is encoded, objects become JSON."""
    contents = {
        name: content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
        for name, content in files.items()
    }
    digest = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()
    return TokenizerBundle(contents, digest, "a test")


@cache
def qwen_ranks() -> bytes:
    """Return Qwen's *.tiktoken file."""
    found = importlib.util.find_spec("dashscope")
    assert found is not None, (
        "install the dependency group `vocab`: pip install --no-deps dashscope"
    )
    assert found.submodule_search_locations is not None
    return (Path(found.submodule_search_locations[0]) / "resources" / "qwen.tiktoken").read_bytes()


@cache
def qwen_json() -> bytes:
    """Return the same vocabulary as a tokenizer.json, as its authors publish it for later models."""
    content = qwen_ranks()
    name = hashlib.sha256(content + Path(__file__).read_bytes()).hexdigest()[:16]
    kept = CACHE / f"qwen-{name}.json"
    if kept.exists():
        return kept.read_bytes()
    built = json.dumps(_qwen_definition(content), ensure_ascii=False).encode()
    CACHE.mkdir(parents=True, exist_ok=True)
    # Other test processes do the same at the same time: whole files only, the last one wins.
    handle, fresh = tempfile.mkstemp(dir=CACHE)
    with os.fdopen(handle, "wb") as file:
        file.write(built)
    os.replace(fresh, kept)
    return built


def _qwen_definition(content: bytes) -> dict[str, Any]:
    ranks: dict[bytes, int] = {}
    for line in content.splitlines():
        token, _, rank = line.partition(b" ")
        ranks[base64.b64decode(token)] = int(rank)
    alphabet = byte_alphabet()

    def spell(piece: bytes) -> str:
        return "".join(alphabet[byte] for byte in piece)

    merges = [
        [spell(left), spell(right)]
        for piece, rank in sorted(ranks.items(), key=lambda item: item[1])
        if len(piece) > 1
        for left, right in [_last_merge(piece, rank, ranks)]
    ]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    split = {
        "type": "Split",
        "pattern": {"Regex": QWEN_PATTERN},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            added_token(len(ranks) + place, text) for place, text in enumerate(QWEN_SPECIALS)
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {spell(piece): rank for piece, rank in ranks.items()},
            "merges": merges,
        },
    }


def _last_merge(piece: bytes, rank: int, ranks: Mapping[bytes, int]) -> tuple[bytes, bytes]:
    """Return the two parts that byte-pair merging joins last on its way to `piece`."""
    parts = [piece[place : place + 1] for place in range(len(piece))]
    while len(parts) > 2:
        joined = [ranks.get(left + right, rank) for left, right in pairwise(parts)]
        lowest = min(joined)
        assert lowest < rank, f"no way to merge {piece!r}"
        place = joined.index(lowest)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts[0], parts[1]


def added_token(token_id: int, content: str, **flags: bool) -> dict[str, Any]:
    """Return an entry of `added_tokens`; special unless said otherwise."""
    return {
        "id": token_id,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    } | flags


@cache
def qwen_bundle() -> TokenizerBundle:
    """Return the real vocabulary with the files around it."""
    return bundle_of(
        {
            "tokenizer.json": qwen_json(),
            "tokenizer_config.json": {
                "eos_token": "<|im_end|>",
                "pad_token": "<|endoftext|>",
                "bos_token": None,
                "add_bos_token": False,
            },
            "generation_config.json": {"eos_token_id": [151_645, 151_643]},
        }
    )


@cache
def qwen_tiktoken_bundle() -> TokenizerBundle:
    """Return the real vocabulary as ranks."""
    return bundle_of({"qwen.tiktoken": qwen_ranks(), "config.json": {"model_type": "qwen"}})


@cache
def qwen() -> LoadedTokenizer:
    """Return the real vocabulary, loaded as a node would."""
    return load(qwen_bundle())


@cache
def qwen_slow() -> LoadedTokenizer:
    """Return the real vocabulary with the reference encoder."""
    return load(qwen_bundle(), encoder="tokenizers")


@cache
def qwen_tiktoken() -> LoadedTokenizer:
    """Return the real vocabulary through tiktoken."""
    return load(qwen_tiktoken_bundle())


@cache
def qwen_reference() -> tokenizers.Tokenizer:
    """Return the library's own tokenizer of the real vocabulary."""
    return tokenizers.Tokenizer.from_buffer(qwen_json())


def _corpus() -> Sequence[str]:
    return list(prose(400))


def _merges(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the merges that byte-pair training finds in `words`; the library's differ run by run."""
    split = [list(word) for word in words]
    merges: list[tuple[str, str]] = []
    while True:
        counts = Counter(pair for parts in split for pair in pairwise(parts))
        if not counts:
            return merges
        left, right = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append((left, right))
        for parts in split:
            place = 0
            while place < len(parts) - 1:
                if parts[place : place + 2] == [left, right]:
                    parts[place : place + 2] = [left + right]
                place += 1


@cache
def llama2_json() -> bytes:
    """Return a SentencePiece-like BPE with byte fallback, built as Llama 2's conversion is."""
    merges = _merges([f"▁{word}" for word in _words()])
    specials = ["<unk>", "<s>", "</s>"]
    pieces = [*specials, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *_characters()]
    pieces += [left + right for left, right in merges]
    ids = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    made = tokenizers.Tokenizer(
        models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    made.add_special_tokens(specials)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return made.to_str().encode()


def _words() -> list[str]:
    return sorted({word for text in _corpus() for word in text.split()})


def _characters() -> list[str]:
    return sorted({character for word in _words() for character in word})


@cache
def unigram_json() -> bytes:
    """Return a Unigram vocabulary with Metaspace, as T5 has."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [(character, -9.0) for character in _characters()]
    pieces += [(f"▁{word}", -6.0 - place / 1000) for place, word in enumerate(_words())]
    made = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    made.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    made.add_special_tokens(["<pad>", "</s>", "<unk>"])
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return made.to_str().encode()


@cache
def wordpiece_json() -> bytes:
    """Return a WordPiece vocabulary, as BERT has."""
    pieces = ["[UNK]", "[CLS]", "[SEP]", *"!?.,;:'-", *_characters()]
    pieces += [f"##{character}" for character in _characters()]
    pieces += [word.lower() for word in _words()]
    ids = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    made = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return made.to_str().encode()


SMALL = {"llama2": llama2_json, "unigram": unigram_json, "wordpiece": wordpiece_json}


@cache
def small(family: str) -> LoadedTokenizer:
    """Return the small vocabulary of a family in `SMALL`, loaded as a node would."""
    return load(bundle_of({"tokenizer.json": SMALL[family]()}))


@cache
def small_reference(family: str) -> tokenizers.Tokenizer:
    """Return the library's own tokenizer of a small vocabulary."""
    return tokenizers.Tokenizer.from_buffer(SMALL[family]())
