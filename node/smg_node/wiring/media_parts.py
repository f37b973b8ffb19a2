"""Media parts of a process: what works on pictures, loaded with the first request that has one."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smg_node.config.frozen_settings import Settings
from smg_node.engines.engine import ModelCard
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.prompt.preparation import PrepareLimits, Preparer
from smg_node.telemetry.metrics.declared import media as declared
from smg_node.wiring.base import Base

if TYPE_CHECKING:
    from smg_node.media.fetch.fetch_rules import FetchRules
    from smg_node.media.fetch.fetcher import Fetcher
    from smg_node.pipeline.media.file_reader import FileReader
    from smg_node.pipeline.media.making.byte_budget import ByteBudget
    from smg_node.pipeline.media.media_intake import MediaIntake
    from smg_node.pipeline.media.media_options import MediaOptions
    from smg_node.pipeline.media.media_service import MediaService
    from smg_node.pipeline.media.tool_pictures import ToolPictures


class LazyMedia:
    """What takes pictures in, built at its first call; it follows the cluster's settings before and after."""

    def __init__(self, settings: Settings, base: Base, fleet: Fleet) -> None:
        self._settings = settings
        self._base = base
        self._fleet = fleet
        self._service: MediaService | None = None
        self._fetcher: Fetcher | None = None
        self._rules: FetchRules | None = None
        self._files: FileReader | None = None
        self._budget: ByteBudget | None = None

    def __call__(self) -> "MediaIntake":
        """Return it; SmgError that says what to install where what works on pictures is missing."""
        if self._service is None:
            from smg_node.media.pixels.libraries import require_libraries

            require_libraries(None)
            self._service = self._built()
        return self._service.intake

    def files(self) -> "FileReader":
        """Return what reads files in conversations; it needs nothing that works on pictures."""
        if self._files is None:
            from smg_node.pipeline.media.file_reader import FileReader

            self._files = FileReader(
                lambda: media_options(self._settings),
                self._fetching,
                self._shared_budget(),
                self._base.threads,
                self._base.clock.monotonic_s,
            )
        return self._files

    def retune(self, settings: Settings) -> None:
        """Go by these settings from now on."""
        self._settings = settings
        self._rules = None
        if self._service is not None:
            self._service.retune(media_options(settings))
        elif self._budget is not None:
            self._budget.most = media_options(settings).inflight_bytes
        if self._fetcher is not None:
            self._fetcher.trim()

    def _built(self) -> "MediaService":
        from smg_node.pipeline.media.media_service import MediaService

        base = self._base
        service = MediaService(
            media_options(self._settings),
            self._cards,
            self._fetching,
            cells=base.meters.cells,
            budget=self._shared_budget(),
            monotonic_s=base.clock.monotonic_s,
            ready=self._ready,
        )
        base.ending.callback(service.close)
        base.meters.watch(declared.MEDIA_UNDER_WAY, lambda: {(): service.under_way})
        base.meters.watch(declared.MEDIA_INFLIGHT_BYTES, lambda: {(): service.inflight_bytes})
        base.meters.watch(declared.MEDIA_CACHE_BYTES, lambda: {(): service.kept_bytes})
        return service

    def _shared_budget(self) -> "ByteBudget":
        if self._budget is None:
            from smg_node.pipeline.media.making.byte_budget import ByteBudget

            self._budget = ByteBudget(media_options(self._settings).inflight_bytes)
        return self._budget

    def _cards(self, model: ServedModel) -> Sequence[ModelCard]:
        """Return what the workers of a model that work prompts off say of themselves, as far as they have."""
        workers = self._fleet.serving(model)
        return [one.card for one in workers if one.card is not None and one.role != "encode"]

    def _ready(self, model: ServedModel) -> Sequence[ModelCard]:
        """Return what those of them say that may be given work now."""
        workers = self._fleet.candidates(model)
        now_s = self._base.clock.monotonic_s()
        return [
            one.card
            for one in workers
            if one.card is not None and one.role != "encode" and one.breaker.usable(now_s)
        ]

    def model(self, name: str) -> ServedModel | None:
        """Return the model of that name or alias that engines serve, if its files are read."""
        found = self._fleet.served(name)
        return found if found is not None and found.unread is None else None

    # ── Fetching ─────────────────────────────────────────────────────────────

    def _fetching(self) -> "Fetcher":
        if self._fetcher is None:
            from smg_node.media.fetch.fetch_settings import fetch_limits
            from smg_node.media.fetch.fetcher import Fetcher

            processes = max(1, self._settings.processes)
            self._fetcher = Fetcher(
                self._fetch_rules,
                lambda: fetch_limits(self._settings.media, processes=processes),
                monotonic_s=self._base.clock.monotonic_s,
            )
            self._base.ending.push_async_callback(self._fetcher.close)
        return self._fetcher

    def _fetch_rules(self) -> "FetchRules":
        if self._rules is None:
            from smg_node.media.fetch.fetch_settings import fetch_rules

            self._rules = fetch_rules(self._settings.media)
        return self._rules


