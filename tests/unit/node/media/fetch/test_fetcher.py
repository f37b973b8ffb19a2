"""Fetches from a real origin on this machine, by names that only the test's own look-up knows."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from smg_node.config.sections.media import Media
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import MediaKind, MediaPart
from smg_node.media.fetch.checked_resolver import CheckedResolver, ForbiddenAddressError
from smg_node.media.fetch.fetch_rules import FetchMode, FetchRules
from smg_node.media.fetch.fetch_settings import fetch_limits, fetch_rules
from smg_node.media.fetch.fetcher import Enough, Fetcher, FetchLimits
from support.media.odd_origin import LASTING, PICTURE, OddOrigin, odd_origin

PUBLIC = "93.184.216.34"
PATIENT = FetchLimits(bytes_max=100_000, picture_s=30.0, clip_s=30.0)
SHORT = FetchLimits(bytes_max=100_000, picture_s=0.5, clip_s=1.0)


def free(_: int) -> None:
    """Charge nothing."""


def untrusting() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.fixture
async def origin() -> AsyncIterator[OddOrigin]:
    async with odd_origin() as running:
        yield running


Fetch = Callable[..., Awaitable[list[bytes]]]


@pytest.fixture
async def fetch(origin: OddOrigin) -> AsyncIterator[Fetch]:
    opened: list[Fetcher] = []

    async def fetch(
        *urls: str,
        kind: MediaKind = "image",
        mode: FetchMode = "public",
        private: tuple[str, ...] = ("127.0.0.1/32",),
        limits: FetchLimits = PATIENT,
        charge: Callable[[int], None] = free,
        trust: Callable[[], ssl.SSLContext] = untrusting,
        enough: Enough | None = None,
    ) -> list[bytes]:
        rules = FetchRules(mode, (f"*.test:{origin.port}",), private)
        fetcher = Fetcher(lambda: rules, lambda: limits, lookup=origin.lookup, trust=trust)
        opened.append(fetcher)
        parts = [MediaPart(kind, url, f"messages[0].content[{at}]") for at, url in enumerate(urls)]
        return await fetcher.fetch(parts, charge, enough)

    yield fetch
    for fetcher in opened:
        await fetcher.close()


async def refused(waiting: Awaitable[Any], code: str, at: int = 0) -> str:
    begun = time.monotonic()
    with pytest.raises(SmgError) as raised:
        await waiting
    # Far from the minute that a slow origin would take.
    assert time.monotonic() - begun < 30
    error = raised.value
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert (error.code, error.where) == (code, f"messages[0].content[{at}]")
    assert "127.0.0.1" not in error.message
    assert "10.0.0.1" not in error.message
    assert "SECRET" not in error.message
    return error.message


async def test_pictures_come_in_their_order_and_each_url_once(
    origin: OddOrigin, fetch: Fetch
) -> None:
    urls = [origin.url("picture?a"), origin.url("packed"), origin.url("picture?a")]
    assert await fetch(*urls) == [PICTURE] * 3
    assert sorted(origin.asked) == ["packed", "picture?a"]


async def test_nothing_of_ours_goes_along(
    origin: OddOrigin, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    await fetch(origin.url("picture"), origin.url("picture?again"))
    for headers in origin.headers:
        assert set(headers) <= {"host", "user-agent", "accept", "accept-encoding"}
        assert headers["host"] == f"pics.test:{origin.port}"
        assert headers["accept-encoding"] == "identity"


async def test_what_is_fetched_is_charged(origin: OddOrigin, fetch: Fetch) -> None:
    charged: list[int] = []
    await fetch(origin.url("picture"), origin.url("packed"), charge=charged.append)
    assert sum(charged) == 2 * len(PICTURE)


async def test_a_full_budget_ends_the_fetch(origin: OddOrigin, fetch: Fetch) -> None:
    def full(_: int) -> None:
        raise SmgError(ErrorKind.RATE_LIMITED, "full", retry_after_s=1.0)

    with pytest.raises(SmgError) as raised:
        await fetch(origin.url("picture"), origin.url("never"), charge=full)
    assert raised.value.kind is ErrorKind.RATE_LIMITED


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing", "answers with status 404"),
        ("empty", "it is empty"),
        ("liar", "broke off"),
        ("hop/4", "redirects more than 3 times"),
    ],
)
async def test_origins_that_fail(origin: OddOrigin, fetch: Fetch, path: str, words: str) -> None:
    assert words in await refused(fetch(origin.url(path)), "media_unavailable")


@pytest.mark.parametrize("path", ["never", "drip"])
async def test_slow_origins_are_left(origin: OddOrigin, fetch: Fetch, path: str) -> None:
    message = await refused(fetch(origin.url(path), limits=SHORT), "media_unavailable")
    assert message == "its origin took more than 0.5 s"


@pytest.mark.parametrize("path", ["large", "endless", "bomb"])
async def test_what_is_too_large_stops_at_the_limit(
    origin: OddOrigin, fetch: Fetch, path: str
) -> None:
    kept: list[int] = []
    message = await refused(fetch(origin.url(path), charge=kept.append), "media_too_large")
    assert "at most 100000 bytes" in message
    assert "media.image_bytes_max" in message
    assert sum(kept) <= 100_000


async def test_clips_have_more_time(origin: OddOrigin, fetch: Fetch) -> None:
    message = await refused(
        fetch(origin.url("never"), kind="video", limits=SHORT), "media_unavailable"
    )
    assert "took more than 1 s" in message


async def test_redirects_are_followed_by_hand(origin: OddOrigin, fetch: Fetch) -> None:
    assert await fetch(origin.url("hop/3")) == [PICTURE]
    assert origin.asked == ["hop/3", "hop/2", "hop/1", "picture"]


@pytest.mark.parametrize(
    "target", ["http://127.0.0.2/", "http://10.0.0.1/x", "http://inner.test/", "http://0x7f.1/"]
)
async def test_a_redirect_to_a_private_place_is_not_followed(
    origin: OddOrigin, fetch: Fetch, target: str
) -> None:
    origin.addresses["inner.test"] = ["10.0.0.1"]
    await refused(fetch(origin.url(f"to?where={target}")), "media_forbidden")
    assert len(origin.asked) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "127.1", "0x7f000001"])
async def test_no_connection_is_made_to_a_private_address_of_a_url(
    origin: OddOrigin, fetch: Fetch, host: str
) -> None:
    url = origin.url("picture", host)
    await refused(fetch(url, private=()), "media_forbidden")
    assert (origin.asked, origin.lookups) == ([], [])


@pytest.mark.parametrize("addresses", [["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1", PUBLIC]])
async def test_no_connection_is_made_where_one_address_of_a_name_is_private(
    origin: OddOrigin, fetch: Fetch, addresses: list[str]
) -> None:
    origin.addresses["pics.test"] = addresses
    message = await refused(fetch(origin.url("picture"), private=()), "media_forbidden")
    assert message == "its host is not on the public network"
    assert (origin.asked, origin.lookups) == ([], ["pics.test"])


async def test_a_name_that_is_allowed_first_and_private_then_is_asked_once(
    origin: OddOrigin, fetch: Fetch
) -> None:
    class Turning(list[str]):
        def __iter__(self) -> Any:
            origin.addresses["pics.test"] = ["10.0.0.1"]
            return super().__iter__()

    origin.addresses["pics.test"] = Turning(["127.0.0.1"])
    away = origin.url("picture", "pics.test.")
    await refused(fetch(origin.url(f"to?where={away}")), "media_forbidden")
    assert len(origin.asked) == 1


async def test_a_name_without_an_address_is_unavailable(origin: OddOrigin, fetch: Fetch) -> None:
    message = await refused(fetch(origin.url("picture", "gone.test")), "media_unavailable")
    assert message == "its host has no address"


async def test_an_origin_that_is_down_is_unavailable(origin: OddOrigin, fetch: Fetch) -> None:
    origin.addresses["down.test"] = ["127.0.0.1"]
    url = "http://down.test:80/"
    assert "cannot be reached" in await refused(fetch(url), "media_unavailable")


async def test_an_origin_without_tls_is_unavailable(origin: OddOrigin, fetch: Fetch) -> None:
    url = f"https://pics.test:{origin.port}/picture"
    assert "TLS" in await refused(fetch(url), "media_unavailable")


async def test_all_urls_are_checked_before_one_is_asked(origin: OddOrigin, fetch: Fetch) -> None:
    urls = [origin.url("picture"), "http://10.0.0.1/"]
    await refused(fetch(*urls), "media_forbidden", at=1)
    assert origin.asked == []


async def test_a_part_that_fails_ends_the_others(origin: OddOrigin, fetch: Fetch) -> None:
    urls = [origin.url("never"), origin.url("missing")]
    await refused(fetch(*urls), "media_unavailable", at=1)
    assert origin.open == 0 or await _ends(origin)


async def test_who_leaves_leaves_nothing_running(origin: OddOrigin, fetch: Fetch) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await fetch(origin.url("never"))
    assert await _ends(origin)


async def _ends(origin: OddOrigin) -> bool:
    for _ in range(200):
        if origin.open == 0:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_so_many_are_asked_at_a_time_and_so_many_of_a_host(
    origin: OddOrigin, fetch: Fetch
) -> None:
    for at in range(6):
        origin.addresses[f"h{at}.test"] = ["127.0.0.1"]
    one_host = [origin.url(f"slowly?{at}") for at in range(12)]
    assert await fetch(*one_host) == [PICTURE] * 12
    assert origin.most == 4
    origin.most = 0
    many = [origin.url(f"slowly?{at}", f"h{at % 6}.test") for at in range(36)]
    assert await fetch(*many) == [PICTURE] * 36
    assert 4 < origin.most <= 16


async def test_no_more_is_read_of_a_file_than_is_wanted(origin: OddOrigin, fetch: Fetch) -> None:
    asked: list[int] = []
    charged: list[int] = []

    async def enough(data: bytes) -> bool:
        asked.append(len(data))
        return len(data) >= 20_000

    limits = FetchLimits(bytes_max=1_000_000, picture_s=30.0)
    (data,) = await fetch(
        origin.url("endless"), limits=limits, charge=charged.append, enough=enough
    )
    assert len(data) >= 20_000
    assert sum(charged) == len(data)
    assert asked[0] >= 4_096
    assert all(after >= 2 * before for before, after in pairwise(asked))
    assert asked[-1] == len(data)
    (small,) = await fetch(origin.url("picture"), limits=limits, enough=enough)
    assert small == PICTURE, "what ends before is whole"
    assert await refused(fetch(origin.url("large"), enough=enough), "media_too_large")


async def test_a_beginning_is_not_kept_for_who_wants_the_whole(origin: OddOrigin) -> None:
    async def enough(_: bytes) -> bool:
        return True

    media = Media(fetch_private_hosts=("127.0.0.1/32", f"pics.test:{origin.port}"))
    rules = fetch_rules(media)
    limits = FetchLimits(bytes_max=1_000_000, picture_s=30.0, cache_bytes=1_000_000)
    fetcher = Fetcher(lambda: rules, lambda: limits, lookup=origin.lookup, trust=untrusting)
    try:
        part = MediaPart("image", origin.url("lasting"), "x")
        (beginning,) = await fetcher.fetch([part], free, enough)
        assert 4_096 <= len(beginning) < len(LASTING)
        assert await fetcher.fetch([part], free) == [LASTING]
        assert await fetcher.fetch([part], free, enough) == [LASTING], "it is kept by now"
        assert len(origin.asked) == 2
    finally:
        await fetcher.close()


async def test_a_node_that_fetches_nothing_opens_nothing(origin: OddOrigin, fetch: Fetch) -> None:
    await refused(fetch(origin.url("picture"), mode="none"), "media_forbidden")
    assert origin.asked == []


async def test_a_socket_is_made_for_known_or_allowed_addresses_only() -> None:
    rules = FetchRules("public", (), ("inner.test",))

    async def lookup(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    resolver = CheckedResolver(lookup, rules.allows)
    place = ("10.0.0.1", 80)
    with pytest.raises(ForbiddenAddressError):
        resolver.socket((2, 1, 6, "", place))
    with pytest.raises(ForbiddenAddressError):
        await resolver.resolve("outer.test", 80)
    assert [found["host"] for found in await resolver.resolve("inner.test", 80)] == ["10.0.0.1"]
    resolver.socket((2, 1, 6, "", place)).close()
    resolver.socket((2, 1, 6, "", (PUBLIC, 80))).close()


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("fresh?said=max-age=60", 1),
        ("fresh?said=private,max-age=60", 2),
        ("picture", 2),
        ("to?where=/fresh?said=max-age=60", 4),
    ],
)
async def test_a_file_is_used_again_where_its_origin_and_the_operator_allow_it(
    origin: OddOrigin, path: str, asked: int
) -> None:
    now = [100.0]
    rules = FetchRules("public", (f"*.test:{origin.port}",), ("127.0.0.1/32",))
    limits = [FetchLimits(100_000, 30.0, cache_bytes=10_000)]
    fetcher = Fetcher(
        lambda: rules,
        lambda: limits[0],
        lookup=origin.lookup,
        trust=untrusting,
        monotonic_s=lambda: now[0],
    )
    charged: list[int] = []
    part = MediaPart("image", origin.url(path), "x")
    for _ in range(2):
        assert await fetcher.fetch([part], charged.append) == [PICTURE]
    assert len(origin.asked) == asked
    assert sum(charged) == 2 * len(PICTURE)
    now[0] += 61
    await fetcher.fetch([part], free)
    assert len(origin.asked) > asked
    asked = len(origin.asked)
    limits[0] = PATIENT
    await fetcher.fetch([part], free)
    assert len(origin.asked) > asked
    await fetcher.close()


async def test_files_that_may_not_be_kept_any_more_are_let_go(origin: OddOrigin) -> None:
    rules = FetchRules("public", (f"*.test:{origin.port}",), ("127.0.0.1/32",))
    limits = [FetchLimits(100_000, 30.0, cache_bytes=10_000)]
    fetcher = Fetcher(lambda: rules, lambda: limits[0], lookup=origin.lookup, trust=untrusting)
    part = MediaPart("image", origin.url("fresh?said=max-age=60"), "x")
    await fetcher.fetch([part], free)
    kept = limits[0]
    fetcher.trim()
    await fetcher.fetch([part], free)
    assert len(origin.asked) == 1
    # Off and on again: what was kept in between is gone.
    limits[0] = PATIENT
    fetcher.trim()
    limits[0] = kept
    await fetcher.fetch([part], free)
    assert len(origin.asked) == 2
    await fetcher.close()


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".test"])
async def test_what_is_no_name_of_a_host_has_no_address(host: str) -> None:
    rules = FetchRules("public", (), ())
    fetcher = Fetcher(lambda: rules, lambda: PATIENT, trust=untrusting)
    part = MediaPart("image", f"http://{host}/", "messages[0].content[0]")
    words = await refused(fetcher.fetch([part], free), "media_unavailable")
    assert words == "its host has no address"
    await fetcher.close()


async def test_settings_become_rules_and_limits() -> None:
    media = Media(fetch="hosts", fetch_hosts=("pics.test",), image_bytes_max=5_000)
    assert fetch_limits(media) == FetchLimits(bytes_max=5_000)
    cached = media.model_copy(update={"url_cache": True})
    assert fetch_limits(cached).cache_bytes == media.cache_bytes // 4
    fetch_rules(media).checked("https://pics.test/", "x")
    with pytest.raises(SmgError, match="none of those"):
        fetch_rules(media).checked("https://other.test/", "x")
