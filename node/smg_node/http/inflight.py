"""The requests being answered now: how many there are, and a way to end those that are left."""

from collections.abc import Callable

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.request import HttpRequest


class Inflight:
    """Knows every open request; tells `changed` when one ends."""

    def __init__(self) -> None:
        self._requests: dict[HttpRequest, None] = {}
        self.changed: Callable[[], None] | None = None

    @property
    def count(self) -> int:
        """How many requests are open."""
        return len(self._requests)

    def add(self, request: HttpRequest) -> None:
        """Count a request in."""
        self._requests[request] = None

    def remove(self, request: HttpRequest) -> None:
        """Count it out again."""
        del self._requests[request]
        if self.changed is not None:
            self.changed()

    def cut(self) -> None:
        """End every open request; its client is told that the node is shutting down."""
        for request in list(self._requests):
            request.stop(shutting_down())


def shutting_down() -> SmgError:
    """Return what a client hears whose request outlived the node."""
    return SmgError(
        ErrorKind.OVERLOADED,
        "the node shut down before this request was finished",
        code="server_shutting_down",
        retry_after_s=1.0,
    )


def draining() -> SmgError:
    """Return what a client hears who comes to a node that is leaving."""
    return SmgError(
        ErrorKind.OVERLOADED,
        "the node is shutting down; another one will answer",
        code="draining",
        retry_after_s=1.0,
    )
