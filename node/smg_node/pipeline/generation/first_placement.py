"""First placement: what the first call of a generation needs of its worker. Pure."""

from smg_node.core.errors import invalid
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.journey import Journey
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.placement.placement_request import PlacementRequest
from smg_node.pipeline.prompt.preparation import Prepared
from smg_node.routing.routing_keys import KEY_BYTES_MAX


def first_placement(
    context: RequestContext, request: GenerateRequest, first: Prepared, journey: Journey
) -> PlacementRequest:
    """Return the needs of the first call; INVALID_REQUEST for a routing key that is too long."""
    target = context.target_worker
    return PlacementRequest(
        context.deadline_s,
        first.ids,
        first.text,
        None,
        checked_key(request.routing_key) if request.routing_key else "",
        context.caller,
        context.client,
        request.sampling.adapter or "",
        context.priority,
        target,
        why="first" if target is None else "target",
        journey=journey,
    )


def checked_key(key: str | None) -> str:
    """Return a request's routing key, "" for none; INVALID_REQUEST for one that is too long."""
    if not key:
        return ""
    size_bytes = len(key.encode("utf-8", "surrogatepass"))
    if size_bytes > KEY_BYTES_MAX:
        raise invalid(
            f"the routing key has {size_bytes} bytes; at most {KEY_BYTES_MAX} are allowed",
            code="routing_key_too_long",
        )
    return key
