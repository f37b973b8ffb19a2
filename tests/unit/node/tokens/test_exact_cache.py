"""L0: what it finds, and that it stays within its bounds."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.tokens.exact_cache import ENTRY_BYTES, Encoded, ExactCache, ExactLimits

ROOMY = ExactLimits(entries=100, bytes=1 << 20)


def key(
    cache: ExactCache, text: str, digest: str = "d", special: bool = False
) -> "tuple[object, ...]":
    return cache.key(text, digest=digest, add_special_tokens=special)


def test_a_text_is_found_again_and_its_ids_are_not_copied() -> None:
    cache = ExactCache(ROOMY, seed=1)
    ids = array("I", [1, 2, 3])
    name = cache.key("hello", digest="d", add_special_tokens=False)
    assert cache.get(name) is None
    cache.put(name, Encoded(ids, b"packed"))
    found = cache.get(name)
    assert found is not None
    assert found.ids is ids
    assert len(cache) == 1
    assert cache.bytes == ENTRY_BYTES + 12 + 6


def test_text_vocabulary_and_special_tokens_make_different_entries() -> None:
    cache = ExactCache(ROOMY, seed=1)
    names = {
        key(cache, "hello"),
        key(cache, "hello "),
        key(cache, "hello", digest="e"),
        key(cache, "hello", special=True),
        key(cache, ""),
        key(cache, "\x00"),
    }
    assert len(names) == 6
    assert key(cache, "hello") == key(cache, "hel" + "lo")


def test_another_seed_makes_other_keys() -> None:
    assert key(ExactCache(ROOMY, seed=1), "x") != key(ExactCache(ROOMY, seed=2), "x")
    assert key(ExactCache(ROOMY, seed=1), "x") == key(ExactCache(ROOMY, seed=1 + (1 << 64)), "x")


def test_a_text_that_is_not_whole_unicode_is_refused() -> None:
    with pytest.raises(SmgError, match="lone surrogate at character 0"):
        key(ExactCache(ROOMY, seed=1), "\ud800")


def test_what_was_not_asked_for_longest_goes_first() -> None:
    cache = ExactCache(ExactLimits(entries=2, bytes=1 << 20), seed=1)
    names = [cache.key(text, digest="d", add_special_tokens=False) for text in "abc"]
    cache.put(names[0], Encoded(array("I", [0])))
    cache.put(names[1], Encoded(array("I", [1])))
    cache.get(names[0])
    cache.put(names[2], Encoded(array("I", [2])))
    assert [cache.get(name) is not None for name in names] == [True, False, True]
    assert cache.evictions == 1


def test_one_text_larger_than_the_cache_pushes_nothing_out() -> None:
    cache = ExactCache(ExactLimits(entries=9, bytes=2 * ENTRY_BYTES), seed=1)
    small = cache.key("small", digest="d", add_special_tokens=False)
    large = cache.key("large", digest="d", add_special_tokens=False)
    cache.put(small, Encoded(array("I", [1])))
    cache.put(large, Encoded(array("I", range(ENTRY_BYTES))))
    assert cache.get(small) is not None
    assert cache.get(large) is None
    assert cache.evictions == 0


@pytest.mark.parametrize("limits", [ExactLimits(0, 1 << 20), ExactLimits(10, 0)])
def test_a_limit_of_zero_keeps_nothing(limits: ExactLimits) -> None:
    cache = ExactCache(limits, seed=1)
    name = cache.key("a", digest="d", add_special_tokens=False)
    cache.put(name, Encoded(array("I", [1])))
    assert len(cache) == 0
    assert cache.bytes == 0


@settings(deadline=None, max_examples=150)
@given(
    steps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 300), st.booleans()), max_size=60),
    entries=st.integers(1, 6),
    size=st.integers(0, 4000),
)
def test_it_is_a_bounded_map_whatever_comes(
    steps: list[tuple[int, int, bool]], entries: int, size: int
) -> None:
    cache = ExactCache(ExactLimits(entries, size), seed=7)
    last: dict[int, int] = {}
    for text, length, put in steps:
        name = cache.key(str(text), digest="d", add_special_tokens=False)
        if put:
            cache.put(name, Encoded(array("I", [length] * length)))
            last[text] = length
        found = cache.get(name)
        if found is not None:
            # Never the ids of another text, and never older ones than were put last, unless the
            # newer ones alone were over the limit.
            assert set(found.ids) <= {len(found.ids)}
            assert len(found.ids) == last[text] or ENTRY_BYTES + 4 * last[text] > size
        assert len(cache) <= entries
        assert 0 <= cache.bytes <= size
    kept = [
        cache.get(cache.key(str(text), digest="d", add_special_tokens=False)) for text in range(10)
    ]
    assert cache.bytes == sum(ENTRY_BYTES + 4 * len(one.ids) for one in kept if one is not None)
