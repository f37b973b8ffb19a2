"""Picture works: pictures being made into patches in threads: equal ones once, and finished ones kept for a while.

A work belongs to all prompts that have its picture. It goes on as long as one of them wants it: when the last one
leaves, what has not begun never does, and what has is finished and kept for whoever sends the picture next.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Protocol

from smg_node.core.errors import SmgError
from smg_node.media.family import PicturePlan
from smg_node.media.pixels.patch_cache import CacheCounts, CachedPatches
from smg_node.pipeline.media.media_meters import MediaMeters

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels
    from smg_node.media.video.clip import ClipPlan


class Make(Protocol):
    """The work on one picture or clip, by the plan for it."""

    @property
    def plan(self) -> "PicturePlan | ClipPlan":
        """What becomes of it."""
        ...

    def stop(self) -> None:
        """End what runs, if it can be ended: nobody wants it any more. From any thread, and harmless afterwards."""
        ...

    def __call__(self) -> "Pixels":
        """Return its patches, in an array of their own; runs in a thread."""
        ...


class KeptPatches(Protocol):
    """What keeps patches of pictures seen lately; see `media.pixels.patch_cache`."""

    def get(self, digest: str) -> CachedPatches | None:
        """Return what was put under the digest; None where it is not kept."""
        ...

    def has(self, digest: str) -> bool:
        """Whether patches are kept under the digest; looking does not count as use."""
        ...

    def put(self, digest: str, plan: object, patches: "Pixels") -> CachedPatches:
        """Keep patches if there is room for them, and return them as they are kept."""
        ...

    def resize(self, bytes_max: int) -> None:
        """Set the bound; what is beyond it goes at once."""
        ...

    def counts(self) -> CacheCounts:
        """Return the counters for metrics."""
        ...

    def close(self) -> None:
        """Let everything go."""
        ...


class PictureWork:
    """The patches of one picture, now or later. Used on the loop."""

    def __init__(
        self, digest: str, made: "asyncio.Future[Pixels]", drop: Callable[[], object]
    ) -> None:
        """`drop` is called when nobody wants it any more."""
        self.digest = digest
        self._made = made
        self._drop = drop
        self._users = 0

    def enter(self) -> None:
        """Count in a prompt that wants it."""
        self._users += 1

    def leave(self) -> None:
        """Count out a prompt; without any, what has not begun is dropped."""
        assert self._users > 0, "who leaves has entered"
        self._users -= 1
        if not self._users:
            self._drop()

    async def patches(self, where: str) -> "Pixels":
        """Return the patches; SmgError with the path `where` for a picture that cannot be made."""
        made = self._made
        try:
            # Whoever waits may be cancelled, and others wait too.
            return made.result() if made.done() else await asyncio.shield(made)
        except SmgError as error:
            raise error_at(error, where) from error


class PictureWorks:
    """Makes patches in `threads`, and looks for them in `kept` before."""

    def __init__(
        self,
        threads: Executor,
        kept: KeptPatches,
        meters: MediaMeters,
        rested: Callable[[], object] = lambda: None,
    ) -> None:
        """`rested` is called whenever nothing is under way any more."""
        self._rested = rested
        self._threads = threads
        self._kept = kept
        self._meters = meters
        self._under_way: dict[str, PictureWork] = {}
        self._jobs: dict[str, tuple[Future[Pixels], Make]] = {}

    def __len__(self) -> int:
        """Return how many pictures are under way."""
        return len(self._under_way)

    def known(self, digest: str) -> bool:
        """Whether a picture is kept or under way, so that wanting it takes no memory."""
        return digest in self._under_way or self._kept.has(digest)

    def state(self, digest: str) -> str:
        """Return whose patches a prompt gets that begins now: "kept" or "shared" ones, or its own, of this "node"."""
        if digest in self._under_way:
            return "shared"
        return "kept" if self._kept.has(digest) else "node"

    def begin(self, digest: str, make: Make) -> PictureWork:
        """Return the work of a picture, which its caller enters and leaves; `make` runs in a thread where it is new."""
        found = self._under_way.get(digest)
        if found is not None:
            self._meters.looked("shared")
            found.enter()
            return found
        loop = asyncio.get_running_loop()
        kept = self._kept.get(digest)
        if kept is not None:
            self._meters.looked("hit")
            made: asyncio.Future[Pixels] = loop.create_future()
            made.set_result(kept.patches)
            work = PictureWork(digest, made, _nothing)
        else:
            self._meters.looked("miss")
            job = self._threads.submit(self._make, digest, make)
            made = asyncio.wrap_future(job)
            made.add_done_callback(_heard)
            work = self._under_way[digest] = PictureWork(
                digest, made, partial(self._drop, digest, job, make)
            )
            made.add_done_callback(lambda _: self._drop(digest, job, make))
            self._jobs[digest] = job, make
        work.enter()
        return work

    def _make(self, digest: str, make: Make) -> "Pixels":
        """Make the patches of a picture, in a thread."""
        return self._kept.put(digest, make.plan, make()).patches

    def stop(self) -> None:
        """End all that is under way; what has begun and cannot be ended goes on."""
        for job, make in self._jobs.values():
            job.cancel()
            make.stop()

    def _drop(self, digest: str, job: "Future[Pixels]", make: Make) -> None:
        """Forget a work that is over, or that nobody wants: it does not begin any more, and ends if it can."""
        job.cancel()
        make.stop()
        if self._jobs.get(digest) == (job, make):
            del self._jobs[digest], self._under_way[digest]
            if not self._jobs:
                self._rested()


def error_at(error: SmgError, where: str) -> SmgError:
    """Return the same error at the JSON path `where`, unless it names a path itself."""
    return SmgError(
        error.kind,
        error.message,
        where=error.where or where,
        code=error.code,
        status=error.status,
        retry_after_s=error.retry_after_s,
    )


def _nothing() -> None:
    """Do nothing: what was kept is not under way."""


def _heard(made: "asyncio.Future[Pixels]") -> None:
    """Take in the error of a picture that nobody waits for any more."""
    if not made.cancelled():
        made.exception()
