"""Control proxy: passes a data process's control requests to the control process, byte for byte.

    client ──▶ data process ──▶ control process, over a UNIX socket

A column of the route table says which process answers. A forwarded request keeps its head, its body
as it arrives, and its client's address, which the control process accepts on no other path; its
answer goes to the client as it comes. When either side closes, so does the other. Without a control
process the client gets OVERLOADED with Retry-After.

Such requests are rare and may be slow: there is a connection for each.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.forwarding.proxied_answer import HEAD_BYTES_MAX, PassedAnswer, passed_answer
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply
from smg_node.http.message.request_head import ClientLine, FramingError
from smg_node.http.message.response_writer import reset
from smg_node.http.middleware.middleware import Action
from smg_node.http.route_table import ROUTES, Route, Router
from smg_node.http.server.connections import Dispatcher

if TYPE_CHECKING:
    from smg_node.access.certificates import ClientCertificate

PEER: Final = "x-smg-peer"
CERTIFICATE: Final = "x-smg-peer-certificate"
"""When a client's certificate expires, in Unix milliseconds, and its name, percent-encoded."""
"""Says to the control process whose request it is; never taken from a client."""
TENANT: Final = "x-smg-peer-tenant"
"""The tenant that a believed proxy named, percent-encoded; never taken from a client."""
_OWN: Final = frozenset(
    {PEER, CERTIFICATE, TENANT, "connection", "keep-alive", "proxy-connection", "transfer-encoding"}
)
"""Headers that end here: what is said of one connection, and what only we say."""
_STEP_BYTES: Final = 65_536
_BROKEN: Final = "the body is not framed as HTTP demands"


class Forwarding:
    """Passes requests on to the control process at the UNIX socket `path`; a drain waits for them.

    `linked` says whether there is one: a socket may exist without a process behind it.
    """

    def __init__(
        self, path: str, linked: Callable[[], bool], routes: Sequence[Route] = ROUTES
    ) -> None:
        """Take `routes`, those at the public address: no others are passed on."""
        self._path: Final = path
        self._linked: Final = linked
        self._router: Final = Router(routes)
        self._here: Final = frozenset(
            (route.method, route.path) for route in routes if route.by == "data"
        )
        self._open: dict[asyncio.Task[Any], None] = {}
        self.changed = _nothing

    def around(self, door: Dispatcher) -> Dispatcher:
        """Return a dispatcher that forwards requests of the control process, and leaves the rest to
        `door`.
        """
        return _ForwardingDoor(self, door)

    def actions(self, actions: Mapping[str, Action]) -> Mapping[str, Action]:
        """Return the actions of this process: for control routes, the error that the control
        process is away.
        """
        elsewhere = {route.action: _away for route in ROUTES if route.by == "control"}
        return {**actions, **elsewhere}

    def is_here(self, incoming: HttpRequest) -> bool:
        """Whether this process answers a request itself."""
        if (
            incoming.head.method,
            incoming.head.target,
        ) in self._here or incoming.method == "OPTIONS":
            return True
        try:
            return self._router.find(incoming.method, incoming.path).route.by == "data"
        except SmgError:
            # There is no such route, which any process can say.
            return True

    # ── What a farewell asks ─────────────────────────────────────────────────

    @property
    def count(self) -> int:
        """Number of requests being forwarded."""
        return len(self._open)

    def cut(self) -> None:
        """End them."""
        for task in list(self._open):
            task.cancel()

    # ── Passing on ───────────────────────────────────────────────────────────

    async def serve(self, incoming: HttpRequest, door: Dispatcher) -> bool:
        """Forward a request; if there was no answer, let `door` report that. Return whether the
        connection goes on.
        """
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = None
        try:
            answer = await self._passed(incoming)
        except (ConnectionError, FramingError):
            return False
        finally:
            del self._open[task]
            self.changed()
        if answer.broken:
            # The client's own body: nobody can tell where its next request would begin.
            if not answer.begun:
                door.unparsed(incoming.line, invalid(_BROKEN, code="invalid_body"))
            return False
        if not answer.begun:
            return await door.serve(incoming)
        if not answer.whole:
            if incoming.line.transport is not None:
                reset(incoming.line.transport)
            return False
        return answer.keep_alive and incoming.body.whole

    async def _passed(self, incoming: HttpRequest) -> PassedAnswer:
        answer = PassedAnswer()
        if not self._linked():
            return answer
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=HEAD_BYTES_MAX)
        except OSError:
            return answer
        lost = False
        try:
            writer.write(_head_of(incoming))
            async with asyncio.TaskGroup() as group:
                body = group.create_task(_pass_body(incoming, writer))
                try:
                    await _pass_answer(incoming, reader, answer)
                finally:
                    body.cancel()
        except* FramingError:
            answer.broken = True
        except* ConnectionError:
            lost = True
        finally:
            writer.transport.abort()
        if lost:
            raise ConnectionResetError("the client is gone")
        return answer


