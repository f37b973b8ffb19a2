"""Server service: answers the HTTP surface about servers of tools, checks and writes their definitions.

A definition is checked before it is written, and each mistake names its field. Secrets are sealed here, all of one
server in one, and opened only to keep those that a new definition leaves out: as long as it leads to the same origin.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from smg_mesh.shared import TOOL_SERVER, StateError, sealed_in, sealed_text
from smg_node.cluster.definition_ports import WritableDefinitions
from smg_node.cluster.mcp.definitions import (
    CLUSTER,
    LOCKED,
    SEALED,
    DefinedServer,
    written_secrets,
)
from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.cluster.mcp.server_secrets import reference_of
from smg_node.cluster.mcp.server_targets import NOT_FOUND
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.http.ports.shared_state import StaleValueError
from smg_node.http.ports.tool_servers import (
    LeftOutTool,
    ServerToolView,
    ToolListing,
    ToolOutcome,
    ToolServerChange,
    ToolServerView,
)
from smg_node.mcp.catalog.pins import is_changed, pin_of
from smg_node.mcp.failures import (
    Failure,
    FailureKind,
    responses_error,
    responses_tool_error,
)
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.spec_parser import CODE, parse_server, plain_server
from smg_node.mcp.tools.tool import Tool

SET: Final = "(set)"
HIDDEN: Final = "***"
FAILED: Final = "mcp_server_failed"
SERVERS_MAX: Final = 1_000
"""Of the whole cluster: every change of one is read with all others, on every node."""
CALL_S: Final = 3_600.0


class ClusterServers:
    """Servers of tools of the whole cluster, as this node sees and changes them."""

    def __init__(
        self,
        servers: LazyToolServers,
        store: WritableDefinitions,
        seal: Callable[[str], bytes],
        clock: Clock,
    ) -> None:
        self._servers = servers
        self._store = store
        self._seal = seal
        self._clock = clock

    # ── Seeing ───────────────────────────────────────────────────────────────

    def servers(self) -> Sequence[ToolServerView]:
        """Return what counts here, sorted by name."""
        return [_view(one) for one in self._servers.read_anew().servers.values()]

    def server(self, name: str) -> ToolServerView:
        """Return one; NOT_FOUND `mcp_server_not_found` otherwise."""
        return _view(self._found(name))

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by their keys."""
        strange = {
            one.key: "this release cannot read it"
            for one in self._store.unreadable()
            if one.key.startswith(TOOL_SERVER)
        }
        return dict(sorted({**strange, **self._servers.read_anew().unreadable}.items()))

    # ── Changing ─────────────────────────────────────────────────────────────

    def put(self, name: str, body: Mapping[str, Any], *, version: int | None) -> ToolServerChange:
        """Define it on all nodes; see `ToolServerService`."""
        now = self._servers.read_anew().servers
        before = now.get(name)
        held = before if before is not None and before.source == CLUSTER else None
        usable = held if held is not None and not held.trouble else None
        body = _with_query(body, held)
        kept = _kept(body, usable)
        try:
            parsed = parse_server(name, body, programs=False, kept=kept)
        except SmgError as error:
            if held is not None and held.trouble and (error.where or "").startswith("auth"):
                why = f"{error.message}; of those that are there, {LOCKED}"
                raise invalid(why, error.where, error.code) from error
            raise
        if before is None and len(now) >= SERVERS_MAX:
            raise invalid(f"there are {SERVERS_MAX:,} servers of tools already", "name")
        value: dict[str, Any] = {"spec": plain_server(parsed.spec)}
        if parsed.secrets:
            value["secrets"] = {SEALED: self._sealed(name, parsed.secrets, usable)}
        seen = None if held is None else _view(held)
        self._write(name, value, version=version)
        return ToolServerChange(seen, self._view_of(name))

    def remove(self, name: str, *, version: int | None) -> ToolServerChange:
        """Take the cluster's definition away; see `ToolServerService`."""
        before = self._view_of(name)
        if not self._version(name):
            if before is None:
                self._found(name)
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"{name} is defined by this node's own file and not by the cluster: take it out of the file",
                where="name",
                code=NOT_FOUND,
            )
        self._write(name, None, version=version)
        return ToolServerChange(before, self._view_of(name))

    # ── Using ────────────────────────────────────────────────────────────────

    async def tools(self, name: str, request_id: str) -> ToolListing:
        """Ask a server for its tools; see `ToolServerService`."""
        self._found(name)
        servers = self._servers.made()
        server = servers.for_operator(name, self._context(request_id))
        listed = await servers.list_tools(server, fresh=True)
        if isinstance(listed, Failure):
            raise _failed(name, listed)
        tools = [_tool_view(server.spec, one) for one in listed.tools.values()]
        return ToolListing(tools, [LeftOutTool(one.name, one.why) for one in listed.left_out])

    async def call(
        self, name: str, tool: str, arguments: bytes, authorization: str, request_id: str
    ) -> ToolOutcome:
        """Call a tool as an operator; see `ToolServerService`."""
        self._found(name)
        servers, context = self._servers.made(), self._context(request_id)
        server = servers.for_operator(name, context, authorization)
        began_s = self._clock.monotonic_s()
        outcome = await servers.call(server, tool, arguments, context)
        took_ms = round((self._clock.monotonic_s() - began_s) * 1000)
        if isinstance(outcome, Failure):
            return ToolOutcome((), None, responses_error(outcome), took_ms)
        structured = msgspec.json.decode(outcome.structured) if outcome.structured else None
        error = responses_tool_error(outcome.content) if outcome.is_error else None
        return ToolOutcome(outcome.content, structured, error, took_ms)

    # ── Below ────────────────────────────────────────────────────────────────

    def _context(self, request_id: str) -> RequestContext:
        now_s = self._clock.monotonic_s()
        return RequestContext(request_id, now_s, now_s + CALL_S)

    def _found(self, name: str) -> DefinedServer:
        now = self._servers.read_anew()
        found = now.servers.get(name)
        if found is None:
            why = now.unreadable.get(f"{TOOL_SERVER}{name}")
            message = f"no server of tools is called {name[:64]!r}"
            if why is not None:
                message = f"the server of tools {name[:64]!r} is not followed here: {why}"
            raise SmgError(ErrorKind.NOT_FOUND, message, where="name", code=NOT_FOUND)
        return found

    def _view_of(self, name: str) -> ToolServerView | None:
        found = self._servers.read_anew().servers.get(name)
        return None if found is None else _view(found)

    def _sealed(self, name: str, secrets: Mapping[str, str], before: DefinedServer | None) -> str:
        """Return the secrets, sealed; as they are there already if they stay the same."""
        if before is not None and secrets == before.secrets:
            held = self._store.get(f"{TOOL_SERVER}{name}")
            sealed = {} if held is None else sealed_in(held.value)
            if SEALED in sealed:
                return sealed_text(sealed[SEALED])
        return sealed_text(self._seal(written_secrets(secrets)))

    def _version(self, name: str) -> int:
        key = f"{TOOL_SERVER}{name}"
        held = self._store.get(key)
        if held is not None:
            return held.version
        return next((one.version for one in self._store.unreadable() if one.key == key), 0)

    def _write(self, name: str, value: object, *, version: int | None) -> None:
        key = f"{TOOL_SERVER}{name}"
        try:
            if value is None:
                self._store.remove(key, version=version)
            else:
                self._store.set(key, value, version=version)
        except StateError as error:
            if error.reason == "stale":
                subject, current = f"server of tools {name}", self._view_of(name)
                raise StaleValueError(subject, str(self._version(name)), current) from error
            if error.reason == "too_large":
                raise invalid(str(error), None, "mcp_server_too_large") from error
            code = f"state_{error.reason}"
            raise SmgError(ErrorKind.OVERLOADED, str(error), code=code) from error


