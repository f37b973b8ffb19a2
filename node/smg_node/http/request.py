"""One HTTP request on its way through the node, and what the log will say about it."""

import asyncio
from collections.abc import Mapping

from smg_node.core.errors import SmgError
from smg_node.http.identity import ANYBODY, Identity
from smg_node.http.incoming import Headers, Incoming
from smg_node.http.routes import NO_VALUES, Route
from smg_node.http.wire import Wire
from smg_node.telemetry.scope import Trace

__all__ = ["Headers", "HttpRequest"]


class HttpRequest:
    """What a route sees. `values` are the `{…}` parts of the path, `query` its parameters."""

    __slots__ = (
        "body",
        "cut",
        "error_code",
        "facts",
        "headers",
        "identity",
        "incoming",
        "method",
        "model",
        "path",
        "peer",
        "query",
        "received_s",
        "reply_headers",
        "request_id",
        "route",
        "task",
        "trace",
        "values",
        "wire",
        "worker",
    )

    def __init__(
        self,
        incoming: Incoming,
        path: str,
        query: Mapping[str, str],
        wire: Wire,
        received_s: float,
        request_id: str,
        trace: Trace,
    ) -> None:
        self.incoming = incoming
        self.facts = incoming.facts
        self.method = incoming.method
        self.headers = incoming.headers
        self.body = incoming.body
        self.peer = incoming.line.peer
        self.path = path
        self.query = query
        self.wire = wire
        self.received_s = received_s
        self.request_id = request_id
        self.trace = trace
        self.route: Route | None = None
        self.values: Mapping[str, str] = NO_VALUES
        self.reply_headers: dict[str, str] = {"x-request-id": request_id, "request-id": request_id}
        """Headers of the answer, whether it succeeds or fails."""
        self.task: asyncio.Task[object] | None = None
        self.identity: Identity = ANYBODY
        """Who asks, once the guard has looked."""
        self.cut: SmgError | None = None
        """Why the node itself ends this request, if it does."""
        self.model = ""
        self.worker = ""
        self.error_code = ""

    def stop(self, error: SmgError) -> None:
        """End this request now; its client is told `error`."""
        if self.cut is None and self.task is not None:
            self.cut = error
            self.task.cancel()
