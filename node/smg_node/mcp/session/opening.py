"""Opening of a server: which protocol it speaks, found by asking, as steps of a pure machine. Pure.

    modern first   `server/discover`; a result with a modern revision ends it
    handshake      on any other answer that a server of the older protocol may give: `initialize`
    old transport  `initialize` answered 400, 404 or 405 without a JSON-RPC error: a stream by GET, if the URL has one

A connection that fails, and the statuses 401, 403, 429 and 5xx, say nothing of the protocol: they are errors. A verdict
of an earlier opening is taken up where it ended, and asked again from the start when the server contradicts it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from smg_node.mcp.failures import (
    UNSUPPORTED_VERSION,
    Failure,
    FailureKind,
    plain_text,
    unreadable,
)
from smg_node.mcp.revisions import (
    NEWEST_HANDSHAKE,
    NEWEST_MODERN,
    Revision,
    newest_modern,
    revision_named,
)
from smg_node.mcp.session.session import (
    Outcome,
    Request,
    RequestIds,
    ServerFacts,
    Session,
    Success,
)
from smg_node.mcp.wire.headers import session_id_of


class Transport(Enum):
    """How bytes travel."""

    HTTP = "http"
    SSE = "sse"
    STDIO = "stdio"


class Verdict(NamedTuple):
    """How a server was opened."""

    transport: Transport
    revision: Revision


class Ask(NamedTuple):
    """Send this request of this session, and say what came of it."""

    session: Session
    request: Request


class UseSse(NamedTuple):
    """Open a stream by GET in the way of the old transport, and say what came of it."""


class Restart(NamedTuple):
    """The process has ended: start another one, then go on."""


class Opened(NamedTuple):
    """The session is agreed on. `handshake`: the server waits for `notifications/initialized`."""

    session: Session
    verdict: Verdict
    handshake: bool


Step: TypeAlias = Ask | UseSse | Restart | Opened | Failure

_NO_VERDICT: Final = (401, 403, 429)
_NOT_THERE: Final = (400, 404, 405)
_OLD_CODES: Final = (-32000, -32001, -32600, -32601)
"""Of errors with which servers of the handshake era refuse a request without a session."""


class _Implementation(msgspec.Struct, frozen=True):
    name: Any = ""
    version: Any = ""


class _Hello(msgspec.Struct, rename="camel"):
    """What `server/discover` and `initialize` are answered."""

    supported_versions: list[Any] | None = None
    protocol_version: Any = None
    capabilities: dict[str, Any] = {}
    server_info: _Implementation = _Implementation()
    instructions: Any = ""
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class _Supported(msgspec.Struct):
    supported: list[Any] = []


_decode_hello: Final = msgspec.json.Decoder(_Hello).decode
_decode_supported: Final = msgspec.json.Decoder(_Supported).decode
_SERVER_META: Final = "io.modelcontextprotocol/serverInfo"


@dataclass(frozen=True, slots=True)
class OpeningPlan:
    """What is known before: the transport, None to find out between HTTP and SSE, and the revision, None to find out."""

    transport: Transport | None
    revision: Revision | None = None


class Opening:
    """Machine of one opening: `first`, then `heard` after each `Ask`, `went_on` after `UseSse` and `Restart`."""

    def __init__(self, plan: OpeningPlan, ids: RequestIds, verdict: Verdict | None = None) -> None:
        self._ids = ids
        self._auto = plan.transport is None
        self._transport = plan.transport or Transport.HTTP
        self._pinned = plan.revision
        self._verdict = verdict if plan.revision is None else None
        if self._verdict is not None and self._auto:
            self._transport = self._verdict.transport
        self._asked: list[str] = []
        """Revisions that `server/discover` was asked in."""
        self._session = self._new_session(NEWEST_MODERN)
        self._request: Request | None = None
        self._first_refusal: Failure | None = None

    def first(self) -> Step:
        """Return the first step."""
        if self._transport is Transport.SSE:
            return UseSse()
        known = self._pinned or (self._verdict and self._verdict.revision)
        if known is None:
            return self._discover(NEWEST_MODERN)
        if known.modern:
            self._session = self._new_session(known)
            return self._opened(handshake=False)
        return self._initialize()

    def went_on(self, failure: Failure | None = None) -> Step:
        """Return the next step after a stream or a process was begun, or was not."""
        if failure is None:
            return self._initialize()
        if self._verdict is not None and not _says_nothing(failure):
            return self._anew()
        return self._first_refusal or failure

    def heard(self, outcome: Outcome, session_id: str = "") -> Step:
        """Return the next step after an answer; `session_id` is that of its header."""
        assert self._request is not None, "nothing was asked"
        if self._request.method == "server/discover":
            return self._discovered(outcome)
        return self._initialized(outcome, session_id)

    def _discovered(self, outcome: Outcome) -> Step:
        if isinstance(outcome, Success):
            hello = _hello(outcome.result)
            supported = hello.supported_versions if hello else None
            revision = newest_modern(supported or ())
            if hello is None or revision is None:
                return self._initialize()
            self._session = self._new_session(revision)
            self._session.facts = _facts(hello)
            return self._opened(handshake=False)
        if self._transport is Transport.STDIO and outcome.kind is FailureKind.TIMEOUT:
            return self._initialize()
        if self._transport is Transport.STDIO and outcome.kind is FailureKind.LOST and outcome.sent:
            return Restart()
        if outcome.kind is FailureKind.PROTOCOL and outcome.code == UNSUPPORTED_VERSION:
            return self._unsupported(outcome)
        return outcome if _says_nothing(outcome) else self._initialize()

    def _unsupported(self, failure: Failure) -> Step:
        supported = _supported(failure)
        revision = newest_modern(supported)
        if revision is not None:
            again = self._asked.count(revision.name)
            # A server may want a revision that it just refused; once, in case it was busy with another.
            return failure if again > 1 else self._discover(revision)
        if supported and not any(revision_named(name) for name in supported):
            names = plain_text(", ".join(map(str, supported)), 200)
            return failure.with_note(f"it speaks {names}, and this client none of them")
        return self._initialize()

    def _initialized(self, outcome: Outcome, session_id: str) -> Step:
        if isinstance(outcome, Success):
            return self._agreed(outcome.result, session_id)
        if outcome.kind is FailureKind.PROTOCOL and outcome.code == UNSUPPORTED_VERSION:
            revision = newest_modern(_supported(outcome))
            if revision is not None and self._pinned is None and len(self._asked) < 2:
                return self._discover(revision)
        if self._verdict is not None and not _says_nothing(outcome):
            return self._anew()
        old = outcome.kind is FailureKind.HTTP and outcome.code in _NOT_THERE
        if old and self._auto and self._transport is Transport.HTTP:
            self._first_refusal, self._transport = outcome, Transport.SSE
            return UseSse()
        return outcome

    def _anew(self) -> Step:
        """Return the first step without the verdict: it is another server now."""
        self._verdict = None
        if self._auto:
            self._transport = Transport.HTTP
        return self.first()

    def _agreed(self, result: Raw, session_id: str) -> Step:
        hello = _hello(result)
        if hello is None:
            return unreadable("the server's answer to initialize is none")
        revision = revision_named(hello.protocol_version)
        if revision is None or revision.modern:
            said = plain_text(str(hello.protocol_version), 40)
            return unreadable(f"the server wants the revision {said!r}, which is not known here")
        if session_id and session_id_of(session_id) is None:
            return unreadable("the server's session id is none that a header can hold")
        self._session = self._new_session(revision)
        self._session.session_id = session_id
        self._session.facts = _facts(hello)
        return self._opened(handshake=True)

    def _opened(self, *, handshake: bool) -> Opened:
        verdict = Verdict(self._transport, self._session.revision)
        return Opened(self._session, verdict, handshake)

    def _discover(self, revision: Revision) -> Ask:
        self._asked.append(revision.name)
        self._session = self._new_session(revision)
        self._request = self._session.request("server/discover", {})
        return Ask(self._session, self._request)

    def _initialize(self) -> Ask:
        pinned = self._pinned if self._pinned and not self._pinned.modern else None
        self._session = self._new_session(pinned or NEWEST_HANDSHAKE)
        self._request = self._session.initialize()
        return Ask(self._session, self._request)

    def _new_session(self, revision: Revision) -> Session:
        return Session(revision, self._ids, by_http=self._transport is Transport.HTTP)


def contradicts(session: Session, failure: Failure) -> bool:
    """Whether an answer to a request says that the server does not speak the modern era, as it was thought to."""
    if not session.revision.modern or failure.status not in _NOT_THERE:
        return False
    return failure.kind is FailureKind.HTTP or failure.code in _OLD_CODES


def _says_nothing(failure: Failure) -> bool:
    """Whether a failure leaves it open which protocol is spoken."""
    if failure.kind is FailureKind.PROTOCOL:
        return failure.status in _NO_VERDICT
    if failure.kind is FailureKind.HTTP:
        return failure.code in _NO_VERDICT or not 400 <= failure.code < 500
    return True


def _hello(result: Raw) -> _Hello | None:
    try:
        return _decode_hello(result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _supported(failure: Failure) -> list[Any]:
    try:
        return _decode_supported(failure.error_data).supported
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def _facts(hello: _Hello) -> ServerFacts:
    said = hello.meta.get(_SERVER_META)
    about = said if isinstance(said, dict) else {}
    name = about.get("name") or hello.server_info.name
    version = about.get("version") or hello.server_info.version
    instructions = hello.instructions if isinstance(hello.instructions, str) else ""
    return ServerFacts(
        plain_text(str(name), 200),
        plain_text(str(version), 100),
        plain_text(instructions, 8000),
        hello.capabilities,
    )
