"""Socket actions: builds the function behind each route that is a WebSocket, with its first client."""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from smg_node.http.http_parts import HttpParts
from smg_node.http.middleware.inflight import Inflight
from smg_node.http.middleware.middleware import Action
from smg_node.http.sockets.own_door import OwnDoor

if TYPE_CHECKING:
    from smg_node.http.routes.sockets.realtime_socket import RealtimeSocketRoutes
    from smg_node.http.routes.sockets.responses_socket import ResponsesSocketRoutes


def socket_actions(parts: HttpParts, inflight: Inflight, door: OwnDoor) -> Mapping[str, Action]:
    """Return the actions of the routes that are WebSockets; what they ask of the node itself goes in by `door`."""

    @cache
    def responses() -> "ResponsesSocketRoutes":
        from smg_node.http.routes.sockets.responses_socket import ResponsesSocketRoutes

        return ResponsesSocketRoutes(parts, inflight, door)

    @cache
    def realtime() -> "RealtimeSocketRoutes":
        from smg_node.http.routes.sockets.realtime_socket import RealtimeSocketRoutes

        # Its seed is an id, which comes of the node's own chance.
        return RealtimeSocketRoutes(parts, inflight, Random(parts.ids.new("")))

    return {
        "responses_socket": lambda request: responses().serve(request),
        "realtime_socket": lambda request: realtime().serve(request),
    }
