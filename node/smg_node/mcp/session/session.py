"""Session with one server: requests out, messages in, what each means for whoever waits; in both eras. Pure.

A session is what was agreed (revision, session id) and which requests are open. Bytes and connections belong to the
doors: they send what `request` returns, hand every message to `heard`, and do what it returns. Request ids are strings
that no other session of any node uses, because nodes may share a session of the server, and a server that is given an
id twice never answers the first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from smg_node import __version__
from smg_node.mcp.failures import METHOD_NOT_FOUND, Failure, FailureKind, plain_text
from smg_node.mcp.revisions import Revision
from smg_node.mcp.wire.headers import SESSION_ID, request_headers
from smg_node.mcp.wire.messages import (
    Answer,
    ErrorAnswer,
    Message,
    Notice,
    ServerRequest,
    write_error,
    write_notification,
    write_request,
    write_result,
)

CLIENT: Final[Mapping[str, str]] = {"name": "smg-node", "version": __version__}
TASKS: Final = "io.modelcontextprotocol/tasks"
_META: Final = "io.modelcontextprotocol/"
_PROGRESS_MAX: Final = 1e15
_OPENERS: Final = ("initialize", "server/discover")
"""Requests that are never cancelled: a server would not know what is meant."""


class Success(NamedTuple):
    """A request that was answered with a result, as JSON text."""

    result: Raw


Outcome: TypeAlias = Success | Failure


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it goes out. `headers` are those of HTTP, names in lower case."""

    id: str
    method: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Notification:
    """What needs no answer: a notification of ours, or our answer to a server's request."""

    body: bytes
    headers: Mapping[str, str]


class Answered(NamedTuple):
    """A request is over."""

    id: str
    outcome: Outcome


class Progressed(NamedTuple):
    """The server says that it is at work on a request: `done` of `total`, None where it does not say, and how."""

    id: str
    message: str = ""
    done: float | None = None
    total: float | None = None


class ToolsChanged(NamedTuple):
    """The list of tools is out of date."""


Effect: TypeAlias = Answered | Progressed | ToolsChanged | Notification


