"""L0: what it finds, and that it stays within its bounds."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.tokens.caches.exact_cache import ENTRY_BYTES, Encoded, ExactCache, ExactLimits, Key
from support.tools.example_counts import example_count

ROOMY = ExactLimits(entries=100, bytes=1 << 20)


def key(cache: ExactCache, text: str, digest: str = "d", special: bool = False) -> Key:
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


def put(cache: ExactCache, *texts: str) -> None:
    for text in texts:
        cache.put(cache.key(text, digest="d", add_special_tokens=False), encoded(text))


def encoded(text: str) -> Encoded:
    return Encoded(array("I", map(ord, text)))


def finds(cache: ExactCache, text: str) -> bool:
    found = cache.get(cache.key(text, digest="d", add_special_tokens=False))
    assert found is None or found == encoded(text)
    return found is not None


def test_what_was_not_asked_for_longest_goes_first() -> None:
    cache = ExactCache(ExactLimits(entries=3, bytes=1 << 20), seed=1)
    for text in "abc":
        put(cache, text)
        assert finds(cache, text)
    assert finds(cache, "a")
    put(cache, "d")
    assert [finds(cache, text) for text in "abcd"] == [True, False, True, True]
    assert cache.evictions == 1


def test_what_comes_once_pushes_out_nothing_that_was_asked_for_again() -> None:
    cache = ExactCache(ExactLimits(entries=32, bytes=1 << 20), seed=1)
    wanted = [f"wanted {number}" for number in range(30)]
    for text in wanted:
        put(cache, text)
        assert finds(cache, text)
    put(cache, *(f"once {number}" for number in range(1_000)))
    assert all(finds(cache, text) for text in wanted)
    assert len(cache) == 32


def test_what_comes_once_takes_a_sixteenth_of_the_entries_and_of_the_bytes() -> None:
    few = ExactCache(ExactLimits(entries=160, bytes=1 << 20), seed=1)
    put(few, *(f"once {number}" for number in range(1_000)))
    assert len(few) == 10
    assert few.evictions == 990
    small = ExactCache(ExactLimits(entries=16_000, bytes=1 << 20), seed=1)
    put(small, *("x" * (1_000 + number) for number in range(100)))
    assert (1 << 20) / 16 - 10_000 < small.bytes <= (1 << 20) / 16


def test_what_comes_again_after_it_had_to_leave_is_kept_among_the_proven() -> None:
    cache = ExactCache(ExactLimits(entries=160, bytes=1 << 20), seed=1)
    texts = [f"text {number}" for number in range(100)]
    put(cache, *texts)
    assert not finds(cache, texts[0])
    put(cache, *texts)
    put(cache, *(f"once {number}" for number in range(1_000)))
    # Two of a hundred may have shared a place in the table of who left.
    assert sum(finds(cache, text) for text in texts) > 90


def test_the_same_text_encoded_twice_at_a_time_counts_as_asked_for_again() -> None:
    cache = ExactCache(ExactLimits(entries=160, bytes=1 << 20), seed=1)
    put(cache, "twice", "twice", *(f"once {number}" for number in range(1_000)))
    assert finds(cache, "twice")


def test_a_large_newcomer_is_kept_for_as_long_as_it_is_the_last() -> None:
    cache = ExactCache(ExactLimits(entries=160, bytes=16 * ENTRY_BYTES), seed=1)
    large = "x" * (3 * ENTRY_BYTES)
    put(cache, large)
    assert finds(ExactCache(ROOMY, seed=1), large) is False
    assert len(cache) == 1
    put(cache, "small")
    assert not finds(cache, large)
    assert finds(cache, "small")


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


@settings(deadline=None, max_examples=example_count(150))
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


@settings(deadline=None, max_examples=example_count(150))
@given(
    steps=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 300)), max_size=80),
    entries=st.integers(0, 64),
    size=st.one_of(st.integers(0, 20_000), st.just(1 << 20)),
)
def test_admitting_is_putting_what_was_not_found(
    steps: list[tuple[int, int]], entries: int, size: int
) -> None:
    quick, plain = (ExactCache(ExactLimits(entries, size), seed=7) for _ in range(2))
    for text, length in steps:
        name, found = key(quick, str(text)), Encoded(array("I", [text] * length))
        if quick.get(name) is None:
            quick.admit(name, found)
        if plain.get(name) is None:
            plain.put(name, found)
        assert (len(quick), quick.bytes, quick.evictions) == (
            *(len(plain), plain.bytes, plain.evictions),
        )
        assert 0 <= quick.bytes <= size
    for text in range(31):
        name = key(quick, str(text))
        assert quick.get(name) == plain.get(name)
