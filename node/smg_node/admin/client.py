"""Client of the admin API over HTTP: one request, one answer, and one clear line for every failure.

The standard library's client is enough for this and starts fast. Proxies of the environment are not
used: the admin API answers loopback and trusted networks, which no proxy should see.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import SplitResult, quote, urlencode, urlsplit

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPConnection

# Above any fleet's listing; an answer beyond it is no answer of ours.
_ANSWER_MAX_BYTES: Final = 67_108_864
_LINE_MAX_BYTES: Final = 1_048_576
_UNIX: Final = "unix:"
"""What stands before the path of a node's UNIX socket."""
_MESSAGE_MAX_CHARACTERS: Final = 2_000
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""What the library says of a peer that answers a TLS hello in plain text."""


class AdminError(Exception):
    """A failure, as one line for an operator."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and decoded JSON body; None for an empty body."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Trust:
    """Files of a TLS connection: whose certificates are believed (empty: those this machine trusts), and
    the certificate and key that are shown to a node that asks for them (empty: none). `host` is the
    name that its certificate must be for (empty: the URL's).
    """

    authority: str = ""
    certificate: str = ""
    key: str = ""
    host: str = ""

    def context(self) -> "ssl.SSLContext":
        """Return the context of a connection; AdminError where a file will not do."""
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.authority or None)
            # As of Python 3.13: a node's own certificate is a file to believe it on, whoever issued it.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except ssl.SSLError as error:
            raise AdminError(self._unusable(error)) from None
        except OSError as error:
            named = (
                self.authority
                if not self.certificate
                else f"{self.authority} {self.certificate} {self.key}"
            )
            reason = getattr(error, "reason", None) or error.strerror or str(error)
            raise AdminError(
                f"cannot use {' '.join(named.split())}: {reason.lower().replace('_', ' ')}"
            ) from None
        return context

    def _unusable(self, error: "ssl.SSLError") -> str:
        """Return which file the library cannot use, as far as it says."""
        if not self.certificate or error.reason == "NO_CERTIFICATE_OR_CRL_FOUND":
            return f"{self.authority} holds no PEM certificate to believe nodes on (--ca-file)"
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"{self.key or self.certificate} is not the key of {self.certificate} (--cert-key-file)"
        if not self.key:
            return f"{self.certificate} holds no PEM certificate with its private key; --cert-key-file names the key's file"
        return f"{self.certificate} and {self.key} are no PEM certificate and private key"


class TokenSource(Protocol):
    """Source of tokens that end, and are then replaced."""

    def token(self) -> str:
        """Return a token that has not ended as far as it says; AdminError."""
        ...

    def renew(self) -> None:
        """Get another token; AdminError."""
        ...


