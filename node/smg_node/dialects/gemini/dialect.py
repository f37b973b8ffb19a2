"""Dialect of generateContent: its reader, presenter and error envelope."""

from functools import partial
from typing import Any

from smg_node.core.errors import SmgError
from smg_node.dialects import google_errors
from smg_node.dialects.dialect import UNKNOWN, Caller, ParsedBody, Presenter
from smg_node.dialects.gemini.presenter import KEEPALIVE, GeminiPresenter
from smg_node.dialects.gemini.reader import GeminiReader
from smg_node.dialects.gemini.signatures import signature_of
from smg_node.dialects.gemini.view import GeminiView
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import ThoughtSeals


class GeminiDialect:
    """`POST /v1beta/models/M:generateContent` and its kin."""

    name = "gemini"
    keepalive = KEEPALIVE

    def __init__(self, options: ReaderOptions, seals: ThoughtSeals) -> None:
        self._seals = seals
        self._reader = GeminiReader(options, seals)

    def read_plain(self, _raw: bytes) -> ParsedBody[GeminiView] | None:
        """Return None: there is no fast reader."""
        return None

    def read(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> ParsedBody[GeminiView]:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        return self._reader.read(body, caller)

    def presenter(self, reading: ParsedBody[GeminiView], caller: Caller = UNKNOWN) -> Presenter:
        """Return the presenter for this parsed body; one generation each."""
        sign = partial(
            signature_of, seals=self._seals, tenant=caller.tenant, model=reading.view.model
        )
        return GeminiPresenter(reading, sign)

    def error_status(self, error: SmgError) -> int:
        """Return the HTTP status of the error; never 501."""
        return google_errors.google_status(error)

    def error_body(self, error: SmgError, request_id: str) -> bytes:
        """Return Google's envelope; it has no place for the request id, the headers carry it."""
        return google_errors.error_body(error)
