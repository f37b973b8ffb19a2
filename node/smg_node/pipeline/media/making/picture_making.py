"""Picture making: the work on one picture of a prompt, and what all prompts with media share for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from smg_node.core.generation.request import MediaPart
from smg_node.media.family import Family, PicturePlan
from smg_node.media.pixels.arena import Arenas, owned
from smg_node.media.video.clip import ClipPlan
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.making.picture_bytes import work_bytes
from smg_node.pipeline.media.making.picture_threads import PictureThreads
from smg_node.pipeline.media.making.picture_works import PictureWorks
from smg_node.pipeline.media.media_meters import MediaMeters, Stage
from smg_node.pipeline.media.picture_source import SentPicture

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels
    from smg_node.pipeline.media.making.clip_works import ClipWorks


class PlannedPicture(msgspec.Struct, frozen=True):
    """A picture, video or sound of a prompt: its part, its file, and what becomes of it.

    `plan` is None and `digest` "" where the node does not make its tensors.
    """

    part: MediaPart
    sent: SentPicture
    plan: PicturePlan | ClipPlan | None
    digest: str


@dataclass(frozen=True, slots=True)
class MediaWorkshop:
    """What all prompts with media share: the threads, the works in them, and the memory they may take."""

    threads: PictureThreads
    works: PictureWorks
    budget: ByteBudget
    meters: MediaMeters
    arenas: Arenas
    monotonic_s: Callable[[], float]
    clips: "Callable[[], ClipWorks]"
    """What works on videos, made with the first one."""


class Making(msgspec.Struct):
    """The work on one picture: decoded, resized and put in the model's order, in a thread. `times` are its stages'."""

    family: Family
    plan: PicturePlan
    sent: SentPicture
    workshop: MediaWorkshop
    times: list[tuple[Stage, float]] = msgspec.field(default_factory=list)

    def __call__(self) -> "Pixels":
        """Return the patches; INVALID_REQUEST for a file that cannot be decoded."""
        monotonic_s = self.workshop.monotonic_s
        began_s = monotonic_s()
        with self.workshop.arenas.working(began_s):
            picture = self.sent.decoded()
            decoded_s = monotonic_s()
            patches = owned(self.family.patches(picture, self.plan))
        self.times = [("decode", decoded_s - began_s), ("patches", monotonic_s() - decoded_s)]
        return patches

    def stop(self) -> None:
        """Let it end by itself: it takes milliseconds."""


def planned(each: PlannedPicture) -> PicturePlan | ClipPlan:
    """Return the plan of a medium that this node makes the tensors of."""
    assert each.plan is not None, "it was planned with the family"
    return each.plan


def bytes_at_work(each: PlannedPicture) -> int:
    """Return what the work on a medium takes at its peak, beside its file and what comes of it."""
    plan, sent = planned(each), each.sent
    if isinstance(plan, ClipPlan):
        from smg_node.pipeline.media.making.clip_works import (
            scratch_bytes,  # it comes with the first clip
        )

        return scratch_bytes(sent.data, plan)
    assert sent.header is not None, "what is planned has been looked at"
    return work_bytes(plan, sent.header, len(sent.data))
