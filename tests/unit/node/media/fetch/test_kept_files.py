"""Files kept of URLs: whose they are."""

import ssl
from collections.abc import AsyncIterator

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaKind, MediaPart
from smg_node.media.fetch.fetch_rules import FetchRules
from smg_node.media.fetch.fetcher import Fetcher, FetchLimits
from support.media.odd_origin import PICTURE, OddOrigin, odd_origin


def free(_: int) -> None:
    """Charge nothing."""


def untrusting() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.fixture
async def origin() -> AsyncIterator[OddOrigin]:
    async with odd_origin() as running:
        yield running


async def test_a_file_that_is_kept_is_its_tenants_alone(origin: OddOrigin) -> None:
    rules = FetchRules("public", (f"*.test:{origin.port}",), ("127.0.0.1/32",))
    limits = FetchLimits(100_000, 30.0, cache_bytes=10_000)
    fetcher = Fetcher(lambda: rules, lambda: limits, lookup=origin.lookup, trust=untrusting)
    part = MediaPart("image", origin.url("fresh?said=max-age=60"), "x")
    asked = []
    for tenant in ("acme", "acme", "zoo", "acme", None, None):
        assert await fetcher.fetch([part], free, tenant=tenant) == [PICTURE]
        asked.append(len(origin.asked))
    assert asked == [1, 1, 2, 2, 3, 4], "whose it is not known is neither kept nor found"
    await fetcher.close()


async def test_a_kept_video_may_be_as_large_as_videos_and_no_picture_is(origin: OddOrigin) -> None:
    rules = FetchRules("public", (f"*.test:{origin.port}",), ("127.0.0.1/32",))
    limits = FetchLimits(
        len(PICTURE) - 1, 30.0, cache_bytes=10_000, video_bytes_max=len(PICTURE), audio_bytes_max=1
    )
    fetcher = Fetcher(lambda: rules, lambda: limits, lookup=origin.lookup, trust=untrusting)
    url = origin.url("fresh?said=max-age=60")
    for _ in range(2):
        assert await fetcher.fetch([MediaPart("video", url, "x")], free) == [PICTURE]
    assert len(origin.asked) == 1
    others: tuple[MediaKind, ...] = ("image", "audio")
    for kind in others:
        with pytest.raises(SmgError) as caught:
            await fetcher.fetch([MediaPart(kind, url, "x")], free)
        assert caught.value.code == "media_too_large"
    await fetcher.close()


async def test_one_url_as_two_kinds_has_the_limits_of_each(origin: OddOrigin) -> None:
    rules = FetchRules("public", (f"*.test:{origin.port}",), ("127.0.0.1/32",))
    limits = FetchLimits(len(PICTURE) - 1, 30.0, video_bytes_max=len(PICTURE))
    fetcher = Fetcher(lambda: rules, lambda: limits, lookup=origin.lookup, trust=untrusting)
    url = origin.url("fresh?said=no-store")
    film, frame = MediaPart("video", url, "film"), MediaPart("image", url, "frame")
    assert await fetcher.fetch([film, film], free) == [PICTURE, PICTURE]
    assert len(origin.asked) == 1
    for parts in ([film, frame], [frame, film]):
        with pytest.raises(SmgError) as caught:
            await fetcher.fetch(parts, free)
        assert (caught.value.code, caught.value.where) == ("media_too_large", "frame")
    await fetcher.close()
