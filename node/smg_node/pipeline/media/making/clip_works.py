"""Clip works: videos being read and made into patches, in a few threads that each have a process at work for them.

Apart from the threads of pictures, because a clip takes seconds where a picture takes milliseconds. Equal clips are
made once, and finished ones are kept for a while beside pictures. What nobody waits for any more is killed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart
from smg_node.media.video.clip import ClipHeader, ClipPlan
from smg_node.media.video.clip_family import ClipFamily
from smg_node.media.video.clip_identity import clip_digest
from smg_node.media.video.decoding.clip_reader import (
    ReaderLimits,
    ReaderSwitch,
    check_limits,
    read_clip_frames,
    read_clip_header,
)
from smg_node.pipeline.media.making.picture_threads import PictureThreads
from smg_node.pipeline.media.making.picture_works import KeptPatches, PictureWorks, error_at
from smg_node.pipeline.media.media_meters import MediaMeters, Stage
from smg_node.pipeline.media.media_options import MediaOptions

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

HEADERS_MAX: Final = 1024
"""Clips whose headers are remembered: a chat sends them again with every turn."""


class PlannedClip(msgspec.Struct, frozen=True):
    """What becomes of a clip that was sent, and who it is."""

    plan: ClipPlan
    digest: str


class ClipWorks:
    """Reads clips and makes their patches. Used on the loop."""

    def __init__(
        self,
        options: Callable[[], MediaOptions],
        kept: KeptPatches,
        meters: MediaMeters,
        monotonic_s: Callable[[], float],
    ) -> None:
        """`options` are those in force; the number of processes stays what it is at first."""
        self._options = options
        self._monotonic_s = monotonic_s
        self._threads = PictureThreads(options().video_processes, "clips")
        self._headers = _Headers()
        self._switches: list[ReaderSwitch] = []
        self.works: Final = PictureWorks(self._threads, kept, meters)

    async def planned(
        self, part: MediaPart, data: bytes, family: ClipFamily, tenant: str = ""
    ) -> PlannedClip:
        """Return the plan of a clip that is this file; SmgError with its path for one that cannot be shown."""
        switch = ReaderSwitch()
        self._switches.append(switch)
        loop = asyncio.get_running_loop()
        try:
            plan = partial(self._plan, part, data, family, switch, tenant)
            return await loop.run_in_executor(self._threads, plan)
        except SmgError as error:
            raise error_at(error, part.where) from error
        finally:
            # Whoever waits may be cancelled: then nobody wants it.
            switch.stop()
            self._switches.remove(switch)

    def making(self, data: bytes, plan: ClipPlan, family: ClipFamily) -> "ClipMaking":
        """Return the work on a clip, which runs in a thread when `works` has one."""
        return ClipMaking(family, plan, data, limits_of(self._options()), self._monotonic_s)

    def close(self) -> None:
        """Kill what is at work, and let nothing begin any more."""
        for switch in self._switches:
            switch.stop()
        self.works.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _plan(
        self, part: MediaPart, data: bytes, family: ClipFamily, switch: ReaderSwitch, tenant: str
    ) -> PlannedClip:
        """Look at a file and plan what becomes of it; in a thread."""
        content, limits = sha256(data).digest(), limits_of(self._options())
        # How soon it is there would tell whether another tenant has sent it.
        key = sha256(tenant.encode()).digest() + content
        header = self._headers.get(key)
        if header is None:
            header = read_clip_header(data, limits, switch)
            self._headers.put(key, header)
        check_limits(header, limits)
        digest = clip_digest(content, fingerprint=family.fingerprint, tenant=tenant, uuid=part.uuid)
        return PlannedClip(family.plan(header), digest)


class ClipMaking:
    """The work on one clip: decoded by a process, resized and put in the model's order here. `times` are its stages'."""

    def __init__(
        self,
        family: ClipFamily,
        plan: ClipPlan,
        data: bytes,
        limits: ReaderLimits,
        monotonic_s: Callable[[], float],
    ) -> None:
        self.plan = plan
        self.times: list[tuple[Stage, float]] = []
        self._family = family
        self._data = data
        self._limits = limits
        self._monotonic_s = monotonic_s
        self._switch = ReaderSwitch()
        self._decoding_s = 0.0

    def __call__(self) -> "Pixels":
        """Return the patches, in a thread; SmgError for a file that cannot be decoded."""
        plan, began_s = self.plan, self._monotonic_s()
        frames = read_clip_frames(self._data, plan.header, plan.frames, self._limits, self._switch)
        with closing(frames):
            patches = self._family.patches(self._timed(frames), plan)
        whole_s = self._monotonic_s() - began_s
        self.times = [("decode", self._decoding_s), ("patches", whole_s - self._decoding_s)]
        return patches

    def stop(self) -> None:
        """Kill the process that decodes; from any thread, and harmless afterwards."""
        self._switch.stop()

    def _timed(self, frames: "Iterator[Pixels]") -> "Iterator[Pixels]":
        while True:
            began_s = self._monotonic_s()
            frame = next(frames, None)
            self._decoding_s += self._monotonic_s() - began_s
            if frame is None:
                return
            yield frame


class _Headers:
    """Headers of clips seen lately, by the digests of their tenants and files; from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[bytes, ClipHeader] = OrderedDict()

    def get(self, content: bytes) -> ClipHeader | None:
        with self._lock:
            found = self._known.get(content)
            if found is not None:
                self._known.move_to_end(content)
            return found

    def put(self, content: bytes, header: ClipHeader) -> None:
        with self._lock:
            self._known[content] = header
            while len(self._known) > HEADERS_MAX:
                self._known.popitem(last=False)


def limits_of(options: MediaOptions) -> ReaderLimits:
    """Return what a decoding process may take by the operator's bounds."""
    return ReaderLimits(
        memory_bytes=options.video_memory_bytes,
        seconds=options.video_seconds_max,
        frame_pixels_max=options.image_pixels_max,
        pixels_max=options.video_pixels_max,
    )


def scratch_bytes(data: bytes, plan: ClipPlan) -> int:
    """Return what only the work on a clip takes here: its file, a frame in two forms, and a step of resized ones."""
    step = -(-len(plan.frames) // plan.grid[0])
    return len(data) + 3 * (2 * plan.header.pixels + (step + 1) * plan.columns * plan.rows)
