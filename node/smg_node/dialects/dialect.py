"""Dialect: interface of one public API: a reader, a presenter and an error envelope.

The reader turns a decoded JSON body into a `GenerateRequest` plus a `View`: what only the presenter
needs (is usage requested, which object names). The presenter turns events into bytes. No dialect is
built from another. What an API takes from the request's head is in its `Caller`.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from smg_node.core.cooperative_steps import Steps
from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import GenerateRequest

PLAIN_LEVELS: Final = 3
"""How deep a plain body nests at most: messages in a list in an object."""

COMMENT: Final = b": ping\n\n"
"""Keep-alive of APIs whose clients skip comments."""

ViewT = TypeVar("ViewT")


class Caller(Protocol):
    """What a dialect may know of a request besides its body."""

    @property
    def request_id(self) -> str:
        """Id of the request, as its answer's headers have it."""
        ...

    @property
    def tenant(self) -> str:
        """Tenant of the key that the request came with, "" without one."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Request headers, with names in lower case."""
        ...

    @property
    def values(self) -> Mapping[str, str]:
        """The `{…}` parts of the route's path."""
        ...

    @property
    def query(self) -> Mapping[str, str]:
        """Query parameters."""
        ...


class Unknown:
    """Caller of whom nothing is known: a body without a request around it."""

    request_id: str = ""
    tenant: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    values: Mapping[str, str] = MappingProxyType({})
    query: Mapping[str, str] = MappingProxyType({})


UNKNOWN: Final = Unknown()


class ParsedBody(msgspec.Struct, Generic[ViewT], frozen=True, gc=False):
    """A parsed body: the request and the presenter's view."""

    request: GenerateRequest
    view: ViewT


class Presenter(Protocol):
    """Renders one generation. One object per request; a stream feeds it in order."""

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the SSE bytes for these events, possibly empty; ends with [DONE] at End.

        A Fail becomes an in-stream error frame, without [DONE].
        """
        ...

    def around(self) -> FrameTemplate | None:
        """Return the template around the text of a delta of the first choice's open block, if it is
        the same for all of them, holds nothing but the text, and rendering changes no state here.
        """
        ...

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        ...


class Dialect(Protocol):
    """One public API."""

    name: str
    keepalive: bytes
    """Written into a stream that has been silent for long; clients skip it."""

    def read_plain(self, raw: bytes) -> ParsedBody[Any] | None:
        """Return the parsed body if it is plain enough for the fast reader; None for any other,
        right or wrong.
        """
        ...

    def read(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> ParsedBody[Any]:
        """Return the parsed body. Raises INVALID_REQUEST naming the JSON path; every problem found
        in one pass is in the message, at most ten.
        """
        ...

    def presenter(self, reading: ParsedBody[Any], caller: Caller = UNKNOWN) -> Presenter:
        """Return the presenter for this parsed body."""
        ...

    def error_status(self, error: SmgError) -> int:
        """Return the HTTP status that clients of this API know for an error."""
        ...

    def error_body(self, error: SmgError, request_id: str) -> bytes:
        """Return the JSON error envelope of this dialect."""
        ...


@runtime_checkable
class SteppedReader(Protocol):
    """A dialect that reads bodies in steps: its clients send conversations of megabytes."""

    def read_steps(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> Steps[ParsedBody[Any]]:
        """Return what `read` does, in steps of bounded work."""
        ...


def reading_steps(dialect: Dialect, body: dict[str, Any], caller: Caller) -> Steps[ParsedBody[Any]]:
    """Return the parsed body, read in the steps of its dialect; in one where it has none."""
    if isinstance(dialect, SteppedReader):
        return (yield from dialect.read_steps(body, caller))
    return dialect.read(body, caller)
