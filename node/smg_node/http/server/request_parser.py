"""Request parser: bytes of a connection to requests, by llhttp's grammar under this node's limits.

The grammar is that of Node.js (llhttp, by way of httptools) in its strict form. Checks that it
leaves to its caller are done here: limits on lines and their number, exactly one Host where
HTTP/1.1 wants it, no version but 1.0 and 1.1, no transfer coding but `chunked`, and none in 1.0
(RFC 9112 6.1), nothing after a request that ends its connection, and trailers, which are read and
dropped.

The connection gets each request when its head is complete, by the callback `begun`; its body is fed
from then on. Behind a request that offers WebSocket nothing is parsed: whoever takes the offer gets
what came. An invalid head is an `SmgError` of `feed`, an invalid body is a broken body; nothing
is read after either.
"""

from collections.abc import Callable
from typing import Final, cast

import httptools

from smg_node.core.errors import SmgError, invalid
from smg_node.http.message.body_stream import NO_BODY, ArrivingBody, NoBody, OfferedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import ClientLine, Flow, Head
from smg_node.http.server.head_cache import CommonHeads, KnownHead, known_head

_TYPICAL: Final = (
    "accept", "accept-encoding", "accept-language", "authorization", "connection", "content-length", "content-type",
    "host", "idempotency-key", "origin", "traceparent", "tracestate", "transfer-encoding", "user-agent",
    "x-forwarded-for", "x-request-id", "x-smg-routing-key", "x-stainless-arch", "x-stainless-async", "x-stainless-lang",
    "x-stainless-os", "x-stainless-package-version", "x-stainless-read-timeout", "x-stainless-retry-count",
    "x-stainless-runtime", "x-stainless-runtime-version",
)  # fmt: skip
_NAMES: Final = {
    spelled.encode(): name for name in _TYPICAL for spelled in (name, name.title(), name.upper())
}
"""Names by how most clients spell them: a look-up costs a fifth of decoding and lowering."""
_METHODS: Final = {
    name.encode(): name for name in ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
}
_HEADS_LEARNED_MAX: Final = 8
"""So many heads of a connection are learned that no later one is like; then its client says something else each time."""
_SLACK_BYTES: Final = 64
"""So much of a line is neither name nor value, at most: separators, and a request line's method and version."""


