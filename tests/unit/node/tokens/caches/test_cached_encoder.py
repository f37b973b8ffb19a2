"""The encoder with its caches in front, as the pipeline uses it."""

from array import array

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import TokenIds
from smg_node.native.token_ids import pack_ids
from smg_node.tokens.caches import cached_encoder
from smg_node.tokens.caches.cached_encoder import CachedEncoder
from smg_node.tokens.caches.exact_cache import Encoded, ExactCache, ExactLimits
from smg_node.tokens.caches.prefix_cache import prefix_cache
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from support.models.vocabulary import qwen, qwen_slow, small


def l0() -> ExactCache:
    return ExactCache(ExactLimits(entries=10, bytes=1 << 20), seed=9)


class Counting:
    """A tokenizer that counts how often it is asked."""

    def __init__(self, inner: LoadedTokenizer) -> None:
        self.inner = inner
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        self.asked += 1
        return self.inner.encode(text, add_special_tokens=add_special_tokens)


def counting() -> Counting:
    return Counting(small("llama2"))


def test_the_second_time_nothing_is_encoded() -> None:
    tokenizer = counting()
    encoder = CachedEncoder(tokenizer, l0())  # type: ignore[arg-type]  # by __getattr__
    first = encoder.encode("hello", add_special_tokens=True)
    assert encoder.encode("hello", add_special_tokens=True).ids is first.ids
    assert first.ids == small("llama2").encode("hello", add_special_tokens=True)
    assert tokenizer.asked == 1
    assert (encoder.l0_hits, encoder.l0_misses) == (1, 1)
    assert encoder.encode("hello", add_special_tokens=False).ids == first.ids[1:]
    assert encoder.l0_bytes > 0
    assert encoder.l0_evictions == 0


def test_the_loop_looks_up_a_thread_encodes_and_the_loop_stores() -> None:
    tokenizer = counting()
    encoder = CachedEncoder(tokenizer, l0())  # type: ignore[arg-type]  # by __getattr__
    key = encoder.key("hello", add_special_tokens=False)
    assert encoder.lookup(key) is None
    encoded = encoder.encode_missing("hello", add_special_tokens=False)
    assert encoder.lookup(key) is None
    encoder.store(key, encoded)
    found = encoder.lookup(key)
    assert found is not None
    assert found.ids is encoded.ids
    assert (encoder.l0_hits, encoder.l0_misses) == (1, 1)


def test_models_that_share_l0_do_not_share_ids() -> None:
    shared = l0()
    text = "hello model"
    one, other = CachedEncoder(small("llama2"), shared), CachedEncoder(qwen(), shared)
    for encoder, tokenizer in ((one, small("llama2")), (other, qwen())):
        for _ in range(2):
            ids = encoder.encode(text, add_special_tokens=False).ids
            assert ids == tokenizer.encode(text, add_special_tokens=False)
    assert len(shared) == 2


def test_without_caches_it_is_the_tokenizer() -> None:
    encoder = CachedEncoder(small("llama2"))
    for _ in range(2):
        ids = encoder.encode("hello", add_special_tokens=True).ids
        assert ids == small("llama2").encode("hello", add_special_tokens=True)
    assert (encoder.l0_hits, encoder.l0_misses, encoder.l1_hits) == (0, 2, 0)
    assert (encoder.l0_bytes, encoder.l1_bytes, encoder.l1_misses) == (0, 0, 0)
    assert (encoder.l0_evictions, encoder.l1_evictions, encoder.l1_hit_bytes) == (0, 0, 0)


def test_l1_serves_prompts_without_special_tokens_around_them() -> None:
    l1, _ = prefix_cache(qwen_slow(), max_bytes=1 << 20, seed=1)
    encoder = CachedEncoder(qwen_slow(), l0(), l1)
    encoder.encode("<|im_start|>one<|im_end|>", add_special_tokens=False)
    encoder.encode("<|im_start|>one<|im_end|>two", add_special_tokens=False)
    assert (encoder.l1_hits, encoder.l1_misses) == (1, 2)
    assert encoder.l1_hit_bytes == 3
    assert encoder.l1_bytes > 0
    encoder.encode("<|im_start|>one", add_special_tokens=True)
    assert encoder.l1_hits == 1


def test_a_text_is_long_where_a_thread_would_be_quicker() -> None:
    fast = CachedEncoder(small("llama2"), long_above_bytes=16)
    assert not fast.long("")
    assert not fast.long("x" * 16)
    assert fast.long("x" * 17)
    assert not fast.long("é" * 8)
    assert fast.long("é" * 9)
    assert fast.long("中" * 6)
    assert not fast.long("😀" * 4)
    assert fast.long("\ud800" * 17)


def test_a_slow_encoder_makes_texts_long_sooner() -> None:
    text = "x" * 4000
    assert not CachedEncoder(qwen()).long(text)
    assert CachedEncoder(qwen_slow()).long(text)


def test_a_text_that_is_not_whole_unicode_is_refused_with_and_without_caches() -> None:
    for encoder in (CachedEncoder(small("llama2")), CachedEncoder(small("llama2"), l0())):
        with pytest.raises(SmgError, match="lone surrogate"):
            encoder.encode("\udc00", add_special_tokens=False)


def test_an_empty_text_has_no_ids() -> None:
    encoder = CachedEncoder(qwen(), l0())
    assert encoder.encode("", add_special_tokens=False).ids == array("I")


def test_what_comes_again_is_packed_once_and_its_bytes_are_counted() -> None:
    cache = l0()
    encoder = CachedEncoder(qwen(), cache)
    key = encoder.key("hello there", add_special_tokens=False)
    ids = qwen().encode("hello there", add_special_tokens=False)
    encoder.store(key, Encoded(ids))
    before = cache.bytes
    found = encoder.lookup(key)
    assert found == Encoded(ids, pack_ids(ids))
    assert encoder.lookup(key) is found
    assert cache.bytes == before + len(pack_ids(ids))


@pytest.mark.parametrize(("size", "packs"), [(16_384, True), (16_385, False)])
def test_only_so_many_ids_are_packed_on_the_loop(size: int, packs: bool) -> None:
    encoder = CachedEncoder(qwen(), ExactCache(ExactLimits(entries=10, bytes=1 << 24), seed=9))
    key = encoder.key("long", add_special_tokens=False)
    ids = array("I", range(size))
    encoder.store(key, Encoded(ids))
    assert encoder.lookup(key) == Encoded(ids, pack_ids(ids) if packs else b"")


def test_ids_packed_in_steps_are_those_packed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_encoder, "COMPILED", True)
    monkeypatch.setattr(cached_encoder, "_PACKED_AT_ONCE", 3)
    text = "hello there, who are you and where from"
    encoded = CachedEncoder(qwen()).encode_missing(text, add_special_tokens=False)
    assert len(encoded.ids) > 6
    assert encoded.packed == pack_ids(encoded.ids)
