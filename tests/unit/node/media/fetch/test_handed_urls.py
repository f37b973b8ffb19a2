"""URLs that engines are to fetch, held to the rules of fetches; and how many bytes each kind of medium may have."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, Final

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaKind, MediaPart
from smg_node.media.fetch.fetch_rules import FetchRules
from smg_node.media.fetch.fetcher import Fetcher, FetchLimits
from support.media.odd_origin import PICTURE, odd_origin

PUBLIC: Final = "93.184.216.34"
NAMES: Final = {
    "inside.test": ["127.0.0.1"],
    "both.test": [PUBLIC, "10.0.0.1"],
    "outside.test": [PUBLIC],
}
SHORT: Final = FetchLimits(bytes_max=100_000, picture_s=0.5)


async def lookup(host: str, port: int) -> Sequence[str]:
    if host == "slow.test":
        await asyncio.sleep(60)
    if host not in NAMES and not host[0].isdigit():
        raise OSError("no such host")
    return NAMES.get(host, [host])


def part(url: str, at: int = 0, kind: MediaKind = "video") -> MediaPart:
    return MediaPart(kind, url, f"messages[0].content[{at}]")


async def refused(waiting: Awaitable[Any], at: int = 0) -> SmgError:
    with pytest.raises(SmgError) as raised:
        await waiting
    assert (raised.value.status, raised.value.where) == (400, f"messages[0].content[{at}]")
    return raised.value


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("http://10.0.0.1/", "media_forbidden", "not on the public network"),
        ("http://inside.test/", "media_forbidden", "not on the public network"),
        ("http://both.test/", "media_forbidden", "not on the public network"),
        ("http://nobody.test/", "media_unavailable", "its host has no address"),
        ("http://outside.test:22/", "media_forbidden", "port 22"),
        ("http://a@outside.test/", "media_forbidden", "a user or a password"),
        ("ftp://outside.test/", "media_forbidden", "only http and https"),
        ("http://slow.test/", "media_unavailable", "could not be looked up in time"),
    ],
)
async def test_what_an_engine_is_to_fetch_is_held_to_the_same_rules(
    url: str, code: str, words: str
) -> None:
    rules = FetchRules("public", (), ())
    fetcher = Fetcher(lambda: rules, lambda: SHORT, lookup=lookup)
    good = part("https://outside.test/a.mp4")
    await fetcher.check([good])
    error = await refused(fetcher.check([good, part(url, 1)]), 1)
    assert (error.code, words in error.message) == (code, True), error.message
    await fetcher.close()


async def test_a_clip_may_have_as_many_bytes_as_its_kind() -> None:
    limits = FetchLimits(
        bytes_max=10, picture_s=30.0, video_bytes_max=100_000, audio_bytes_max=len(PICTURE) - 1
    )
    async with odd_origin() as origin:
        rules = FetchRules("public", (f"*.test:{origin.port}",), ("127.0.0.1/32",))
        fetcher = Fetcher(lambda: rules, lambda: limits, lookup=origin.lookup)

        def free(_: int) -> None:
            """Charge nothing."""

        url = origin.url("picture")
        assert await fetcher.fetch([part(url)], free) == [PICTURE]
        kinds: tuple[tuple[MediaKind, str], ...] = (("audio", "audio"), ("file", "image"))
        for kind, knob in kinds:
            error = await refused(fetcher.fetch([part(url, 0, kind)], free))
            assert error.code == "media_too_large"
            assert f"media.{knob}_bytes_max" in error.message
        await fetcher.close()
