"""Own door: whoever answers the requests of the public listener, for sockets that make requests themselves."""

from collections.abc import Awaitable
from typing import Protocol

from smg_node.http.message.http_request import HttpRequest


class Serves(Protocol):
    """Whoever answers the requests of a listener."""

    def serve(self, incoming: HttpRequest) -> Awaitable[bool]:
        """Answer one request and say whether its connection goes on."""
        ...


class OwnDoor:
    """The public listener's dispatcher, which is known when the routes are; before it asks proxies whom a request is from."""

    def __init__(self) -> None:
        self._serves: Serves | None = None

    def lead_to(self, serves: Serves) -> None:
        """Set whoever answers."""
        self._serves = serves

    def serve(self, incoming: HttpRequest) -> Awaitable[bool]:
        """Answer one request and say whether its connection goes on."""
        assert self._serves is not None, "the server has not begun"
        return self._serves.serve(incoming)
