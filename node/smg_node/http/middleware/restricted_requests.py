"""Restricted requests: holds requests to what their credential is restricted to: network, API, urgency, model.

The first three are checked where a caller is admitted, the last where a route knows the model. Loaded with the first
credential that has a restriction.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from smg_node.access.restrictions import (
    Restrictions,
    allows_api,
    allows_model,
    allows_peer,
    allows_priority,
)
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.json_cursor import quoted
from smg_node.core.request_context import PRIORITIES, Priority
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.priority import HEADER, claimed_priority
from smg_node.http.ports.node import ModelView
from smg_node.http.route_table import Route

_NOT_FOUND: Final = "model_not_found"


def check_request(request: HttpRequest, restrictions: Restrictions) -> None:
    """Return if the credential may be used for this request, whatever its model is; FORBIDDEN
    `network_not_allowed`, `route_not_allowed`, `priority_not_allowed`.
    """
    if not allows_peer(restrictions, request.peer):
        raise _refused(
            "the credential may not be used from this address", "network_not_allowed", None
        )
    api = "" if request.route is None else api_of(request.route)
    if not allows_api(restrictions, api):
        raise _refused(f"the credential is not for routes of {api}", "route_not_allowed", None)
    claimed = claimed_priority(request.headers)
    if claimed is not None and not allows_priority(restrictions, claimed):
        raise _refused(
            f"the credential may not claim to be {claimed}", "priority_not_allowed", HEADER
        )


def check_model(restrictions: Restrictions, name: str) -> None:
    """Return if a model may be asked for by that name; NOT_FOUND `model_not_found` otherwise."""
    if not allows_model(restrictions, name):
        raise _unknown(name)


def concealed(error: SmgError, name: str) -> SmgError:
    """Return the error for a model that does not exist, without the names of others, which it may not know."""
    return _unknown(name) if error.code == _NOT_FOUND else error


def visible_models(restrictions: Restrictions, served: Sequence[ModelView]) -> list[ModelView]:
    """Return the models that may be asked for by any name, each under such names only.

    One that may be asked for by aliases alone goes by the first of them.
    """
    found: list[ModelView] = []
    for view in served:
        names = [name for name in (view.id, *view.aliases) if allows_model(restrictions, name)]
        if names:
            found.append(replace(view, id=names[0], aliases=tuple(names[1:])))
    return found


def bounded_priority(restrictions: Restrictions, priority: Priority) -> Priority:
    """Return the class of a request: no more urgent than its credential may be."""
    if restrictions.max_priority is None:
        return priority
    return max(priority, restrictions.max_priority, key=PRIORITIES.index)


def api_of(route: Route) -> str:
    """Return the name of a route's API in restrictions; "" for what every credential may ask of its own."""
    if route.access != "data":
        return "admin" if route.access != "public" else ""
    if route.permission in ("models", "usage.own"):
        return ""
    if route.permission == "tools.use":
        return "mcp"
    if route.dialect:
        return route.dialect
    name = route.path.removeprefix("/v1").split("/")[1]
    return {"conversations": "responses", "detokenize": "tokenize"}.get(name, name)


def _unknown(name: str) -> SmgError:
    return SmgError(
        ErrorKind.NOT_FOUND,
        f"the model {quoted(name)} does not exist here; GET /v1/models lists those that do",
        where="model",
        code=_NOT_FOUND,
    )


def _refused(message: str, code: str, where: str | None) -> SmgError:
    return SmgError(ErrorKind.FORBIDDEN, message, code=code, where=where)
