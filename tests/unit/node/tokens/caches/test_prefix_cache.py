"""L1: pieces between special tokens, kept and put together again."""

import json
from array import array
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from smg_node.tokens.caches.prefix_cache import (
    PIECE_BYTES,
    UNSETTLED_MAX,
    PrefixCache,
    prefix_cache,
)
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from smg_node.tokens.loader import load
from support.models.sample_documents import documents
from support.models.vocabulary import bundle_of, llama2_json, qwen, qwen_slow, small


def l1_of(tokenizer: LoadedTokenizer, max_bytes: int = 1 << 20) -> PrefixCache:
    found, why = prefix_cache(tokenizer, max_bytes=max_bytes, seed=3)
    assert found is not None, why
    return found


def llama(**model: Any) -> LoadedTokenizer:
    definition = json.loads(llama2_json())
    definition.update(model)
    return load(bundle_of({"tokenizer.json": definition}), encoder="tokenizers")


def test_a_growing_conversation_is_encoded_once() -> None:
    l1 = l1_of(qwen_slow())
    prompt = "<|im_start|>system\nBe kind.<|im_end|>\n"
    for turn in range(5):
        prompt += f"<|im_start|>user\nturn {turn}<|im_end|>\n"
        before = l1.figures().misses
        assert l1.encode(prompt) == qwen_slow().encode(prompt, add_special_tokens=False)
        l1.settle()
        assert l1.figures().misses - before <= 3
    assert l1.figures().hits >= 4 + 6 + 8 + 10


def test_a_piece_is_found_behind_another_beginning_too() -> None:
    l1 = l1_of(llama())
    l1.encode("<s>one two three</s>")
    l1.settle()
    l1.encode("<s>other</s>one two three")
    l1.settle()
    assert l1.figures().hits == 1
    assert l1.figures().hit_bytes == len("one two three")


def test_of_added_tokens_that_overlap_the_leftmost_longest_cuts() -> None:
    definition = json.loads(llama2_json())
    base = max(definition["model"]["vocab"].values()) + 1
    template = definition["added_tokens"][0]
    definition["added_tokens"] += [
        template | {"id": base + place, "content": text}
        for place, text in enumerate(["<a", "<a>", "a>b", "<a><b"])
    ]
    tokenizer = load(bundle_of({"tokenizer.json": definition}), encoder="tokenizers")
    l1 = l1_of(tokenizer)
    for text in ("<a><b", "<a>b", "x<a", "a>b<a><a><b>", "<<a>>", "<a><b<a>b"):
        assert l1.encode(text) == tokenizer.encode(text, add_special_tokens=False), text


def test_a_vocabulary_whose_ids_change_where_pieces_meet_has_no_l1() -> None:
    """Only the probes can tell: nothing in this file says that it joins across special tokens."""
    honest = llama()

    class Joining:
        def __init__(self) -> None:
            self.source = honest.source
            self.borders = honest.borders
            self.digest = honest.digest

        def encode(self, text: str, *, add_special_tokens: bool) -> "array[int]":
            ids = honest.encode(text, add_special_tokens=add_special_tokens)
            return ids[:-1] if text.count("</s>") > 1 else ids

    found, why = prefix_cache(Joining(), max_bytes=1 << 20, seed=1)  # type: ignore[arg-type]  # stands in
    assert found is None
    assert "change where pieces meet" in why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"added_tokens": []}, "no added tokens"),
        (
            {
                "pre_tokenizer": {
                    "type": "Metaspace",
                    "replacement": "▁",
                    "prepend_scheme": "first",
                    "split": True,
                }
            },
            "start of a text",
        ),
    ],
)
def test_where_a_text_must_not_be_cut_there_is_no_l1(change: dict[str, Any], why: str) -> None:
    found, said = prefix_cache(llama(**change), max_bytes=1 << 20, seed=1)
    assert found is None
    assert why in said


def test_zero_bytes_switch_it_off() -> None:
    for tokenizer in (qwen(), qwen_slow()):
        assert prefix_cache(tokenizer, max_bytes=0, seed=1) == (None, "it is switched off")


def test_it_stays_within_its_bytes_and_gives_up_the_oldest() -> None:
    limit = 4 * PIECE_BYTES
    l1 = l1_of(llama(), limit)
    for number in range(50):
        l1.encode(f"<s>piece {number}</s>")
        l1.settle()
        assert l1.figures().bytes <= limit
    assert l1.figures().evictions >= 45
    before = l1.figures().hits
    l1.encode("piece 49")
    l1.encode("piece 0")
    l1.settle()
    assert l1.figures().hits == before + 1


def test_a_piece_that_is_used_stays_longer() -> None:
    l1 = l1_of(llama(), 4 * PIECE_BYTES)
    for number in range(20):
        l1.encode("always here")
        l1.settle()
        l1.encode(f"<s>piece {number}</s>")
        l1.settle()
    assert l1.figures().hits == 19


def test_a_piece_larger_than_everything_is_not_kept() -> None:
    l1 = l1_of(llama(), PIECE_BYTES + 40)
    long = "x1y2" * 50
    for _ in range(2):
        l1.encode(long)
        l1.settle()
    assert l1.figures().hits == 0
    assert l1.figures().bytes == 0


def test_nothing_changes_before_it_is_settled() -> None:
    l1 = l1_of(llama())
    for _ in range(3):
        l1.encode("<s>hello world</s>")
    assert l1.figures().hits == 0
    assert l1.figures().bytes == 0
    l1.settle()
    assert l1.figures().misses == 3
    l1.encode("hello world")
    l1.settle()
    assert l1.figures().hits == 1


def test_what_nobody_settles_is_forgotten_and_not_hoarded() -> None:
    l1 = l1_of(llama())
    for number in range(UNSETTLED_MAX + 500):
        l1.encode(f"{number}")
    l1.settle()
    assert l1.figures().misses == UNSETTLED_MAX


@pytest.mark.parametrize("loaded", [qwen, qwen_slow])
def test_threads_may_encode_while_the_owner_settles(loaded: object) -> None:
    assert callable(loaded)
    tokenizer: LoadedTokenizer = loaded()
    l1 = l1_of(tokenizer, 20_000)
    texts = list(documents(48, seed=4)) * 3
    wanted = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        found = []
        for ids in threads.map(l1.encode, texts):
            l1.settle()
            found.append(ids)
    assert found == wanted


def test_the_compiled_cache_reports_its_figures() -> None:
    l1 = l1_of(load(bundle_of({"tokenizer.json": llama2_json()})), 1 << 20)
    for _ in range(2):
        l1.encode("<s>" + "hello world " * 20 + "</s>")
        l1.settle()
    figures = l1.figures()
    assert figures.hits >= 1
    assert figures.hit_bytes >= 200
    assert figures.misses >= 1
    assert 0 < figures.bytes <= 1 << 20
    assert small("llama2").encoder == "fastokens"
