"""Model access: whether the caller of a request may ask for its model; without restrictions it costs one comparison."""

from smg_node.http.message.http_request import HttpRequest


def allow_model(request: HttpRequest) -> None:
    """Return if the request's caller may ask for its `model`; NOT_FOUND `model_not_found` otherwise."""
    restrictions = request.standing.identity.restrictions
    if restrictions is None:
        return
    from smg_node.http.middleware.restricted_requests import check_model

    check_model(restrictions, request.model)
