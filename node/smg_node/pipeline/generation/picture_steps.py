"""Picture steps: what a generation whose prompt has pictures does beside others; loaded with the first one."""

from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.journey import VIEWED_MAX, Journey, Viewed
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.served_model import ServedModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.media.media_ways import known_to, ways_of
from smg_node.pipeline.media.prompt_media import PromptMedia
from smg_node.pipeline.media.rule_groups import values_of
from smg_node.pipeline.placement.placement_request import PlacementRequest
from smg_node.pipeline.prompt.preparation import Prepared
from smg_node.pipeline.prompt.prompt_fit import fit
from smg_node.pipeline.prompt.request_bounds import request_bounds
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.policy import PromptPictures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smg_node.pipeline.generation.call_plan import Leg


def placement_with_pictures(wish: PlacementRequest, media: PromptMedia) -> PlacementRequest:
    """Return the needs of a call with pictures: a worker that takes them, and what tells them apart in its cache."""

    def fits(worker: Worker) -> bool:
        return worker.card is not None and media.fits(worker.card)

    def why_not(worker: Worker) -> str:
        return (
            "has not said yet what it takes" if worker.card is None else media.why_not(worker.card)
        )

    def encodes(worker: Worker) -> bool:
        return worker.card is not None and _encodes(worker.card, media)

    encodable = tuple([(each.digest, each.tokens) for each in media.ranges])
    return replace(
        wish,
        places=media.places,
        pictures=_pictures(media),
        encodable=encodable,
        fits=fits,
        why_not=why_not,
        encodes=encodes,
    )


def _encodes(card: ModelCard, media: PromptMedia) -> bool:
    """Whether an engine can be handed the tensors of each of these alone: made by its rules, and of a kind it takes."""
    takes, counts = card.media, media.counts
    known = known_to(card, media.family, media.files, counts)
    return (
        takes is not None
        and "tensors" in ways_of(takes, family=known, where=media.where, kinds=counts)
        and all(takes.items_max.get(kind, 1) for kind in counts)
    )


def _pictures(media: PromptMedia) -> PromptPictures | None:
    """Return what policies look at; None where the node does not know which places the pictures have."""
    ranges = media.ranges
    if not ranges:
        return None
    items = [(each.offset + each.length, each.tokens) for each in ranges]
    first = ranges[0]
    return PromptPictures(bytes.fromhex(first.digest[:16]), first.offset, tuple(items))


def check_length(request: GenerateRequest, prepared: Prepared, model: ServedModel) -> None:
    """Refuse a prompt that no worker of the model takes, as `prompt_fit` does, before its pictures are made.

    How many places they have in it follows from their sizes.
    """
    media = prepared.media
    assert media is not None, "others are checked when they are placed"
    refusals: list[tuple[int, SmgError]] = []
    for card in media.cards:
        bounds = request_bounds(model, card)
        try:
            fit(prepared, request, bounds, request.sampling.constraint)
        except SmgError as error:
            refusals.append((bounds.prompt_max or 0, error))
        else:
            return
    if refusals:
        # Where workers differ, the one that takes the longest is told of.
        raise max(refusals, key=itemgetter(0))[1]


async def finish(
    media: PromptMedia, hold: Reservation, legs: "Sequence[Leg]", journey: Journey, until_s: float
) -> None:
    """Finish the pictures for the reserved worker, before its call has begun and a refusal has its own status.

    `until_s` is until when its calls may take.
    """
    handed = await media.handed(hold.seeing, legs[0].ids)
    media.calls([leg.first for leg in legs], until_s)
    if handed.way == "tensors" and media.family is not None and media.family.modality == "image":
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
                hold.caching[0].id,
                media.maker(each) if handed.way == "tensors" else "engine",
                modality=each.part.kind,
            )
            for each in media.pictures[:VIEWED_MAX]
        ]
    )


def went(journey: Journey, worker: str, *, shared: bool) -> None:
    """Note how the tensors went to that worker, where it was the first one."""
    transport = "shared memory" if shared else "message"
    journey.pictures = tuple(
        [
            replace(one, transport=transport)
            if one.way == "tensors" and one.worker == worker and not one.transport
            else one
            for one in journey.pictures
        ]
    )
