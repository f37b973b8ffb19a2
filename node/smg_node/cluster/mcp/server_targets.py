"""Server targets: the server that a request may use, as it is called for this request: credential, tenant, session.

To callers who may not see it, a server does not exist: they are told the same as of a name that nobody defined.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from smg_node.cluster.mcp.definitions import DefinedServer
from smg_node.cluster.mcp.server_secrets import ServerSecrets
from smg_node.core.address_guard import AddressGuard
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.tool_serving import AskedServer
from smg_node.core.request_context import RequestContext
from smg_node.mcp.definition import Credential, ServerDefinition, checked, with_headers
from smg_node.mcp.pool import Target
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.tool_servers import ResolvedServer

Dynamic: TypeAlias = Literal["off", "listed", "any"]
NOT_FOUND: Final = "mcp_server_not_found"
NOT_ALLOWED: Final = "mcp_url_not_allowed"
NO_AUTHORIZATION: Final = "mcp_authorization"
UNUSABLE: Final = "mcp_server_unusable"
_HEADER: Final = "headers."
_VARIABLE: Final = "env."


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller of servers: who asks, and what the head of the request and the request itself bring for them."""

    context: RequestContext
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    asked: AskedServer | None = None

    @property
    def where(self) -> str | None:
        """The JSON path of what named the server."""
        return None if self.asked is None else self.asked.where

    @property
    def has_thread(self) -> bool:
        """Whether other requests may come of the same conversation."""
        return self.asked is not None and bool(self.asked.thread)

    @property
    def thread(self) -> str:
        """What keeps a session of its own."""
        given = "" if self.asked is None else self.asked.thread
        # Ids of requests are the client's to choose, and another one's session is not to be had by its id.
        alone = self.context.token or self.context.request_id
        return f"thread {given}" if given else f"request {alone}"


