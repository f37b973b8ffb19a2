"""Dialect of Chat Completions: its reader, presenter and error envelope."""

from collections.abc import Callable
from typing import Any

from smg_node.core.errors import SmgError
from smg_node.dialects import openai_errors
from smg_node.dialects.chat.fast_presenter import PlainPresenter
from smg_node.dialects.chat.presenter import ChatPresenter
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import COMMENT, UNKNOWN, Caller, ParsedBody, Presenter
from smg_node.dialects.options import ReaderOptions


class ChatDialect:
    """`POST /v1/chat/completions`."""

    name = "chat"
    keepalive = COMMENT

    def __init__(self, options: ReaderOptions) -> None:
        self._reader = reader = ChatReader(options)
        # Its own method: nothing is to be done in between.
        self.read_plain: Callable[[bytes], ParsedBody[ChatView] | None] = reader.read_plain
        """Returns what a plain body asks for; None for any other, right or wrong."""

    def read(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> ParsedBody[ChatView]:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        return self._reader.read(body, caller.headers)

    def presenter(self, reading: ParsedBody[ChatView], caller: Caller = UNKNOWN) -> Presenter:
        """Return the presenter for this parsed body; one generation each."""
        if reading.request.alike and reading.view.plain:
            return PlainPresenter(reading)
        if reading.request.serving is not None:
            from smg_node.dialects.chat.tool_runs.presenter import ServedPresenter

            return ServedPresenter(reading)
        return ChatPresenter(reading)

    def error_status(self, error: SmgError) -> int:
        """Return the HTTP status of the error."""
        return error.status

    def error_body(self, error: SmgError, request_id: str) -> bytes:
        """Return the OpenAI envelope; it has no place for the request id, the headers carry it."""
        return openai_errors.error_body(error)