class LazyPictures:
    """Pictures in results of tools; loads what works on them with the first. See `tool_loop.ports.Pictures`."""

    def __init__(self, media: LazyMedia) -> None:
        self._media = media
        self._pictures: ToolPictures | None = None

    async def shown(
        self,
        model: str,
        content: Sequence[Mapping[str, Any]],
        beside: int = 0,
        tenant: str | None = None,
    ) -> tuple[str, ...]:
        """See `Pictures`; none where this node was installed without what works on them."""
        if self._pictures is None:
            from smg_node.media.pixels.libraries import has_libraries

            if not has_libraries():
                return ()
            from smg_node.pipeline.media.tool_pictures import ToolPictures

            self._pictures = ToolPictures(self._media.model, self._media)
        return await self._pictures.shown(model, content, beside, tenant)


def prompt_parts(
    settings: Settings, base: Base, fleet: Fleet, limits: PrepareLimits
) -> tuple[LazyMedia, Preparer]:
    """Return what takes media in, and what prepares prompts, with and without such."""
    media = LazyMedia(settings, base, fleet)
    preparer = Preparer(
        clock=base.clock, threads=base.threads, limits=limits, media=media, files=media.files
    )
    return media, preparer


def media_options(settings: Settings) -> "MediaOptions":
    """Return the bounds of pictures in one process that the settings name for the node."""
    from smg_node.pipeline.media.media_options import MediaOptions

    knobs, processes = settings.media, max(1, settings.processes)
    return MediaOptions(
        where=knobs.where,
        clip_urls=knobs.clip_urls,
        image_bytes_max=knobs.image_bytes_max,
        video_bytes_max=knobs.video_bytes_max,
        audio_bytes_max=knobs.audio_bytes_max,
        image_pixels_max=knobs.image_pixels_max,
        low_pixels=knobs.low_pixels,
        inflight_bytes=knobs.inflight_bytes // processes,
        cache_bytes=knobs.cache_bytes,
        threads=knobs.threads or max(1, (os.cpu_count() or 1) // processes),
        tenants_apart=knobs.tenants_apart,
        processes=processes,
        shared_folder=_shared_folder() if settings.processes > 1 else "",
        video_pixels_max=knobs.video_pixels_max,
        video_seconds_max=knobs.video_seconds_max,
        video_memory_bytes=knobs.video_memory_bytes,
        video_processes=max(1, knobs.video_processes // processes),
    )


def _shared_folder() -> str:
    """Return where the processes that one supervisor has started keep pictures together; "" where they cannot."""
    from smg_node.media.pixels.shared_patches import FOLDER, folder_of_node

    found = folder_of_node(os.getppid()) if FOLDER.is_dir() else None
    return "" if found is None else str(found)
