"""Picture steps: what a generation whose prompt has pictures does beside others; loaded with the first one."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from smg_node.core.journey import VIEWED_MAX, Journey, Viewed
from smg_node.engines.engine import TensorTransport
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.media.prompt_media import PromptMedia
from smg_node.pipeline.media.rule_groups import values_of
from smg_node.pipeline.placement.placement_request import PlacementRequest
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.policy import PromptPictures

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

    return replace(wish, places=media.places, fits=fits, why_not=why_not, pictures=_pictures(media))


def _pictures(media: PromptMedia) -> PromptPictures | None:
    """Return what policies look at; None where the node does not know which places the pictures have."""
    ranges = media.ranges
    if not ranges:
        return None
    items = [(each.offset + each.length, each.tokens) for each in ranges]
    first = ranges[0]
    return PromptPictures(bytes.fromhex(first.digest[:16]), first.offset, tuple(items))


async def finish(media: PromptMedia, hold: Reservation, ids: "TokenIds", journey: Journey) -> None:
    """Finish the pictures for the reserved worker, before its call has begun and a refusal has its own status."""
    handed = await media.handed(hold.seeing, ids)
    transport, worker = "", hold.caching[0].id
    if handed.way == "tensors":
        seer = hold.seer
        transport = seer.transport_of(handed.media) if isinstance(seer, TensorTransport) else ""
        # The family's own: a journal has thousands of journeys.
        journey.processor = tuple(values_of(media.family))
    journey.pictures = tuple(
        [
            Viewed(
                media.family.name if media.family is not None else "",
                each.plan.width if each.plan is not None else 0,
                each.plan.height if each.plan is not None else 0,
                each.plan.tokens if each.plan is not None else 0,
                each.digest,
                handed.way,
                worker,
                transport,
            )
            for each in media.pictures[:VIEWED_MAX]
        ]
    )
