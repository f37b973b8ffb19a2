"""Dialect of Messages: its reader, presenter and error envelope."""

from collections.abc import Callable
from typing import Any, Final

from smg_node.core.cooperative_steps import Steps
from smg_node.core.errors import SmgError
from smg_node.dialects.dialect import UNKNOWN, Caller, ParsedBody, Presenter
from smg_node.dialects.messages import errors
from smg_node.dialects.messages.fast_presenter import PlainPresenter, is_plain
from smg_node.dialects.messages.message_object import Signer
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.request.reader import CountedBody, MessagesReader
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import ThoughtSeals

BETAS: Final = "anthropic-beta"
TOKEN_COUNT: Final = "thinking-token-count-2026-05-13"
"""Beta of clients that want to know how much is thought which they are not shown."""


class MessagesDialect:
    """`POST /v1/messages`."""

    name = "messages"
    keepalive = b'event: ping\ndata: {"type":"ping"}\n\n'

    def __init__(
        self, options: ReaderOptions, seals: ThoughtSeals, monotonic_s: Callable[[], float]
    ) -> None:
        self._reader = reader = MessagesReader(options, seals)
        self._seals = seals
        self._monotonic_s = monotonic_s
        # Its own method: nothing is to be done in between.
        self.read_plain: Callable[[bytes], ParsedBody[MessagesView] | None] = reader.read_plain
        """Returns what a plain body asks for; None for any other, right or wrong."""

    def read(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> ParsedBody[MessagesView]:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        return self._reader.read(body, caller)

    def read_steps(
        self, body: dict[str, Any], caller: Caller = UNKNOWN
    ) -> Steps[ParsedBody[MessagesView]]:
        """Return what `read` does, in steps: for conversations of megabytes."""
        return self._reader.read_steps(body, caller)

    def count_steps(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> Steps[CountedBody]:
        """Return the prompt of a body whose tokens are to be counted; errors as `read` has them."""
        return self._reader.count_steps(body, caller)

    def presenter(self, reading: ParsedBody[MessagesView], caller: Caller = UNKNOWN) -> Presenter:
        """Return the presenter for this parsed body; one generation each."""
        if reading.request.alike and is_plain(reading.view):
            return PlainPresenter(reading, caller, self._seals)
        omitted = reading.view.display == "omitted"
        signer = Signer(
            self._seals, tenant=caller.tenant, model=reading.request.model, omitted=omitted
        )
        counts = omitted and TOKEN_COUNT in caller.headers.get(BETAS, "")
        clock = self._monotonic_s if counts else None
        if reading.request.serving is not None:
            from smg_node.dialects.messages.tool_runs.presenter import ServedPresenter

            return ServedPresenter(reading, caller.request_id, signer, clock)
        return MessagesPresenter(reading, caller.request_id, signer, clock)

    def error_status(self, error: SmgError) -> int:
        """Return the HTTP status that clients of this API know for an error."""
        return errors.status_of(error)

    def error_body(self, error: SmgError, request_id: str) -> bytes:
        """Return the envelope, with the request's id in it."""
        return errors.error_body(error, request_id)