class RequestReader:
    """Parses one connection. The `on_…` methods are called by the grammar."""

    __slots__ = (
        "_begun",
        "_between",
        "_body",
        "_common",
        "_fields",
        "_flow",
        "_headers_max",
        "_heard",
        "_keep_alive",
        "_known",
        "_last",
        "_learned",
        "_line",
        "_line_max_bytes",
        "_offer",
        "_offered",
        "_over",
        "_parser",
        "_refusal",
        "_resuming",
        "_silent_bytes",
        "_target",
        "in_head",
        "ready",
    )

    def __init__(
        self,
        line: ClientLine,
        flow: Flow,
        begun: Callable[[HttpRequest], None],
        *,
        line_max_bytes: int,
        headers_max: int,
        common: CommonHeads | None = None,
    ) -> None:
        """Take `common`, the heads that connections begin with; None where they have none in common."""
        self._common = common
        self._line = line
        self._flow = flow
        self._begun = begun
        self._line_max_bytes = line_max_bytes
        self._headers_max = headers_max
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._body: ArrivingBody | NoBody | OfferedBody = NO_BODY
        self._keep_alive = True
        # How the body is framed of a request that offers another protocol.
        self._offer = b""
        # What follows a request that offers WebSocket.
        self._offered: OfferedBody | None = None
        self._resuming = False
        self._heard = False
        self._silent_bytes = 0
        self._refusal: SmgError | None = None
        self._over = False
        # Whether the grammar stands between two requests; the latest that this packet has brought; the head that is
        # known, and how many were learned since one was like it.
        self._between = True
        self._last: Head | None = None
        self._known: KnownHead | None = None
        self._learned = 0
        self.in_head = False
        """Whether a head has begun and is not complete."""
        self.ready: KnownHead | None = None
        """The head that the last request had, if it was known: while the next one is the same to the byte, and its body as
        long, whoever feeds may read it by himself, because nothing of what is noted here would change."""

    def retune(self, *, line_max_bytes: int, headers_max: int) -> None:
        """Apply other limits to heads that are not complete."""
        self._line_max_bytes = line_max_bytes
        self._headers_max = headers_max
        self._known = self.ready = self._common = None

    def feed(self, data: bytes | memoryview) -> None:
        """Parse more bytes; an SmgError for an invalid head, or one that is too large."""
        whole = None
        if type(data) is bytes and self._between:
            whole, known = data, self._known
            if known is None and not self._learned:
                known = self._known = self._found(whole)
            if known is not None:
                incoming = known.read(whole, self._line)
                if incoming is not None:
                    self._learned = self._silent_bytes = 0
                    self.ready = known
                    self._begun(incoming)
                    return
        self.ready = None
        self._read(data)
        # Nobody else needs it.
        last, self._last = self._last, None
        learns = self._between and last is not None and self._learned < _HEADS_LEARNED_MAX
        if whole is not None and learns and last is not None:
            self._known = known = known_head(whole, last)
            self._learned += 1
            common, self._common = self._common, None
            if common is not None and known is not None and self._line.certificate is None:
                common.learn(known, last)

    def _found(self, whole: bytes) -> KnownHead | None:
        """Return the head of a connection's first request, if others have begun with it; who shows a certificate is asked
        for himself.
        """
        common = self._common
        if common is None or self._line.certificate is not None:
            return None
        known = common.find(whole)
        if known is not None:
            self._common = None
        return known

    def _read(self, data: bytes | memoryview) -> None:
        if self._offered is not None:
            self._offered.feed(bytes(data))
            return
        self._heard = False
        while not self._over:
            assert self._parser is not None
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[cast("int", upgrade.args[0]) :]
                if self._offered is not None:
                    self._offered.feed(bytes(data))
                    return
                self._decline()
                if len(data):
                    continue
            except httptools.HttpParserCallbackError:
                if self._refusal is None:
                    # Not the client's doing.
                    raise
                self._stumble()
            except httptools.HttpParserError:
                self._stumble()
            break
        if self._fields or not self._heard:
            self._check_unfinished(len(data))

    def hand_over(self) -> bytes:
        """Stop parsing, because the offer of WebSocket was taken; return what has come behind the request."""
        offered, self._offered = self._offered, None
        assert offered is not None, "nobody offered another protocol"
        self.close()
        return offered.hand_over()

    def close(self) -> None:
        """Stop parsing; a body that is not whole is broken."""
        self._over = True
        self._known = self.ready = self._last = None
        # The grammar knows our methods and we know it: without this only the garbage collector could part us.
        self._parser = None
        if not self._body.over:
            cast("ArrivingBody", self._body).fail()

    # ── What the grammar says ────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        """A head begins."""
        self._heard = True
        self._between = False
        if not self._resuming:
            # What was counted of the request before is not this one's.
            self._silent_bytes = 0
            self.in_head = True
            self._target = b""
            self._fields = []

    def on_url(self, part: bytes) -> None:
        """The target of the request line, or a part of it."""
        self._heard = True
        self._target = self._target + part if self._target else part
        if len(self._target) > self._line_max_bytes:
            self._refuse(head_too_large())

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of a head, or a trailer of a chunked body."""
        self._heard = True
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """A head is complete."""
        fields, self._fields = self._fields, []
        if self._resuming:
            return
        self.in_head = False
        parser = self._parser
        assert parser is not None
        headers = self._headers_of(fields)
        coding = headers.get("transfer-encoding")
        version = parser.get_http_version()
        http11 = version == "1.1"
        if http11:
            sound = "host" in headers and (coding is None or coding.lower() == "chunked")
        else:
            sound = version == "1.0" and coding is None
        if not sound:
            self._refuse(no_request())
        length = headers.get("content-length")
        bodied = coding is not None or length is not None
        body: ArrivingBody | NoBody | OfferedBody = ArrivingBody(self._flow) if bodied else NO_BODY
        method = parser.get_method()
        self._keep_alive = keep_alive = parser.should_keep_alive() and method != b"CONNECT"
        if parser.should_upgrade():
            if method == b"GET" and not bodied and headers["upgrade"].lower() == "websocket":
                body = self._offered = OfferedBody()
                # Until somebody has decided.
                self._flow.pause_reading()
            chunked = b"transfer-encoding: chunked"
            self._offer = chunked if length is None else b"content-length: " + length.encode()
        self._body = body
        self._last = head = Head(
            _METHODS.get(method) or method.decode("ascii"),
            self._target.decode("ascii"),
            headers,
            fields,
            http11=http11,
            keep_alive=keep_alive,
        )
        self._begun(HttpRequest(head, body, self._line))

    def on_body(self, part: bytes) -> None:
        """A part of a body."""
        self._heard = True
        cast("ArrivingBody", self._body).feed(part)

    def on_message_complete(self) -> None:
        """A request is complete, and so is its body."""
        body = self._body
        if body is not NO_BODY:
            if self._offer:
                return
            cast("ArrivingBody", body).end()
        if self._keep_alive:
            self._between = not self._offer
        else:
            self._over = True

    # ── What is wrong ────────────────────────────────────────────────────────

    def _decline(self) -> None:
        """Go on with HTTP after a request that offered another protocol.

        A server may ignore the offer (RFC 9110 7.8). The grammar stops for good behind such a head,
        treats the request as whole, and later bytes as the other protocol. So a new parser takes
        over; where the request has a body, it is first fed a head that announces only the body.
        """
        self._parser = parser = httptools.HttpRequestParser(self)
        framing, self._offer = self._offer, b""
        if not self._body.over:
            self._resuming = True
            parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n\r\n" % framing)
            self._resuming = False

    def _headers_of(self, fields: list[tuple[bytes, bytes]]) -> dict[str, str]:
        if len(fields) > self._headers_max:
            self._refuse(head_too_large())
        headers: dict[str, str] = {}
        line_max_bytes = self._line_max_bytes
        for name, value in fields:
            key = _NAMES.get(name) or name.decode("ascii").lower()
            if len(name) + len(value) > line_max_bytes:
                self._refuse(head_too_large())
            if key not in headers:
                headers[key] = value.decode("utf-8", "surrogateescape").rstrip(" \t")
            elif key == "host":
                self._refuse(no_request())
        return headers

    def _check_unfinished(self, more_bytes: int) -> None:
        """Refuse what is too large before it has ended: lines, and bytes without an event of the
        grammar.
        """
        self._silent_bytes = 0 if self._heard else self._silent_bytes + more_bytes
        if self._over:
            return
        line_max_bytes = self._line_max_bytes
        if (
            self._silent_bytes > line_max_bytes + _SLACK_BYTES
            or len(self._fields) > self._headers_max
            or any(len(name) + len(value) > line_max_bytes for name, value in self._fields)
        ):
            self._refusal = head_too_large()
            self._stumble()

    def _refuse(self, error: SmgError) -> None:
        """Stop the grammar: an exception raised in a callback ends its work."""
        self._refusal = error
        raise error

    def _stumble(self) -> None:
        """Report an error to the reader of the body, or to the caller of `feed` for a head."""
        if self._over:
            # It had read a request that ends its connection, and complains of what follows.
            return
        body = self._body
        self.close()
        self.in_head = False
        if body.whole or self._refusal is not None:
            raise self._refusal or no_request()


def head_too_large() -> SmgError:
    """Return the error for a head with too many or too long lines."""
    error = invalid("the head of the request is too large", None, "header_too_large")
    error.status = 431
    return error


def no_request() -> SmgError:
    """Return the error for bytes that are no request."""
    return invalid("this is not an HTTP request", None, "invalid_http")