class _ForwardingDoor:
    """Dispatcher of `Forwarding.around`."""

    def __init__(self, forwarding: Forwarding, door: Dispatcher) -> None:
        self._forwarding = forwarding
        self._door = door

    def serve(self, incoming: HttpRequest) -> Coroutine[Any, Any, bool]:
        """Answer one request, here or in the control process."""
        # No coroutine of its own around the one that matters: most requests are for this process.
        if self._forwarding.is_here(incoming):
            return self._door.serve(incoming)
        return self._forwarding.serve(incoming, self._door)

    def unparsed(self, line: ClientLine, error: SmgError) -> None:
        """Answer bytes that are no request."""
        self._door.unparsed(line, error)

    def cut(self, reason: str) -> None:
        """Count a connection that a limit refused or ended."""
        self._door.cut(reason)


class TrustingDoor:
    """The control process's dispatcher for forwarded requests: it takes the client's address and certificate
    from headers.
    """

    def __init__(self, door: Dispatcher) -> None:
        self._door = door

    def serve(self, incoming: HttpRequest) -> Coroutine[Any, Any, bool]:
        """Answer one request."""
        incoming.line.peer = incoming.headers.get(PEER, "")
        incoming.line.certificate = _certificate_in(incoming.headers.get(CERTIFICATE, ""))
        if tenant := incoming.headers.get(TENANT, ""):
            incoming.line = _line_of(incoming.line, unquote(tenant))
        return self._door.serve(incoming)

    def unparsed(self, line: ClientLine, error: SmgError) -> None:
        """Answer bytes that are no request."""
        self._door.unparsed(line, error)

    def cut(self, reason: str) -> None:
        """Count a connection that a limit ended."""
        self._door.cut(reason)


class Trusting:
    """The control process's side: it answers all forwarded requests, and trusts the forwarding
    process.
    """

    def actions(self, actions: Mapping[str, Action]) -> Mapping[str, Action]:
        """Return all actions unchanged."""
        return actions

    def around(self, door: Dispatcher) -> Dispatcher:
        """Return the dispatcher for forwarded requests."""
        return TrustingDoor(door)


async def _away(request: HttpRequest) -> Reply:
    raise SmgError(
        ErrorKind.OVERLOADED,
        "the process of this node that answers this is being started; come again",
        code="control_away",
        retry_after_s=1.0,
    )


def _nothing() -> None:
    return


def _head_of(incoming: HttpRequest) -> bytes:
    version = "HTTP/1.1" if incoming.head.http11 else "HTTP/1.0"
    lines = [f"{incoming.method} {incoming.head.target} {version}".encode("latin-1")]
    lines += [
        b"%b: %b" % (name, value)
        for name, value in incoming.head.raw
        if name.decode("latin-1").lower() not in _OWN
    ]
    if _is_chunked(incoming):
        lines.append(b"transfer-encoding: chunked")
    lines.append(f"{PEER}: {incoming.line.peer}".encode("latin-1"))
    certificate = incoming.line.certificate
    if certificate is not None:
        said = f"{CERTIFICATE}: {certificate.expires_ms} {quote(certificate.name, safe='')}"
        lines.append(said.encode("latin-1"))
    # Only the line of a request from a believed proxy has one.
    if tenant := getattr(incoming.line, "tenant", ""):
        lines.append(
            f"{TENANT}: {quote(tenant, safe='', errors='surrogateescape')}".encode("latin-1")
        )
    # One request a connection: its end is then the end of the answer, however that is framed.
    lines.append(b"connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _line_of(line: ClientLine, tenant: str) -> ClientLine:
    from smg_node.http.middleware.proxied_line import ProxiedLine

    return ProxiedLine(line, line.peer, line.certificate, tenant)


def _certificate_in(said: str) -> "ClientCertificate | None":
    if not said:
        return None
    from smg_node.access.certificates import ClientCertificate

    expires_ms, _, name = said.partition(" ")
    return ClientCertificate(unquote(name), int(expires_ms))


def _is_chunked(incoming: HttpRequest) -> bool:
    return "transfer-encoding" in incoming.headers


async def _pass_body(incoming: HttpRequest, writer: asyncio.StreamWriter) -> None:
    """Forward the body as it comes; a control process that closed early has answered, or is gone."""
    chunked = _is_chunked(incoming)
    try:
        while data := await incoming.body.more():
            writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
            await writer.drain()
        if chunked:
            writer.write(b"0\r\n\r\n")
    except ConnectionError:
        return


async def _pass_answer(
    incoming: HttpRequest, reader: asyncio.StreamReader, answer: PassedAnswer
) -> None:
    """Forward the answer as it comes; `answer` records the progress."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return
        passed = passed_answer(head, incoming)
        if not passed.interim:
            break
        _write(incoming, passed.head)
    _write(incoming, passed.head)
    answer.begun, answer.keep_alive = True, passed.keep_alive
    try:
        while data := await _more(reader):
            passed.count(data)
            _write(incoming, data)
            if incoming.line.writing_paused:
                await incoming.line.drained()
    finally:
        answer.whole = passed.whole


async def _more(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_STEP_BYTES)
    except ConnectionError:
        # The control process is gone: whether that was the end is for its last bytes to say.
        return b""


def _write(incoming: HttpRequest, data: bytes) -> None:
    transport = incoming.line.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client is gone")
    incoming.line.sent_bytes += len(data)
    transport.write(data)
