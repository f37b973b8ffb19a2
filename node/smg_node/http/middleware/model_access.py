"""Model access: whether the caller of a request may ask for its model; without restrictions it costs one comparison."""

from collections.abc import Sequence

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.ports.node import ModelView


def allow_model(request: HttpRequest) -> None:
    """Return if the request's caller may ask for its `model`; NOT_FOUND `model_not_found` otherwise."""
    restrictions = request.standing.identity.restrictions
    if restrictions is None:
        return
    from smg_node.http.middleware.restricted_requests import check_model

    check_model(restrictions, request.model)


def visible(request: HttpRequest, served: Sequence[ModelView]) -> Sequence[ModelView]:
    """Return the models that the request's caller may ask for, under the names that it may ask for."""
    restrictions = request.standing.identity.restrictions
    if restrictions is None:
        return served
    from smg_node.http.middleware.restricted_requests import visible_models

    return visible_models(restrictions, served)


def may_ask(request: HttpRequest, model: str) -> bool:
    """Whether the request's caller may ask for a model by that name."""
    restrictions = request.standing.identity.restrictions
    if restrictions is None:
        return True
    from smg_node.access.restrictions import allows_model

    return allows_model(restrictions, model)
