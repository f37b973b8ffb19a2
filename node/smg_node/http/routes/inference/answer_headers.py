"""Answer headers of generations: how a request was served, also noted in the access log."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import GenerateRequest
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.event_stream import HEADERS
from smg_node.http.message.head_findings import NO_HEADERS, HeadHints
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import JSON, LIMITS, Form, Lines, Reply, name_list
from smg_node.http.middleware.error_replies import family_of
from smg_node.http.route_table import is_openais
from smg_node.pipeline.generation.run_interface import Run

_OPENAI_VERSION: Final = "2020-10-01"
_OPENAI_LINES: Final[Lines] = (("openai-processing-ms", None), ("openai-version", _OPENAI_VERSION))


class Answering(msgspec.Struct):
    """One generation and its answer headers; `more` returns those of its API."""

    parts: HttpParts
    request: HttpRequest
    wish: GenerateRequest
    run: Run
    more: Callable[[], Mapping[str, str]] | None = None

    def shaped(self, body: bytes = b"") -> Reply | None:
        """Finish the notes of a good answer and return it, or without a body the head of its
        stream.

        It has the headers of `note`; None for an answer with headers that are not always there.
        Good answers to one head have the same headers, which are put together once: filling in
        their values takes a third of the time of `note`.
        """
        request, run, asked = self.request, self.run, self.request.standing.asked
        worker = run.worker
        if (
            asked is None
            or not asked.shapes
            or not worker
            or run.ignored
            or self.wish.ignored
            or self.more is not None
            or request.own_headers is not None
        ):
            return None
        request.worker = worker
        ticket, request_id = run.ticket, request.request_id
        limits = NO_HEADERS if ticket is None else ticket.headers(asked.family)
        form = asked.whole_form if body else asked.stream_form
        if form is None or form.limits != [*limits]:
            form = self._form(asked, [*limits], whole=bool(body))
        values: tuple[object, ...]
        if asked.openais:
            taken_ms = int((self.parts.clock.monotonic_s() - request.received_s) * 1000 + 0.5)
            values = (request_id, request_id, taken_ms, *limits.values(), run.attempts, worker)
        else:
            values = (request_id, request_id, *limits.values(), run.attempts, worker)
        if body:
            values += (len(body),)
        return Reply(200, body, form=form, values=values)

    def noted(self, body: bytes) -> Reply:
        """Finish the notes of a whole answer and return it."""
        self.over()
        return Reply(200, body)

    def head(self) -> Mapping[str, str] | Reply:
        """Note what is known now; return the head of a stream, or its own headers."""
        return self.shaped() or self.note()

    def _form(self, asked: HeadHints, limits: list[str], *, whole: bool) -> Form:
        """Make the form of such answers, and cache it for the next one."""
        request = self.request
        kind: Mapping[str, str | None] = {"content-type": JSON} if whole else HEADERS
        lines: Lines = (
            *kind.items(),
            ("x-request-id", None),
            ("request-id", None),
            *request.standing.reply_headers.items(),
            *(_OPENAI_LINES if asked.openais else ()),
            LIMITS,
            ("x-smg-node", self.parts.identity.node),
            ("x-smg-attempts", None),
            ("x-smg-routed-worker-id", None),
            *([("content-length", None)] if whole else []),
        )
        form = request.wire.heads.form(lines, limits)
        if whole:
            asked.whole_form = form
        else:
            asked.stream_form = form
        return form

    def note(self) -> Mapping[str, str]:
        """Set the answer's headers and the access log's fields from what is known now; return the
        headers.
        """
        request, run, parts = self.request, self.run, self.parts
        worker = request.worker = run.worker
        # `note_request`, in here: every generation comes by.
        headers, options = request.reply_headers, parts.options
        if is_openais(request.route):
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
        if self.more is not None:
            headers.update(self.more())
        return headers

    def over(self) -> None:
        """Finish the notes, and count ignored parameters."""
        if self.request.wire.begun:
            # Its headers are out.
            self.request.worker = self.run.worker
        else:
            self.note()
        for name in self.run.ignored or self.wish.ignored:
            self.parts.meters.ignored_parameter(name)


def note_request(parts: HttpParts, request: HttpRequest) -> dict[str, str]:
    """Set the headers with the node and the time so far; return the headers."""
    headers = request.reply_headers
    if is_openais(request.route):
        taken_s = parts.clock.monotonic_s() - request.received_s
        headers["openai-processing-ms"] = str(int(taken_s * 1000 + 0.5))
        headers["openai-version"] = _OPENAI_VERSION
    if parts.options.expose_routing_headers:
        headers["x-smg-node"] = parts.identity.node
    return headers


async def close_events(events: Any) -> None:
    """Close a run's events, which cancels its engine calls."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


def uncancel() -> None:
    """Let the task of a request go on that the node itself has stopped."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
