"""Patches are found by their digest while they are among the last used, within a bound of bytes."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from smg_node.media.family import PicturePlan
from smg_node.media.pixels.arena import Arenas, scratch
from smg_node.media.pixels.identity import picture_digest
from smg_node.media.pixels.patch_cache import ENTRY_OVERHEAD, PatchCache

PLAN = PicturePlan(width=9, height=9, columns=8, rows=8, tokens=1, shape=(4, 12), grid=(1, 2, 2))
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def patches(level: int, size: int = 1000) -> Pixels:
    return np.full(size, level, dtype=np.uint8)


def level(cache: PatchCache, digest: str) -> int | None:
    found = cache.get(digest)
    return None if found is None else int(found.patches[0])


def test_the_least_recently_used_goes_first() -> None:
    cache = PatchCache(3 * (1000 + ENTRY_OVERHEAD))
    for number in range(3):
        cache.put(f"d{number}", PLAN, patches(number))
    assert level(cache, "d0") == 0
    cache.put("d3", PLAN, patches(3))
    assert [level(cache, f"d{number}") for number in range(4)] == [0, None, 2, 3]
    counts = cache.counts()
    assert (counts.hits, counts.misses, counts.evictions, counts.entries) == (4, 1, 1, 3)
    assert counts.held_bytes == 3 * (1000 + ENTRY_OVERHEAD)


def test_with_no_room_nothing_is_kept_or_counted() -> None:
    cache = PatchCache(0)
    assert cache.put("d", PLAN, patches(1)).plan is PLAN
    assert cache.get("d") is None
    assert cache.counts() == (0, 0, 0, 0, 0)


def test_what_is_larger_than_the_bound_pushes_nothing_out() -> None:
    cache = PatchCache(5000)
    cache.put("small", PLAN, patches(1))
    cache.put("large", PLAN, patches(2, 6000))
    assert level(cache, "small") == 1
    assert level(cache, "large") is None


def test_a_smaller_bound_holds_at_once() -> None:
    cache = PatchCache(10_000)
    for number in range(4):
        cache.put(f"d{number}", PLAN, patches(number))
    cache.resize(2 * (1000 + ENTRY_OVERHEAD))
    assert [level(cache, f"d{number}") for number in range(4)] == [None, None, 2, 3]
    cache.resize(0)
    assert cache.counts().held_bytes == 0


def test_what_is_kept_cannot_be_written_to_nor_is_it_the_next_pictures_memory() -> None:
    cache, arenas = PatchCache(100_000), Arenas()
    for number in (1, 2):
        with arenas.working(0.0):
            memory = scratch((1000,))
            memory[:] = number
            kept = cache.put(f"d{number}", PLAN, memory)
            with pytest.raises(ValueError, match="read-only"):
                kept.patches[0] = 9
    with arenas.working(0.0):
        scratch((1000,))[:] = 7
    assert [level(cache, "d1"), level(cache, "d2")] == [1, 2]
    whole = patches(3)
    assert cache.put("d3", PLAN, whole.reshape(10, 100)).patches.base is whole


@given(some.lists(some.tuples(some.integers(0, 6), some.integers(1, 4000), some.booleans())))
def test_it_never_holds_more_than_its_bound_nor_anything_wrong(
    steps: list[tuple[int, int, bool]],
) -> None:
    cache, bound, sizes = PatchCache(8000), 8000, dict[str, int]()
    for number, size, put in steps:
        digest = f"d{number}"
        if put:
            cache.put(digest, PLAN, patches(number, size))
            if size + ENTRY_OVERHEAD <= bound:
                sizes[digest] = size
        elif (found := cache.get(digest)) is not None:
            assert found.patches.size == sizes[digest]
            assert int(found.patches[0]) == number
        assert cache.counts().held_bytes <= bound
    assert cache.counts().entries <= 7


def test_threads_may_use_it_at_once() -> None:
    cache = PatchCache(20 * (1000 + ENTRY_OVERHEAD))
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for number in rng.integers(0, 40, 400).tolist():
            found = level(cache, f"d{number}")
            if found is None:
                cache.put(f"d{number}", PLAN, patches(number))
            elif found != number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = cache.counts()
    assert wrong == []
    assert counts.hits + counts.misses == 1600
    assert (
        counts.held_bytes
        == counts.entries * (1000 + ENTRY_OVERHEAD)
        <= 20 * (1000 + ENTRY_OVERHEAD)
    )


def test_a_digest_tells_apart_all_that_the_values_depend_on() -> None:
    base: dict[str, Any] = {"fingerprint": "f", "tenant": "t", "detail": "low", "uuid": "u"}
    found = {picture_digest(b"picture", **base), picture_digest(b"picturE", **base)}
    for name in base:
        found.add(picture_digest(b"picture", **{**base, name: "other"}))
        found.add(picture_digest(b"picture", **{**base, name: ""}))
    # Nothing of one part can be said by another.
    found.add(picture_digest(b"picture", fingerprint="ft", detail="low", uuid="u"))
    found.add(picture_digest(b"upicture", fingerprint="f", tenant="t", detail="low"))
    found |= {picture_digest(b"picture", area_max=area, **base) for area in (1, 11)}
    found.add(picture_digest(b"picture", **{**base, "detail": ""}, area_max=1))
    assert len(found) == 15
    assert all(len(one) == 64 and int(one, 16) >= 0 for one in found)
    assert picture_digest(b"picture", **base) in found


def test_a_digest_is_the_same_tomorrow() -> None:
    said = "185ae4110550bd376b66c8bfab2fe76e1f07924e050b9935cea19f9ca37efc46"
    assert picture_digest(b"", fingerprint="qwen3_vl/1") == said