class ServerTargets:
    """Maker of targets."""

    def __init__(self, secrets: ServerSecrets, dynamic: Dynamic, guard: AddressGuard) -> None:
        self._secrets = secrets
        self._dynamic = dynamic
        self._guard = guard

    def defined(self, server: DefinedServer, caller: Caller, label: str = "") -> ResolvedServer:
        """Return a server that an operator defined.

        INVALID_REQUEST for what the request brings and the server does not take, or lacks; UPSTREAM_FAILED where its
        secrets are out of reach here.
        """
        spec = server.spec
        if server.trouble:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the server of tools {spec.name} cannot be used here: {server.trouble}",
                where=caller.where,
                code=UNUSABLE,
            )
        headers = {**_forwarded(spec, caller), **self._authorized(server, caller)}
        credential = with_headers(headers)
        if spec.issuer is not None:
            credential = self.renewed(server, credential)
        target = Target(
            self._definition(server),
            credential,
            caller.context.tenant,
            scope=caller.thread if spec.session == "thread" else "",
            lasting=spec.session != "call",
            alone=spec.session == "thread" and not caller.has_thread,
        )
        return ResolvedServer(label or spec.name, spec, target)

    def renewed(self, server: DefinedServer, before: Credential, token: str = "") -> Credential:
        """Return a credential of client credentials with a token that was made just now; "" for none yet."""
        others = tuple(pair for pair in before.headers if pair[0] != "authorization")
        if before.identity:
            identity = before.identity
        else:
            issued = (server.spec.issuer, self.secret(server, "client_secret"), others)
            spelled = msgspec.json.encode(issued)
            identity = hashlib.blake2b(spelled, digest_size=16).hexdigest()
        own = (("authorization", f"Bearer {token}"),) if token else ()
        return Credential(tuple(sorted((*others, *own))), identity)

    def secret(self, server: DefinedServer, name: str) -> str:
        """Return one of its secrets; UPSTREAM_FAILED where it is out of reach here."""
        return self._secrets.read(server.spec.name, server.secrets.get(name, ""))

    def given(self, asked: AskedServer, caller: Caller) -> ResolvedServer:
        """Return a server that a client named by URL; INVALID_REQUEST where that may not be."""
        try:
            definition = checked(ServerDefinition(name=asked.label, url=asked.url))
            self._check_given(definition.url)
            headers = dict(asked.headers)
            if asked.authorization:
                headers["authorization"] = _as_bearer(asked.authorization)
            credential = with_headers(headers)
        except SmgError as error:
            raise invalid(error.message, asked.where, error.code) from error
        spec = ServerSpec(
            definition,
            auth="client" if headers else "none",
            description=asked.description,
        )
        target = Target(definition, credential, caller.context.tenant, guarded=True)
        return ResolvedServer(asked.label, spec, target, defined=False)

    def _check_given(self, url: str) -> None:
        if self._dynamic == "off":
            raise invalid(
                "servers of tools by URL are switched off here (mcp.dynamic): name one that is defined",
                code=NOT_ALLOWED,
            )
        if self._guard.lists(url):
            return
        if self._dynamic == "listed":
            raise invalid("the host of this URL is not listed here", code=NOT_ALLOWED)
        host = urlsplit(url).hostname or ""
        is_address = ":" in host or host.rpartition(".")[2].isdecimal()
        if host.rstrip(".") == "localhost" or (is_address and not self._guard.allows("", host)):
            raise invalid("this URL leads to no public address", code=NOT_ALLOWED)

    def _definition(self, server: DefinedServer) -> ServerDefinition:
        """Return where it is; a program with the variables that it gets."""
        names = [name for name in server.secrets if name.startswith(_VARIABLE)]
        if not names:
            return server.spec.definition
        variables = {name.removeprefix(_VARIABLE): self.secret(server, name) for name in names}
        return msgspec.structs.replace(server.spec.definition, env=variables)

    def _authorized(self, server: DefinedServer, caller: Caller) -> dict[str, str]:
        """Return the headers that let this caller in."""
        spec, asked = server.spec, caller.asked
        authorization = "" if asked is None else asked.authorization
        if spec.auth == "client":
            if not authorization:
                raise _lacking(spec, caller, "wants the request's own authorization")
            return {"authorization": _as_bearer(authorization)}
        if authorization:
            raise _lacking(spec, caller, "takes no authorization from requests")
        if spec.auth == "bearer":
            return {"authorization": f"Bearer {self.secret(server, 'token')}"}
        if spec.auth == "headers":
            names = [name for name in server.secrets if name.startswith(_HEADER)]
            return {name.removeprefix(_HEADER): self.secret(server, name) for name in names}
        return {}


def may_see(spec: ServerSpec, context: RequestContext) -> bool:
    """Whether a caller may see a server: its tenant, and its key, are among those that were named, if any were."""
    of_tenants = not spec.tenants or context.tenant in spec.tenants
    return of_tenants and (not spec.keys or context.key_id in spec.keys)


def not_found(name: str, where: str | None) -> SmgError:
    """Return the error for a name that this caller cannot see, whether or not there is a server of it."""
    return invalid(f"no server of tools is called {name[:64]!r} here", where, NOT_FOUND)


def _forwarded(spec: ServerSpec, caller: Caller) -> dict[str, str]:
    """Return the client's headers that the server is told: those of the head, and those the request brings for it."""
    found = {name: caller.headers[name] for name in spec.forward_headers if name in caller.headers}
    for name, value in ({} if caller.asked is None else caller.asked.headers).items():
        if name.lower() not in spec.forward_headers:
            raise _lacking(spec, caller, f"takes no header {name[:64]!r} from requests")
        found[name.lower()] = value
    return found


def _lacking(spec: ServerSpec, caller: Caller, why: str) -> SmgError:
    return invalid(f"the server of tools {spec.name} {why}", caller.where, NO_AUTHORIZATION)


def _as_bearer(authorization: str) -> str:
    scheme, blank, _ = authorization.strip().partition(" ")
    return (
        authorization.strip() if blank and scheme.isalpha() else f"Bearer {authorization.strip()}"
    )
