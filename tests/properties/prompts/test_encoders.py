"""On documents of every kind, the ids of every encoder and cache are the reference's ids."""

from array import array
from functools import cache

import pytest
import tiktoken

from smg_node.core.generation.request import TokenIds
from smg_node.tokens.caches.cached_encoder import CachedEncoder
from smg_node.tokens.caches.exact_cache import ExactCache, ExactLimits
from smg_node.tokens.caches.prefix_cache import prefix_cache
from smg_node.tokens.files.tiktoken import read_ranks
from smg_node.tokens.files.tiktoken_families import FAMILIES
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from support.models.sample_documents import documents
from support.models.vocabulary import (
    QWEN_SPECIALS,
    SMALL,
    qwen,
    qwen_ranks,
    qwen_reference,
    qwen_slow,
    qwen_tiktoken,
    small,
    small_reference,
)

COUNT = 1_040


@cache
def texts() -> list[str]:
    return list(documents(COUNT))


@cache
def reference_ids() -> list[TokenIds]:
    found = qwen_reference().encode_batch_fast(texts(), add_special_tokens=False)
    return [array("I", encoding.ids) for encoding in found]


def cached(tokenizer: LoadedTokenizer, *, l0: bool, l1: bool) -> CachedEncoder:
    exact = ExactCache(ExactLimits(entries=10_000, bytes=1 << 28), seed=5) if l0 else None
    prefix, _ = prefix_cache(tokenizer, max_bytes=50 << 20 if l1 else 0, seed=6)
    assert (prefix is not None) == l1
    return CachedEncoder(tokenizer, exact, prefix)


def check(encoder: CachedEncoder) -> None:
    for text, wanted in zip(texts(), reference_ids(), strict=True):
        assert encoder.encode(text, add_special_tokens=False).ids == wanted, text


def test_the_documents_are_varied() -> None:
    joined = "".join(texts())
    assert len(set(texts())) > 0.97 * COUNT
    for sign in ("def ", "中", "😀", "\u200d", "\x07", "<|im_start|>", "\r\n", "\u0338", "привет"):
        assert sign in joined


@pytest.mark.parametrize("loaded", [qwen, qwen_slow])
@pytest.mark.parametrize("l1", [False, True])
def test_cold_from_l0_and_from_l1_the_ids_are_the_references(loaded: object, l1: bool) -> None:
    assert callable(loaded)
    tokenizer = loaded()
    encoder = cached(tokenizer, l0=True, l1=l1)
    check(encoder)
    assert encoder.l0_hits + encoder.l0_misses == COUNT
    # The second time they are proven to come again: from then on they are kept.
    check(encoder)
    hits = encoder.l0_hits
    check(encoder)
    assert encoder.l0_hits - hits > 0.9 * COUNT
    if l1:
        alone = cached(tokenizer, l0=False, l1=True)
        check(alone)
        seen = alone.l1_hits
        check(alone)
        assert alone.l1_hits > seen
        assert alone.l1_hit_bytes > 100_000
        assert alone.l0_hits == 0


def test_conversations_that_grow_are_found_in_l1_and_still_exact() -> None:
    for tokenizer in (qwen(), qwen_slow()):
        encoder = cached(tokenizer, l0=False, l1=True)
        prompt = ""
        for text in texts()[:64]:
            prompt += f"<|im_start|>user\n{text[:300]}<|im_end|>\n"
            wanted = qwen_reference().encode_batch_fast([prompt], add_special_tokens=False)[0].ids
            assert encoder.encode(prompt, add_special_tokens=False).ids == array("I", wanted)
        assert encoder.l1_hits > encoder.l1_misses


def test_the_ranks_file_gives_the_same_ids_as_tiktoken_itself() -> None:
    encoding = tiktoken.Encoding(
        "oracle",
        pat_str=FAMILIES["qwen"].pattern,
        mergeable_ranks=read_ranks(qwen_ranks(), "qwen"),
        special_tokens={text: 151_643 + place for place, text in enumerate(QWEN_SPECIALS)},
    )
    for text, converted in zip(texts(), reference_ids(), strict=True):
        found = qwen_tiktoken().encode(text, add_special_tokens=False)
        if text.isascii():  # Composing changes nothing, so the plain library is the judge.
            assert list(found) == encoding.encode(text, allowed_special="all")
        if "\u0338" not in text:  # It would compose with the end of a special token.
            assert found == converted, text


@pytest.mark.parametrize("family", sorted(SMALL))
@pytest.mark.parametrize("special", [False, True])
def test_small_vocabularies_of_other_families_are_exact_too(family: str, special: bool) -> None:
    exact = ExactCache(ExactLimits(entries=10_000, bytes=1 << 28), seed=5)
    l1, why = prefix_cache(small(family), max_bytes=1 << 20, seed=6)
    assert (l1 is not None) or why
    encoder = CachedEncoder(small(family), exact, l1)
    some = texts()[:260]
    found = small_reference(family).encode_batch_fast(some, add_special_tokens=special)
    for _ in range(2):
        for text, encoding in zip(some, found, strict=True):
            ids = encoder.encode(text, add_special_tokens=special).ids
            assert ids == array("I", encoding.ids), text
