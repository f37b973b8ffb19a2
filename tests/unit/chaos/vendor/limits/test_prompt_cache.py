"""The prompt cache: what is read and written, for how long, and from which length on."""

import pytest

from smg_chaos.vendor.answers.conversation import Segment
from smg_chaos.vendor.limits.prompt_cache import LOOK_BACK, CacheUse, PromptCache

LEAST = 100


def piece(name: str, tokens: int = 100, ttl_s: int | None = None) -> Segment:
    return Segment(name.encode(), tokens, ttl_s)


def test_a_marked_beginning_is_written_once_and_read_while_it_lives() -> None:
    cache = PromptCache()
    first = [piece("system", 100, 300), piece("a")]
    assert cache.marked("s", first, LEAST, 0.0) == CacheUse(0, 100)
    assert cache.marked("s", [*first[:1], piece("b")], LEAST, 299.0) == CacheUse(100)
    # A hit begins its time anew.
    assert cache.marked("s", first, LEAST, 598.0) == CacheUse(100)
    assert cache.marked("s", first, LEAST, 899.0) == CacheUse(0, 100)
    assert cache.marked("another", first, LEAST, 899.0) == CacheUse(0, 100)


def test_a_mark_that_moves_on_reads_what_lies_before_it() -> None:
    cache = PromptCache()
    turns = [piece(str(at)) for at in range(6)]
    assert cache.marked("s", [*turns[:2], piece("2", 100, 300)], LEAST, 0.0) == CacheUse(0, 300)
    longer = [*turns[:4], piece("4", 100, 300)]
    assert cache.marked("s", longer, LEAST, 1.0) == CacheUse(300, 200)


def test_it_looks_back_over_twenty_pieces_only() -> None:
    for between, use in ((LOOK_BACK - 1, CacheUse(100, 1_900)), (LOOK_BACK, CacheUse(0, 2_100))):
        cache = PromptCache()
        start = piece("start", 100, 300)
        cache.marked("s", [start], LEAST, 0.0)
        rest = [piece(str(at)) for at in range(between - 1)]
        long = [piece("start"), *rest, piece("end", 100, 300)]
        assert cache.marked("s", long, LEAST, 1.0) == use


def test_an_hour_is_told_apart_and_lives_longer() -> None:
    cache = PromptCache()
    both = [piece("tools", 100, 3_600), piece("system", 50, 300)]
    assert cache.marked("s", both, LEAST, 0.0) == CacheUse(0, 150, 100)
    assert cache.marked("s", both, LEAST, 301.0) == CacheUse(100, 50)


@pytest.mark.parametrize(("tokens", "use"), [(99, CacheUse()), (100, CacheUse(0, 100))])
def test_below_the_least_length_nothing_is_cached(tokens: int, use: CacheUse) -> None:
    cache = PromptCache()
    assert cache.marked("s", [piece("a", tokens, 300)], LEAST, 0.0) == use
    assert len(cache) == (1 if use.written else 0)


def test_without_a_mark_nothing_is_cached() -> None:
    assert PromptCache().marked("s", [piece("a", 5_000)], LEAST, 0.0) == CacheUse()


def test_blocks_are_cached_by_themselves_where_the_vendor_does_so() -> None:
    cache = PromptCache()
    text = b"x" * 512 * 9
    first = [Segment(text, 1_152), Segment(b"question", 2)]
    assert cache.automatic("s", first, 1_024, 60.0, 0.0) == CacheUse(0, 1_152)
    other = [Segment(text, 1_152), Segment(b"another", 2)]
    assert cache.automatic("s", other, 1_024, 60.0, 1.0) == CacheUse(1_152)
    assert cache.automatic("s", first, 1_024, 60.0, 100.0) == CacheUse(0, 1_152)
    short = [Segment(b"x" * 512 * 7, 896)]
    assert cache.automatic("s", short, 1_024, 60.0, 0.0) == CacheUse()


def test_two_prompts_that_differ_early_share_nothing() -> None:
    cache = PromptCache()
    cache.automatic("s", [Segment(b"a" + b"x" * 8_000, 2_000)], 1_024, 60.0, 0.0)
    other = [Segment(b"b" + b"x" * 8_000, 2_000)]
    assert cache.automatic("s", other, 1_024, 60.0, 0.0).read == 0