@dataclass(frozen=True, slots=True)
class AdminClient:
    """Client of one node. `url` is its base, or `unix:/path` of its socket; `key` empty or an admin key; `tokens` go
    before it.
    """

    url: str
    key: str
    timeout_s: float
    trust: Trust = Trust()
    tokens: TokenSource | None = None

    def ask(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Return the body of a 2xx answer; AdminError with the node's own message for any other."""
        answer = self.look(
            method, *path, query=query, body=body, headers=headers, timeout_s=timeout_s
        )
        return self.taken(answer)

    def taken(self, answer: Answer) -> Any:
        """Return the body of an answer if its status is 2xx; AdminError with the node's own message if not."""
        if 200 <= answer.status < 300:
            return answer.body
        message = _message(answer.body) or f"the node answered {answer.status} without saying why"
        if answer.status in (401, 403) and self.tokens is not None:
            message += " (the token came from the program of --token-command)"
        elif answer.status in (401, 403):
            message += (
                " (--key, SMG_KEY or --key-file gives a key; as long as no admin key exists loopback may ask"
                " without one)"
            )
        raise AdminError(message)

    def look(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """Return the answer whatever its status; AdminError where there is none that can be read.

        `path` are segments, percent-encoded here. A token that the node refuses is replaced once.
        """
        asked = (method, path, query, body, headers, timeout_s)
        answer = self._look(*asked)
        if answer.status == 401 and self.tokens is not None:
            self.tokens.renew()
            answer = self._look(*asked)
        return answer

    def _look(
        self,
        method: str,
        path: Sequence[str],
        query: Mapping[str, str] | None,
        body: object,
        headers: Mapping[str, str] | None,
        timeout_s: float | None,
    ) -> Answer:
        base = _base(self.url)
        patience_s = timeout_s if timeout_s is not None else self.timeout_s
        target = "".join(f"/{quote(segment, safe='')}" for segment in path)
        target = f"{base.path.rstrip('/')}{target}" + (f"?{urlencode(query)}" if query else "")
        connection = _connection(base, patience_s, self.trust)
        with self._troubles(patience_s), closing(connection):
            content = None if body is None else json.dumps(body).encode()
            sent = {**self._headers(content), **(headers or {})}
            connection.request(method, target, content, sent)
            response = connection.getresponse()
            raw = response.read(_ANSWER_MAX_BYTES + 1)
        return Answer(response.status, self._decoded(response.status, raw))

    @contextmanager
    def _troubles(self, patience_s: float) -> Iterator[None]:
        """Turn any failure of a connection into an AdminError of one line."""
        import http.client
        import ssl

        try:
            yield
        except (ConnectionRefusedError, FileNotFoundError):
            raise AdminError(f"no node answers at {self.url}; is smg-node running?") from None
        except TimeoutError:
            raise AdminError(f"{self.url} did not answer within {patience_s:g} s") from None
        except http.client.BadStatusLine:
            raise AdminError(
                f"{self.url} does not answer as HTTP; if it speaks TLS, say https://"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                raise AdminError(
                    f"the certificate of {self.url} is not believed: {error.verify_message} (--ca-file names its authority)"
                ) from None
            if getattr(error, "reason", "") in _NO_TLS:
                raise AdminError(f"{self.url} does not speak TLS; say http://") from None
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise AdminError(f"cannot talk to {self.url}: {reason.lower()}") from None

    def follow(
        self, *path: str, query: Mapping[str, str], quiet_s: float, renewed: bool = False
    ) -> Iterator[Any]:
        """Yield the decoded events of a stream as they come; AdminError when it ends, however it does.

        `quiet_s` is the longest silence, comments included, after which the node is given up; `renewed`: the token is
        a new one, which is not replaced again.
        """
        base = _base(self.url)
        target = "".join(f"/{quote(segment, safe='')}" for segment in path)
        connection = _connection(base, quiet_s, self.trust)
        with self._troubles(quiet_s), closing(connection):
            connection.request(
                "GET",
                f"{base.path.rstrip('/')}{target}?{urlencode(query)}",
                None,
                self._headers(None),
            )
            response = connection.getresponse()
            if response.status == 401 and self.tokens is not None and not renewed:
                self.tokens.renew()
                yield from self.follow(*path, query=query, quiet_s=quiet_s, renewed=True)
            if response.status != 200:
                body = self._decoded(response.status, response.read(_ANSWER_MAX_BYTES + 1))
                raise AdminError(_message(body) or f"the node answered {response.status}")
            while line := response.readline(_LINE_MAX_BYTES):
                if line.startswith(b"data: "):
                    yield self._decoded(200, line.removeprefix(b"data: "))
        raise AdminError(f"{self.url} ended the stream")

    def _headers(self, content: bytes | None) -> dict[str, str]:
        headers = {"accept": "application/json"}
        if content is not None:
            headers["content-type"] = "application/json"
        key = self.key if self.tokens is None else self.tokens.token()
        if key:
            if not key.isascii() or not key.isprintable():
                raise AdminError("the key holds characters that no key has")
            headers["authorization"] = f"Bearer {key}"
        return headers

    def _decoded(self, status: int, raw: bytes) -> Any:
        if not raw:
            return None
        try:
            if len(raw) > _ANSWER_MAX_BYTES:
                raise ValueError
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise AdminError(
                f"{self.url} answered {status} with something that is not JSON; is it an smg-node?"
            ) from None


def _base(url: str) -> SplitResult:
    """Return the parts of the node's URL, HTTP where it says no scheme, of a socket its path as the authority;
    AdminError where it is none.
    """
    if url.startswith(_UNIX):
        # Some write two slashes more, as in a URL.
        path = url.removeprefix(_UNIX)
        path = path.removeprefix("//") if path.startswith("///") else path
        if not path.startswith("/") or path.startswith("//") or "\0" in path:
            raise AdminError(
                f"{url[:200]!r} is not a socket such as unix:/run/smg/admin.sock (--url)"
            )
        return SplitResult(_UNIX[:-1], path, "", "", "")
    try:
        base = urlsplit(with_scheme(url))
        whole = base.scheme in ("http", "https") and bool(base.hostname) and base.port != 0
    except ValueError:
        base, whole = SplitResult("", "", "", "", ""), False
    if not whole or not url.isascii() or not url.isprintable() or " " in url:
        raise AdminError(f"{url[:200]!r} is not a URL such as http://127.0.0.1:30000 (--url)")
    if base.query or base.fragment or base.username is not None:
        raise AdminError("the URL must be plain, without user, query or fragment (--url)")
    return base


def with_scheme(url: str) -> str:
    """Return a node's URL with a scheme: `host:port` is short for `http://host:port`; `unix:/path` is whole."""
    return url if "://" in url or not url or url.startswith(_UNIX) else f"http://{url}"


def _connection(base: SplitResult, timeout_s: float, trust: Trust) -> "HTTPConnection":
    from http.client import HTTPConnection, HTTPSConnection

    if base.scheme == _UNIX[:-1]:
        return _socket_connection(base.netloc, timeout_s)
    assert base.hostname is not None
    if base.scheme == "http":
        return HTTPConnection(base.hostname, base.port, timeout=timeout_s)
    context = trust.context()

    class NamedConnection(HTTPSConnection):
        """A connection whose peer is asked for another name than that of its address."""

        def connect(self) -> None:
            HTTPConnection.connect(self)
            self.sock = context.wrap_socket(self.sock, server_hostname=trust.host or self.host)

    return NamedConnection(base.hostname, base.port, timeout=timeout_s, context=context)


def _socket_connection(path: str, timeout_s: float) -> "HTTPConnection":
    import socket
    from http.client import HTTPConnection

    class SocketConnection(HTTPConnection):
        """A connection over a UNIX socket."""

        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(timeout_s)
            self.sock.connect(path)

    return SocketConnection("localhost", timeout=timeout_s)


def _message(body: Any) -> str:
    """Return the message of an error body, in either envelope that nodes use; empty if there is
    none.
    """
    error = body.get("error") if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message[:_MESSAGE_MAX_CHARACTERS] if isinstance(message, str) else ""
