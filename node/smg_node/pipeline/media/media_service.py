"""Media service: everything that works on pictures in one process, put together."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.pixels.arena import IDLE_S, Arenas
from smg_node.media.pixels.patch_cache import PatchCache
from smg_node.pipeline.media.byte_budget import ByteBudget
from smg_node.pipeline.media.media_intake import MediaIntake
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.picture_files import Fetches, PictureFiles
from smg_node.pipeline.media.picture_works import PictureWorks
from smg_node.pipeline.media.prompt_media import MediaWorkshop
from smg_node.telemetry.metrics.cells import Cells

_TRIM_S: Final = IDLE_S + 1.0


class MediaService:
    """Threads, caches and budget of pictures; `intake` is what prompts go through. Used on the loop."""

    def __init__(
        self,
        options: MediaOptions,
        cards: Callable[[ServedModel], Sequence[ModelCard]],
        fetcher: Callable[[], Fetches],
        *,
        cells: Cells,
        monotonic_s: Callable[[], float],
        budget: ByteBudget | None = None,
    ) -> None:
        """`cards` are those of the workers that serve a model now; `fetcher` is asked for with the first URL.

        `budget` is one that others take of as well; without it there is one of its own.
        """
        self._options = options
        self._monotonic_s = monotonic_s
        self._threads = ThreadPoolExecutor(options.threads, thread_name_prefix="pictures")
        meters = MediaMeters(cells)
        self._arenas = Arenas()
        self._kept = PatchCache(options.cache_bytes)
        self._budget = ByteBudget(options.inflight_bytes) if budget is None else budget
        self._trim: asyncio.TimerHandle | None = None
        self._works = PictureWorks(self._threads, self._kept, meters, self._rested)
        workshop = MediaWorkshop(
            self._threads, self._works, self._budget, meters, self._arenas, monotonic_s
        )
        files = PictureFiles(self._now, fetcher, self._threads)
        self.intake: Final = MediaIntake(self._now, cards, files, workshop)

    def retune(self, options: MediaOptions) -> None:
        """Go by these options from now on; the number of threads stays."""
        self._options = options
        self._budget.most = options.inflight_bytes
        self._kept.resize(options.cache_bytes)

    @property
    def options(self) -> MediaOptions:
        """What it goes by now."""
        return self._options

    @property
    def under_way(self) -> int:
        """Pictures that are being made."""
        return len(self._works)

    @property
    def inflight_bytes(self) -> int:
        """Memory that the pictures of requests under way take."""
        return self._budget.taken

    @property
    def kept_bytes(self) -> int:
        """Memory that patches of pictures seen lately take."""
        return self._kept.counts().held_bytes

    def close(self) -> None:
        """Let go of the threads; what they are at ends by itself."""
        if self._trim is not None:
            self._trim.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _now(self) -> MediaOptions:
        return self._options

    def _rested(self) -> None:
        """Have idle memory given back later, once for all pictures that come until then."""
        if self._trim is None:
            self._trim = asyncio.get_running_loop().call_later(_TRIM_S, self._trimmed)

    def _trimmed(self) -> None:
        self._trim = None
        self._arenas.trim(self._monotonic_s())
        if self._arenas.kept_bytes():
            self._rested()
