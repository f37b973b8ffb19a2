"""Pictures of one process while its settings change: what is kept of them stays true."""

import base64
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import msgspec
import pytest
from PIL import Image

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaDetail, MediaPart, token_ids
from smg_node.engines.engine import MediaCard
from smg_node.fleet.models.picture_rules import TokenTexts
from smg_node.media.engine_media import TensorBatch
from smg_node.media.families.registry import family_of
from smg_node.media.family import Family
from smg_node.media.fetch.fetch_rules import FetchRules
from smg_node.media.fetch.fetcher import Fetcher, FetchLimits
from smg_node.pipeline.media.asked_media import AskedMedia
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_service import MediaService
from smg_node.pipeline.media.prompt_media import PromptMedia
from smg_node.prompts.media_forms import MediaForms
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared.media import MEDIA_METRICS
from support.engines.fake_engine import card
from support.media.plain_pictures import refusal

ANCHOR = 9
TOLD = card(media=MediaCard(frozenset({"tensors"}), device_normalizes=True))


class _Tokens:
    """A vocabulary that has the anchor alone."""

    def token_id(self, text: str) -> int | None:
        return ANCHOR


def _family(model_type: str = "qwen2_vl") -> Family:
    config = msgspec.json.encode({"model_type": model_type, "image_token_id": ANCHOR})
    found = family_of({"config.json": config}, overrides={}, tokens=_Tokens())
    assert found is not None
    return cast("Family", found)


def _url(size: tuple[int, int] = (600, 600)) -> str:
    file = io.BytesIO()
    Image.new("RGB", size, "orange").save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _none() -> Fetcher:
    raise AssertionError("nothing is fetched")


def _service(options: MediaOptions, fetcher: Callable[[], Fetcher] = _none) -> MediaService:

    return MediaService(
        options,
        lambda _: (),
        fetcher,
        cells=Cells(MEDIA_METRICS, before=lambda: None),
        monotonic_s=SystemClock().monotonic_s,
    )


async def _media(
    service: MediaService, family: Family, url: str, detail: MediaDetail = ""
) -> PromptMedia:
    """Return a prompt of one picture."""
    parts: Sequence[MediaPart] = [MediaPart("image", url, "messages[0].content[0]", detail)]
    tokens = cast("TokenTexts", _Tokens())
    asked = AskedMedia(parts, MediaForms(family.anchor), family, tokens, [TOLD], service.options)
    return await service.intake.media(asked, token_ids([1, ANCHOR, 2]), "tiny")


async def _seen(service: MediaService, family: Family, detail: MediaDetail) -> TensorBatch:
    """Return what an engine is handed for one picture."""
    media = await _media(service, family, _url(), detail)
    try:
        await media.begin()
        await media.worked()
        handed = await media.handed(TOLD, media.ids)
        assert isinstance(handed.media, TensorBatch)
        return handed.media
    finally:
        media.close()


async def test_a_picture_is_another_one_under_another_bound_for_little_detail() -> None:
    family = _family()
    service = _service(MediaOptions(low_pixels=200_000))
    try:
        before = await _seen(service, family, "low")
        full = await _seen(service, family, "high")
        service.retune(MediaOptions(low_pixels=50_000))
        after = await _seen(service, family, "low")
        again = await _seen(service, family, "high")
    finally:
        service.close()
    assert after.pixels.size < before.pixels.size
    assert after.ranges[0].digest != before.ranges[0].digest
    assert again.ranges == full.ranges


async def test_a_needle_that_a_model_enlarges_is_charged_as_large_as_it_gets() -> None:
    service = _service(MediaOptions())
    try:
        media = await _media(service, _family("llava"), _url((1, 200)))
        held = service.inflight_bytes
        await media.begin()
        assert service.inflight_bytes - held >= 336 * 200 * 336 * 3
        await media.worked()
        media.close()
        assert service.inflight_bytes == 0
    finally:
        service.close()


def _jpeg(size: tuple[int, int], *, noise: bool = False) -> str:
    file = io.BytesIO()
    picture = Image.effect_noise(size, 90) if noise else Image.new("RGB", size, "orange")
    picture.save(file, "JPEG", quality=95)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize(
    ("url", "hops"),
    [
        # Only the work on its pixels.
        (_jpeg((640, 480)), 1),
        # Where its header may take a while, that as well.
        (_url((640, 480)), 2),
        # And base64 of hundreds of kilobytes.
        (_jpeg((1000, 1000), noise=True), 3),
    ],
    ids=["small", "png", "large"],
)
async def test_a_small_picture_is_handed_to_a_thread_once(
    url: str, hops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, family, submitted = _service(MediaOptions()), _family(), list[object]()
    submit = ThreadPoolExecutor.submit

    def counted(pool: ThreadPoolExecutor, work: Any, *more: Any) -> Any:
        submitted.append(work)
        return submit(pool, work, *more)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    try:
        media = await _media(service, family, url)
        await media.begin()
        await media.worked()
        await media.handed(TOLD, media.ids)
        media.close()
    finally:
        service.close()
    assert len(submitted) == hops


async def test_pictures_go_on_while_the_number_of_threads_changes() -> None:
    family, service = _family(), _service(MediaOptions(threads=1))
    try:
        urls = [_url((300 + 10 * at, 300)) for at in range(6)]
        pictures = [await _media(service, family, url) for url in urls]
        for media in pictures:
            await media.begin()
        for threads in (4, 2):
            service.retune(MediaOptions(threads=threads))
            assert service.threads == threads
        for media in pictures:
            await media.worked()
            media.close()
        assert service.inflight_bytes == 0
        assert service.under_way == 0
    finally:
        service.close()


async def test_base64_in_the_request_is_charged_with_the_file_in_it() -> None:
    service, url = _service(MediaOptions()), _url()
    try:
        media = await _media(service, _family(), url)
        file = base64.b64decode(url.partition(",")[2])
        assert service.inflight_bytes == len(url) + len(file)
        media.close()
        assert service.inflight_bytes == 0
    finally:
        service.close()


async def test_what_is_not_fetched_cannot_be_counted_either_and_says_so() -> None:
    rules = FetchRules("none", (), ())
    fetcher = Fetcher(lambda: rules, lambda: FetchLimits(bytes_max=1 << 20))
    service = _service(MediaOptions(), lambda: fetcher)
    family = _family()
    url = "https://pics.example.com/a.png"
    parts = [MediaPart("image", url, "messages[0].content[0].image_url.url")]
    tokens = cast("TokenTexts", _Tokens())
    asked = AskedMedia(parts, MediaForms(family.anchor), family, tokens, [TOLD], service.options)
    try:
        with pytest.raises(SmgError) as caught:
            await service.intake.media(asked, token_ids([1, ANCHOR, 2]), "tiny", counted=True)
    finally:
        await fetcher.close()
        service.close()
    assert refusal(caught.value) == (400, "media_forbidden", parts[0].where)
    assert "media.fetch" in caught.value.message
    assert service.inflight_bytes == 0
