"""Inflight requests: counts the open ones, and ends those that are left at a shutdown.

Some requests only watch, and would never end by themselves. A drain does not wait for those: they
are not counted, and are ended as soon as the node stops listening. Streams that can go on at another
node are ended then as well.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.ports.drain import OpenWork


class DetachedWork(Protocol):
    """Work without a request, for which a drain waits as it does for requests."""

    changed: Callable[[], None]
    """Called when there is less of it."""

    @property
    def count(self) -> int:
        """How much of it there is."""
        ...

    def cut(self) -> None:
        """End it."""
        ...


class Inflight:
    """All open requests; calls back when one ends. `outliving` is the work without a request."""

    def __init__(self) -> None:
        self.outliving: DetachedWork | None = None
        self.requests: dict[HttpRequest, None] = {}
        """Those that are waited for. Who answers requests counts one in here himself; out again by `remove`, or here as well
        while it is `quiet`."""
        self.quiet = True
        """Whether nobody watches, and nobody is told when one ends."""
        self.movable: dict[HttpRequest, Callable[[], bool]] = {}
        """Streams that may go on at another node, and whether they can at this moment. Who shows one adds and removes it."""
        self._watching: dict[HttpRequest, None] = {}
        self._changed: Callable[[], None] | None = None

    def tell(self, changed: Callable[[], None]) -> None:
        """Set the callback `changed`, for when one ends."""
        self._changed = changed
        self.quiet = False

    @property
    def count(self) -> int:
        """How many requests are open."""
        return len(self.requests)

    @property
    def left(self) -> int:
        """Number of requests and detached work that a drain waits for."""
        return self.count + (self.outliving.count if self.outliving is not None else 0)

    def work(self) -> OpenWork:
        """Return the tenants' open requests; a drain does not wait for watching operators and
        peers.
        """
        begun = [
            request.wire.begun
            for request in self.requests
            if request.route is not None and request.route.access == "data"
        ]
        streams = sum(begun)
        background = 0 if self.outliving is None else self.outliving.count
        return OpenWork(len(begun) - streams, streams, background)

    def sockets(self) -> Mapping[tuple[str, ...], float]:
        """Return how many WebSockets are open, by the path of their route."""
        found: dict[tuple[str, ...], float] = {}
        for request in (*self.requests, *self._watching):
            route = request.route
            if route is not None and route.upgrades and request.wire.begun:
                found[route.path,] = found.get((route.path,), 0.0) + 1.0
        return found

    def remove(self, request: HttpRequest) -> None:
        """Count it out again."""
        if self._watching and request in self._watching:
            del self._watching[request]
            self.quiet = not self._watching and self._changed is None
            return
        del self.requests[request]
        if self._changed is not None:
            self._changed()

    @property
    def watching(self) -> int:
        """How many open requests only watch."""
        return len(self._watching)

    def watch(self, request: HttpRequest) -> None:
        """Mark an open request as one that only watches."""
        del self.requests[request]
        self._watching[request] = None
        self.quiet = False
        if self._changed is not None:
            self._changed()

    def dismiss(self) -> None:
        """End every request that only watches, and every stream that can go on elsewhere."""
        movable = [request for request, can_move in self.movable.items() if can_move()]
        for request in [*self._watching, *movable]:
            request.stop(shutting_down())

    def cut(self) -> None:
        """End every open request, with a shutdown error for its client, and all detached work."""
        if self.outliving is not None:
            self.outliving.cut()
        for request in [*self.requests, *self._watching]:
            request.stop(shutting_down())


def shutting_down() -> SmgError:
    """Return the error for a client whose request did not end before the node."""
    return SmgError(
        ErrorKind.OVERLOADED,
        "the node shut down before this request was finished",
        code="server_shutting_down",
        retry_after_s=1.0,
    )


def draining(*, leaving: bool) -> SmgError:
    """Return the error for a client that comes to a node that is leaving, or was set aside."""
    doing = "is shutting down" if leaving else "was drained by its operator"
    return SmgError(
        ErrorKind.OVERLOADED,
        f"the node {doing}; another one will answer",
        code="draining",
        retry_after_s=1.0,
    )
