"""Media service: everything that works on pictures in one process, put together."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.pixels.arena import IDLE_S, Arenas
from smg_node.media.pixels.patch_cache import PatchCache
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.making.picture_making import MediaWorkshop
from smg_node.pipeline.media.making.picture_threads import PictureThreads
from smg_node.pipeline.media.making.picture_works import KeptPatches, PictureWorks
from smg_node.pipeline.media.media_intake import MediaIntake
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.picture_files import Fetches, PictureFiles
from smg_node.telemetry.metrics.cells import Cells

if TYPE_CHECKING:
    from smg_node.pipeline.media.making.clip_works import ClipWorks

_log = logging.getLogger("smg_node.pipeline")

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
        ready: Callable[[ServedModel], Sequence[ModelCard]] | None = None,
        budget: ByteBudget | None = None,
    ) -> None:
        """`cards` and `ready`: see `MediaIntake`; `fetcher` is asked for with the first URL.

        `budget` is one that others take of as well; without it there is one of its own.
        """
        self._options = options
        self._monotonic_s = monotonic_s
        self._threads = PictureThreads(options.threads)
        meters = MediaMeters(cells)
        self._arenas = Arenas()
        self._kept = _kept(options)
        self._budget = ByteBudget(options.inflight_bytes) if budget is None else budget
        self._trim: asyncio.TimerHandle | None = None
        self._works = PictureWorks(self._threads, self._kept, meters, self._rested)
        workshop = MediaWorkshop(
            self._threads, self._works, self._budget, meters, self._arenas, monotonic_s, self._clips
        )
        self._meters = meters
        self._clip_works: ClipWorks | None = None
        files = PictureFiles(self._now, fetcher, self._threads)
        self.intake: Final = MediaIntake(self._now, cards, files, workshop, ready)

    def retune(self, options: MediaOptions) -> None:
        """Go by these options from now on."""
        self._options = options
        self._threads.resize(options.threads)
        self._budget.most = options.inflight_bytes
        own = isinstance(self._kept, PatchCache)
        self._kept.resize(options.own_cache_bytes if own else options.cache_bytes)

    @property
    def options(self) -> MediaOptions:
        """What it goes by now."""
        return self._options

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return self._threads.count

    @property
    def under_way(self) -> int:
        """Pictures and videos that are being made."""
        clips = 0 if self._clip_works is None else len(self._clip_works.works)
        return len(self._works) + clips

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
        if self._clip_works is not None:
            self._clip_works.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._kept.close()

    def _clips(self) -> "ClipWorks":
        if self._clip_works is None:
            # With the first video that this node makes tensors of.
            from smg_node.pipeline.media.making.clip_works import ClipWorks

            self._clip_works = ClipWorks(self._now, self._kept, self._meters, self._monotonic_s)
        return self._clip_works

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


def _kept(options: MediaOptions) -> KeptPatches:
    """Return what keeps patches: that of all processes of the node, or of this one where there is no such memory."""
    if options.shared_folder:
        from smg_node.media.pixels.shared_patches import SharedPatches

        folder = Path(options.shared_folder)
        try:
            return SharedPatches(folder, options.cache_bytes, processes=options.processes)
        except OSError as error:
            _log.warning("each process keeps pictures of its own: %s: %s", folder, error.strerror)
    return PatchCache(options.own_cache_bytes)
