"""Head findings: what middleware found out about a request head, cached for the next equal one.

A client's requests mostly differ in nothing but their bodies, and so their heads lead to the same
findings: the route, the key's owner and validity, the action. These hold as long as what they
depend on: the options, the version of the keys, and the key's expiry. When one of these has
changed, the middleware finds all of it again.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from smg_node.access.identity import ANYBODY, Identity
from smg_node.admission.header_values import Family
from smg_node.core.request_context import Priority
from smg_node.http.route_table import NO_VALUES, Route
from smg_node.telemetry.metrics.cells import Spread, Tally
from smg_node.telemetry.traces.request_scope import Trace

if TYPE_CHECKING:
    from smg_node.http.http_options import HttpOptions
    from smg_node.http.message.reply import Form

NO_HEADERS: Final[Mapping[str, str]] = {}
NEVER_MS: Final = 1 << 62
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)


class HeadHints:
    """What a head says about generations: until when, where, how urgently, who wants them, and how they are told."""

    __slots__ = (
        "caller", "family", "key_id", "openais", "priority", "shapes", "stream_form", "stream_s", "target_worker", "tenant", "upstream",
        "whole_form", "whole_s",
    )  # fmt: skip

    def __init__(
        self,
        *,
        stream_s: float,
        whole_s: float,
        target_worker: str | None,
        caller: str,
        priority: Priority,
        tenant: str,
        key_id: str,
        upstream: dict[str, str],
        family: Family,
        openais: bool,
        shapes: bool,
    ) -> None:
        self.stream_s = stream_s
        """How long a stream may take."""
        self.whole_s = whole_s
        """How long an answer in one piece may take."""
        self.target_worker = target_worker
        self.caller = caller
        self.priority = priority
        self.tenant = tenant
        self.key_id = key_id
        self.upstream = upstream
        """What tells engines of the trace, if they are told the same each time."""
        self.family = family
        """Whose names the headers about limits have."""
        self.openais = openais
        """Whether their answers have the headers of OpenAI's API."""
        self.shapes = shapes
        """Whether their answers have the headers that most nodes' have."""
        self.stream_form: Form | None = None
        self.whole_form: Form | None = None
        """The heads of their answers, as a stream and as one answer; None until one of them was told."""


class HeadFindings:
    """Findings for requests with one head. Each value is its own attribute, which is quickest to
    read.
    """

    __slots__ = (
        "action", "asked", "counted", "identity", "keys_version", "method", "options", "path", "plain_body",
        "reply_headers", "request_id", "route", "routing_key", "trace", "until_ms", "values", "wants_body",
    )  # fmt: skip

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.wants_body = method != "HEAD"
        """Whether the client wants more of an answer than its head."""
        self.path = path
        self.options: HttpOptions | None = None
        """Those it was found under."""
        self.keys_version = -1
        """That of the keys it was found by."""
        self.until_ms = NEVER_MS
        """When the key expires, by the wall clock."""
        self.route: Route | None = None
        self.values: Mapping[str, str] = NO_VALUES
        """The `{…}` parts of the path."""
        self.action: Callable[[Any], Awaitable[Any]] | None = None
        """What answers such requests; None where something has to be found for each."""
        self.identity: Identity = ANYBODY
        """Who asks."""
        self.request_id = ""
        """The id that the client gave, the same for all of them; "" where each gets its own."""
        self.trace: Trace | None = None
        """Their trace; None where each has to be asked for."""
        self.reply_headers: Mapping[str, str] = NO_HEADERS
        """What lets a web page read the answers."""
        self.plain_body = False
        """Whether their bodies are JSON as it is, and nobody waits for a word before sending them."""
        self.routing_key: str | None = None
        """The key in their headers that they are routed by, "" for none; None until somebody looked."""
        self.asked: HeadHints | None = None
        """What surrounds their generations, once there was one."""
        self.counted: dict[int, tuple[Tally, Spread, Tally | None]] = {}
        """Where requests are counted, by status: their number, their times, their tenant's number."""


NOBODY: Final = HeadFindings("", "")
"""Of a request that no door has seen yet."""


def given_id(headers: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the id in the first of these headers that is there, if it is valid; else ""."""
    for name in names:
        if name in headers:
            return headers[name] if _REQUEST_ID.fullmatch(headers[name]) else ""
    return ""
