"""Dialect of Completions: its reader, presenter and error envelope."""

from typing import Any

from smg_node.core.errors import SmgError
from smg_node.dialects import openai_errors
from smg_node.dialects.completions.presenter import CompletionsPresenter
from smg_node.dialects.completions.reader import CompletionsReader
from smg_node.dialects.dialect import COMMENT, UNKNOWN, Caller, ParsedBody, Presenter
from smg_node.dialects.openai.view import View
from smg_node.dialects.options import ReaderOptions


class CompletionsDialect:
    """`POST /v1/completions`."""

    name = "completions"
    keepalive = COMMENT

    def __init__(self, options: ReaderOptions) -> None:
        self._reader = CompletionsReader(options)

    def read_plain(self, _raw: bytes) -> ParsedBody[View] | None:
        """Return None: there is no fast reader."""
        return None

    def read(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> ParsedBody[View]:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        return self._reader.read(body)

    def presenter(self, reading: ParsedBody[View], caller: Caller = UNKNOWN) -> Presenter:
        """Return the presenter for this parsed body; one generation each."""
        return CompletionsPresenter(reading)

    def error_status(self, error: SmgError) -> int:
        """Return the HTTP status of the error."""
        return error.status

    def error_body(self, error: SmgError, request_id: str) -> bytes:
        """Return the OpenAI envelope; it has no place for the request id, the headers carry it."""
        return openai_errors.error_body(error)