def shown_url(url: str) -> str:
    """Return a URL as it is shown: some servers are let in by what stands in its query."""
    before, mark, query = url.partition("?")
    names = [part.partition("=") for part in query.split("&")]
    hidden = "&".join(f"{name}={HIDDEN}" if equals else name for name, equals, _ in names)
    return f"{before}{mark}{hidden}"


def _with_query(body: Mapping[str, Any], before: DefinedServer | None) -> Mapping[str, Any]:
    """Return a body whose URL is the one that is there, where it names that as it is shown.

    INVALID_REQUEST for another URL with what is shown in place of a value: nothing says which value is meant.
    """
    said = body.get("url")
    url = "" if before is None else before.spec.definition.url
    if url and said == shown_url(url):
        return {**body, "url": url}
    if isinstance(said, str) and f"={HIDDEN}" in said.partition("?")[2]:
        why = f"url has {HIDDEN} in place of a value that is not shown: give the whole URL"
        raise invalid(why, "url", CODE)
    return body


def _kept(body: Mapping[str, Any], before: DefinedServer | None) -> Mapping[str, str]:
    """Return the secrets that stay where a body leaves them out: none where they would be shown to somebody else."""
    if before is None or not _same_places(body, before.spec):
        return {}
    return before.secrets


def _same_places(body: Mapping[str, Any], spec: ServerSpec) -> bool:
    auth = body.get("auth")
    kind = auth.get("kind") if isinstance(auth, dict) else auth
    if kind != spec.auth or _origin(body.get("url")) != _origin(spec.definition.url):
        return False
    issuer = "" if spec.issuer is None else spec.issuer.url
    said = auth.get("token_url", "") if isinstance(auth, dict) else ""
    return not issuer or _origin(said) == _origin(issuer)


def _origin(url: object) -> tuple[str, str]:
    try:
        parts = urlsplit(str(url))
    except ValueError:
        return "", ""
    return parts.scheme.lower(), parts.netloc.lower()


def _view(one: DefinedServer) -> ToolServerView:
    spec = plain_server(one.spec)
    if "url" in spec:
        spec["url"] = shown_url(spec["url"])
    return ToolServerView(
        name=one.spec.name,
        spec=spec,
        secrets={key: reference_of(text) or SET for key, text in sorted(one.secrets.items())},
        source=one.source,
        version=str(one.version),
        owner=one.owner,
        time_ms=one.time_ms,
        trouble=one.trouble,
    )


def _tool_view(spec: ServerSpec, tool: Tool) -> ServerToolView:
    told = (tool.name, tool.description, tool.input_schema, tool.annotations)
    return ServerToolView(*told, pin=pin_of(*told), changed=is_changed(spec, *told))


def _failed(name: str, failure: Failure) -> SmgError:
    late = failure.kind is FailureKind.TIMEOUT
    kind = ErrorKind.UPSTREAM_TIMEOUT if late else ErrorKind.UPSTREAM_FAILED
    return SmgError(kind, f"{name} does not list its tools: {failure.message}", code=FAILED)