class RequestIds:
    """Source of request ids: `<prefix>.<number>`. The prefix is a node's and one of its lives' (`a.7f3c`)."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._last = 0

    def next(self) -> str:
        """Return an id that was never returned before."""
        self._last += 1
        return f"{self._prefix}.{self._last}"


@dataclass(slots=True)
class ServerFacts:
    """What a server said of itself when it was opened."""

    name: str = ""
    version: str = ""
    instructions: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)


class _Progress(msgspec.Struct, rename="camel"):
    progress_token: Any = None
    message: Any = None
    progress: Any = None
    total: Any = None


_decode_progress: Final = msgspec.json.Decoder(_Progress).decode


def _said_in(revision: Revision) -> Mapping[str, Any]:
    return {
        _META + "protocolVersion": revision.name,
        _META + "clientInfo": CLIENT,
        _META + "clientCapabilities": {"extensions": {TASKS: {}}},
    }


class Session:
    """One session of a revision. `by_http`: requests have headers, and closing an answer means something."""

    def __init__(self, revision: Revision, ids: RequestIds, *, by_http: bool) -> None:
        self.revision = revision
        self.by_http = by_http
        self.session_id = ""
        """The server's id of it, "" where it gave none."""
        self.known = False
        """Whether the server has answered in it as in one that it knows."""
        self.known_s = 0.0
        """When it did so last, by whatever clock its door has."""
        self.scattered = False
        """Whether it was unknown to the server and known again: not all of its replicas know it."""
        self.adopted = False
        """Whether another process opened it."""
        self.ended = False
        """Whether it is used no more."""
        self.facts = ServerFacts()
        self._ids = ids
        self._said: Mapping[str, Any] = _said_in(revision) if revision.modern else {}
        """What each request of the modern era says of us."""
        self._open: dict[str, str] = {}
        """Requests that are not answered, with their methods."""

    @property
    def open_requests(self) -> Iterator[str]:
        """The ids of the requests that are not answered, oldest first."""
        return iter(tuple(self._open))

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        mirrored: tuple[tuple[str, str], ...] = (),
        trace: Mapping[str, str] | None = None,
        meta: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> Request:
        """Return a request that is open now. `mirrored`: tokens and values of arguments that headers repeat.

        `trace` are `traceparent` and `tracestate`, which the server is told in both places. `meta` and `headers` are
        told in one of them only, headers by HTTP alone. `capabilities` are those that this request has beside ours,
        in the modern era.
        """
        assert self.revision.holds(method), f"{method} is not in {self.revision.name}"
        id_ = self._ids.next()
        said: dict[str, Any] = {**self._said, **(trace or {}), **(meta or {})}
        if capabilities and self._said:
            ours = self._said[_META + "clientCapabilities"]
            said[_META + "clientCapabilities"] = {**capabilities, **ours}
        if method not in _OPENERS:
            said["progressToken"] = id_
        whole = {**params, "_meta": said} if said else dict(params)
        sent: dict[str, str] = {}
        if self.by_http:
            own = self._headers(method, params, mirrored)
            sent = {**(headers or {}), **own, **(trace or {})}
        self._open[id_] = method
        return Request(id_, method, write_request(id_, method, whole), sent)

    def initialize(self) -> Request:
        """Return the request that opens a session of the handshake era, offering this revision."""
        params = {"protocolVersion": self.revision.name, "capabilities": {}, "clientInfo": CLIENT}
        return self.request("initialize", params)

    def initialized(self) -> Notification:
        """Return the notification that ends the handshake."""
        return self._notification("notifications/initialized")

    def cancel(self, id_: str, reason: str) -> Notification | None:
        """Close an open request; return what the server is to be told of it, None if nothing.

        It is told nothing of requests that open a session, and nothing by HTTP in the modern era: there, closing the
        answer says it.
        """
        method = self._open.pop(id_, None)
        if method is None or method in _OPENERS or (self.by_http and self.revision.modern):
            return None
        return self._notification("notifications/cancelled", {"requestId": id_, "reason": reason})

    @property
    def busy(self) -> bool:
        """Whether a request is open."""
        return bool(self._open)

    def again(self, request: Request) -> None:
        """Open a request once more that was answered without being worked on."""
        self._open[request.id] = request.method

    def close_request(self, id_: str) -> None:
        """Close a request whose answer will not come, or came otherwise."""
        self._open.pop(id_, None)

    def heard(self, message: Message, *, status: int = 0, asked: str = "") -> Effect | None:
        """Return what a message is to us, None for nothing.

        `asked` is the request whose own answer it came in, `status` the status of that: an error without an id is
        that request's.
        """
        match message:
            case Answer(id=id_, result=result):
                return self._answered(id_, Success(result))
            case ErrorAnswer(id=id_, code=code, message=why, data=about):
                failure = Failure(
                    FailureKind.PROTOCOL,
                    code,
                    why or f"error {code}",
                    error_data=about,
                    status=0 if status == 200 else status,
                )
                return self._answered(id_ if id_ in self._open else asked, failure)
            case ServerRequest(id=request, method=method):
                return self._respond(request, method)
            case Notice():
                return self._noticed(message)

    def stream_headers(self) -> dict[str, str]:
        """Return the headers of this session for requests by GET and DELETE."""
        headers = self._headers("", {}, ())
        return {name: value for name, value in headers.items() if name.startswith("mcp-")}

    def _answered(self, id_: str, outcome: Outcome) -> Answered | None:
        return Answered(id_, outcome) if self._open.pop(id_, None) is not None else None

    def _respond(self, request: bytes, method: str) -> Notification:
        if method == "ping":
            body = write_result(request, {})
        else:
            body = write_error(request, METHOD_NOT_FOUND, "this client offers nothing of that name")
        return Notification(body, self._headers("", {}, ()) if self.by_http else {})

    def _noticed(self, notice: Notice) -> Effect | None:
        if notice.method == "notifications/tools/list_changed":
            return ToolsChanged()
        if notice.method != "notifications/progress":
            return None
        try:
            told = _decode_progress(notice.params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        token = told.progress_token
        if not isinstance(token, str) or token not in self._open:
            return None
        message = plain_text(told.message) if isinstance(told.message, str) else ""
        return Progressed(token, message, _number(told.progress), _number(told.total))

    def _notification(self, method: str, params: Mapping[str, Any] | None = None) -> Notification:
        assert self.revision.holds(method), f"{method} is not in {self.revision.name}"
        headers = self._headers(method, params or {}, ()) if self.by_http else {}
        return Notification(write_notification(method, params), headers)

    def _headers(
        self, method: str, params: Mapping[str, Any], mirrored: tuple[tuple[str, str], ...]
    ) -> dict[str, str]:
        headers = request_headers(self.revision, method, params, mirrored)
        if self.session_id:
            headers[SESSION_ID] = self.session_id
        return headers


def _number(value: Any) -> float | None:
    """Return a finite number, None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= _PROGRESS_MAX:
        return None
    return float(value)
