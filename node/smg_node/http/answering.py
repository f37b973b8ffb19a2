"""What the routes that generate have in common: headers that tell how it went, and ending in order."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from smg_node.core.request import GenerateRequest
from smg_node.http.errors import family_of
from smg_node.http.parts import HttpParts
from smg_node.http.reply import name_list
from smg_node.http.request import HttpRequest
from smg_node.pipeline.run import Run

_OPENAI_VERSION: Final = "2020-10-01"


class Answering:
    """One generation and the headers that tell how it was served; `more` returns those of its API."""

    __slots__ = ("_more", "_parts", "request", "run", "wish")

    def __init__(
        self,
        parts: HttpParts,
        request: HttpRequest,
        wish: GenerateRequest,
        run: Run,
        more: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        self._parts = parts
        self._more = more
        self.request = request
        self.wish = wish
        self.run = run

    def note(self) -> Mapping[str, str]:
        """Put what is known now into the answer's headers and the access log; return the headers."""
        request, run, parts = self.request, self.run, self._parts
        worker = request.worker = run.worker
        # `note_request`, in here: every generation comes by.
        headers, options = request.reply_headers, parts.options
        taken_s = parts.clock.monotonic_s() - request.received_s
        headers["openai-processing-ms"] = str(int(taken_s * 1000 + 0.5))
        headers["openai-version"] = _OPENAI_VERSION
        ticket = run.ticket
        if ticket is not None:
            headers.update(ticket.headers(family_of(request.route)))
        if options.expose_routing_headers:
            headers["x-smg-node"] = parts.identity.node
            headers["x-smg-attempts"] = str(run.attempts)
            if worker:
                headers["x-smg-routed-worker-id"] = worker
        ignored = run.ignored or self.wish.ignored
        if ignored:
            headers["x-smg-ignored-params"] = name_list(ignored)
        if self._more is not None:
            headers.update(self._more())
        return headers

    def over(self) -> None:
        """Take note for the last time, and count what had no effect."""
        if self.request.wire.begun:
            # Its headers are out.
            self.request.worker = self.run.worker
        else:
            self.note()
        for name in self.run.ignored or self.wish.ignored:
            self._parts.meters.ignored_parameter(name)


def note_request(parts: HttpParts, request: HttpRequest) -> dict[str, str]:
    """Put into the answer's headers who answers, and how long it took so far; return the headers."""
    headers = request.reply_headers
    taken_s = parts.clock.monotonic_s() - request.received_s
    headers["openai-processing-ms"] = str(int(taken_s * 1000 + 0.5))
    headers["openai-version"] = _OPENAI_VERSION
    if parts.options.expose_routing_headers:
        headers["x-smg-node"] = parts.identity.node
    return headers


async def close_events(events: Any) -> None:
    """Close a run's events, which cancels what is still under way for them."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


def uncancel() -> None:
    """Let the task of a request go on that the node itself has stopped."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
