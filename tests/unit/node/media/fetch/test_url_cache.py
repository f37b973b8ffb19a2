"""Files that may be used again, and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.media.fetch.url_cache import ENTRIES_MAX, FRESH_MAX_S, UrlCache, fresh_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"cache-control": "public"}, 0),
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": "Public, Max-Age=60"}, 60),
        ({"cache-control": 'max-age="60"'}, 60),
        ({"cache-control": "max-age=60, s-maxage=10"}, 10),
        ({"cache-control": "max-age=60", "age": "50"}, 10),
        ({"cache-control": "max-age=60", "age": "70"}, 0),
        ({"cache-control": "max-age=60", "age": "soon"}, 0),
        ({"cache-control": "max-age=9999999"}, FRESH_MAX_S),
        ({"cache-control": "max-age=99999999999999999999"}, FRESH_MAX_S),
        ({"cache-control": "max-age=60, private"}, 0),
        ({"cache-control": 'max-age=60, private="set-cookie"'}, 0),
        ({"cache-control": "no-store, max-age=60"}, 0),
        ({"cache-control": "no-cache"}, 0),
        ({"cache-control": "max-age=60", "vary": "Accept-Encoding"}, 60),
        ({"cache-control": "max-age=60", "vary": "accept-encoding, origin"}, 0),
        ({"cache-control": "max-age=60", "vary": "*"}, 0),
        ({"cache-control": "max-age=-5"}, 0),
        ({"cache-control": "max-age=x"}, 0),
    ],
)
def test_an_origin_says_how_long(headers: dict[str, str], seconds: float) -> None:
    assert fresh_s(headers) == seconds


@given(st.text(max_size=60), st.text(max_size=10))
def test_any_header_is_some_time_or_none(said: str, age: str) -> None:
    assert 0 <= fresh_s({"cache-control": said, "age": age}) <= FRESH_MAX_S


def test_a_file_is_there_until_its_time_is_over() -> None:
    cache = UrlCache()
    cache.keep("u", b"abc", until_s=10.0, bytes_max=100)
    assert cache.find("u", 9.9) == b"abc"
    assert cache.find("v", 9.9) is None
    assert cache.find("u", 10.0) is None
    assert cache.size == 0


def test_the_one_that_was_not_asked_for_goes_first() -> None:
    cache = UrlCache()
    for url in "abcd":
        cache.keep(url, b"x" * 10, until_s=9.0, bytes_max=40)
    assert cache.find("a", 0.0)
    cache.keep("e", b"x" * 10, until_s=9.0, bytes_max=40)
    assert [url for url in "abcde" if cache.find(url, 0.0)] == list("acde")
    cache.keep("f", b"x" * 5, until_s=9.0, bytes_max=20)
    assert cache.size <= 20


def test_a_large_file_is_not_kept_and_leaves_the_others() -> None:
    cache = UrlCache()
    cache.keep("a", b"x" * 10, until_s=9.0, bytes_max=40)
    cache.keep("b", b"x" * 11, until_s=9.0, bytes_max=40)
    assert (cache.find("a", 0.0), cache.find("b", 0.0)) == (b"x" * 10, None)


def test_there_are_so_many_files_at_most() -> None:
    cache = UrlCache()
    for at in range(ENTRIES_MAX + 5):
        cache.keep(str(at), b"x", until_s=9.0, bytes_max=1 << 20)
    assert cache.size == ENTRIES_MAX
    assert cache.find("4", 0.0) is None


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.binary(max_size=12), st.integers(0, 20)), max_size=30
    )
)
def test_it_never_holds_more_than_it_may_nor_another_file(
    said: list[tuple[str, bytes, int]],
) -> None:
    cache, last = UrlCache(), dict[str, bytes]()
    for now, (url, content, until) in enumerate(said):
        cache.keep(url, content, until_s=float(until), bytes_max=24)
        last[url] = content
        assert cache.size <= 24
        for asked in "abc":
            found = cache.find(asked, float(now))
            assert found is None or found == last[asked]


def test_what_is_kept_for_one_tenant_is_not_found_for_another() -> None:
    cache = UrlCache()
    cache.keep("https://x/a", b"one", until_s=10, bytes_max=100, tenant="acme")
    assert cache.find("https://x/a", 0) is None
    assert cache.find("https://x/a", 0, tenant="zoo") is None
    assert cache.find("https://x/a", 0, tenant="acme") == b"one"
    # Names and URLs that are the same text together are not the same.
    assert cache.find("mehttps://x/a", 0, tenant="ac") is None
