"""The requests being answered now: how many there are, and a way to end those that are left.

Some requests only watch, and would never end by themselves. A farewell does not wait for those: they are
not counted, and are ended as soon as the node stops listening.
"""

from collections.abc import Callable
from typing import Protocol

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.ports.drain import OpenWork


class DetachedWork(Protocol):
    """Work that goes on without a request, and that a farewell waits for as it does for requests."""

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
    """Knows every open request; tells who wants to know when one ends. `outliving` is what goes on without any."""

    def __init__(self) -> None:
        self.outliving: DetachedWork | None = None
        self.requests: dict[HttpRequest, None] = {}
        """Those that are waited for. Who answers requests counts one in here himself; out again by `remove`, or here as well
        while it is `quiet`."""
        self.quiet = True
        """Whether nobody watches, and nobody is told when one ends."""
        self._watching: dict[HttpRequest, None] = {}
        self._changed: Callable[[], None] | None = None

    def tell(self, changed: Callable[[], None]) -> None:
        """Call `changed` when one ends, from now on."""
        self._changed = changed
        self.quiet = False

    @property
    def count(self) -> int:
        """How many requests are open."""
        return len(self.requests)

    @property
    def left(self) -> int:
        """How much a farewell waits for."""
        return self.count + (self.outliving.count if self.outliving is not None else 0)

    def work(self) -> OpenWork:
        """Return what is open of tenants: operators and peers who look on are not waited for."""
        begun = [
            request.wire.begun
            for request in self.requests
            if request.route is not None and request.route.access == "data"
        ]
        streams = sum(begun)
        background = 0 if self.outliving is None else self.outliving.count
        return OpenWork(len(begun) - streams, streams, background)

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
        """Take an open request for one that only watches, from now on."""
        del self.requests[request]
        self._watching[request] = None
        self.quiet = False
        if self._changed is not None:
            self._changed()

    def dismiss(self) -> None:
        """End every request that only watches."""
        for request in list(self._watching):
            request.stop(shutting_down())

    def cut(self) -> None:
        """End every open request; its client is told that the node is shutting down. And what has no request."""
        if self.outliving is not None:
            self.outliving.cut()
        for request in [*self.requests, *self._watching]:
            request.stop(shutting_down())


def shutting_down() -> SmgError:
    """Return what a client hears whose request outlived the node."""
    return SmgError(
        ErrorKind.OVERLOADED,
        "the node shut down before this request was finished",
        code="server_shutting_down",
        retry_after_s=1.0,
    )


def draining(*, leaving: bool) -> SmgError:
    """Return what a client hears who comes to a node that is leaving, or was set aside."""
    doing = "is shutting down" if leaving else "was drained by its operator"
    return SmgError(
        ErrorKind.OVERLOADED,
        f"the node {doing}; another one will answer",
        code="draining",
        retry_after_s=1.0,
    )
