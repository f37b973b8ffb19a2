"""Media parts of a process: what works on pictures, loaded with the first request that has one."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from smg_node.config.frozen_settings import Settings
from smg_node.engines.engine import ModelCard
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.served_model import ServedModel
from smg_node.telemetry.metrics.declared import media as declared
from smg_node.wiring.base import Base

if TYPE_CHECKING:
    from smg_node.media.pixels.patch_cache import PatchCache
    from smg_node.pipeline.media.media_intake import MediaIntake
    from smg_node.pipeline.media.media_options import MediaOptions
    from smg_node.pipeline.media.prompt_media import MediaWorkshop


class LazyMedia:
    """What takes pictures in, built at its first call; it follows the cluster's settings before and after."""

    def __init__(self, settings: Settings, base: Base, fleet: Fleet) -> None:
        self._settings = settings
        self._base = base
        self._fleet = fleet
        self._built: MediaIntake | None = None
        self._workshop: MediaWorkshop | None = None
        self._kept: PatchCache | None = None
        self._options: MediaOptions | None = None

    def __call__(self) -> "MediaIntake":
        """Return it."""
        if self._built is None:
            self._built = self._build()
        return self._built

    def retune(self, settings: Settings) -> None:
        """Go by these settings from now on."""
        self._settings = settings
        if self._workshop is not None and self._kept is not None:
            self._options = media_options(settings)
            self._workshop.budget.most = self._options.inflight_bytes
            self._kept.retune(settings.media.cache_bytes)

    def _build(self) -> "MediaIntake":
        from smg_node.media.pixels.patch_cache import PatchCache
        from smg_node.pipeline.media.byte_budget import ByteBudget
        from smg_node.pipeline.media.media_intake import MediaIntake
        from smg_node.pipeline.media.media_meters import MediaMeters
        from smg_node.pipeline.media.picture_files import PictureFiles
        from smg_node.pipeline.media.picture_works import PictureWorks
        from smg_node.pipeline.media.prompt_media import MediaWorkshop

        knobs, base = self._settings.media, self._base
        threads = ThreadPoolExecutor(
            knobs.threads or os.cpu_count() or 1, thread_name_prefix="pictures"
        )
        base.at_end(threads.shutdown, wait=False, cancel_futures=True)
        meters = MediaMeters(base.meters.cells)
        self._kept = kept = PatchCache(knobs.cache_bytes)
        works = PictureWorks(threads, kept, meters)
        self._options = media_options(self._settings)
        budget = ByteBudget(self._options.inflight_bytes)
        self._workshop = workshop = MediaWorkshop(
            threads, works, budget, meters, base.clock.monotonic_s
        )
        base.meters.watch(declared.MEDIA_UNDER_WAY, lambda: {(): len(works)})
        base.meters.watch(declared.MEDIA_INFLIGHT_BYTES, lambda: {(): budget.taken})
        base.meters.watch(declared.MEDIA_CACHE_BYTES, lambda: {(): kept.bytes})
        return MediaIntake(self._now, self._cards, PictureFiles(self._now, threads), workshop)

    def _now(self) -> "MediaOptions":
        assert self._options is not None, "it was built"
        return self._options

    def _cards(self, model: ServedModel) -> Sequence[ModelCard]:
        """Return what the workers of a model say of themselves, as far as they have."""
        cards = [worker.card for worker in self._fleet.serving(model)]
        return [card for card in cards if card is not None]


def media_options(settings: Settings) -> "MediaOptions":
    """Return the bounds of pictures that the settings name."""
    from smg_node.pipeline.media.media_options import MediaOptions

    knobs = settings.media
    return MediaOptions(
        where=knobs.where,
        image_pixels_max=knobs.image_pixels_max,
        low_pixels=knobs.low_pixels,
        inflight_bytes=knobs.inflight_bytes,
    )
