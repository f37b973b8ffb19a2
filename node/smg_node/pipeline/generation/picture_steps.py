"""Picture steps: what a generation whose prompt has pictures does beside others; loaded with the first one."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from smg_node.core.journey import VIEWED_MAX, Journey, Viewed
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.media.prompt_media import PromptMedia
from smg_node.pipeline.placement.placement_request import PlacementRequest
from smg_node.pipeline.reservation import Reservation

if TYPE_CHECKING:
    from smg_node.core.generation.request import TokenIds


def placement_with_pictures(wish: PlacementRequest, media: PromptMedia) -> PlacementRequest:
    """Return the needs of a call with pictures: a worker that takes them, and what tells them apart in its cache."""

    def fits(worker: Worker) -> bool:
        return worker.card is not None and media.fits(worker.card)

    def why_not(worker: Worker) -> str:
        return (
            "has not said yet what it takes" if worker.card is None else media.why_not(worker.card)
        )

    return replace(wish, places=media.places, fits=fits, why_not=why_not)


async def finish(media: PromptMedia, hold: Reservation, ids: "TokenIds", journey: Journey) -> None:
    """Finish the pictures for the reserved worker, before its call has begun and a refusal has its own status."""
    handed = await media.handed(hold.seeing, ids)
    journey.pictures = tuple(
        [
            Viewed(
                media.family.name if media.family is not None else "",
                each.plan.width if each.plan is not None else 0,
                each.plan.height if each.plan is not None else 0,
                each.plan.tokens if each.plan is not None else 0,
                each.digest,
                handed.way,
                hold.worker.id,
                each.part.kind,
            )
            for each in media.pictures[:VIEWED_MAX]
        ]
    )
