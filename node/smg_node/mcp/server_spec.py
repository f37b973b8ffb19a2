"""Server spec of one MCP server, as an operator says it: who sees it, what may run, how it is used. Pure.

Secrets are not in it: they travel beside it as `Credential`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.mcp.definition import ServerDefinition

Verdict: TypeAlias = Literal["allow", "ask", "deny"]
Trust: TypeAlias = Literal["trusted", "standard", "untrusted", "sandboxed"]
"""`trusted` tools run, and the server's hints count; `untrusted` ones are asked about unless an operator says that they
only read; `sandboxed` ones run only where they only read and have a closed world.
"""
AuthKind: TypeAlias = Literal["none", "bearer", "headers", "client", "client_credentials"]
SessionScope: TypeAlias = Literal["shared", "thread", "call"]
Replay: TypeAlias = Literal["never", "hinted", "always"]
"""Whether a run that may have happened is sent again: never, where the tool only reads or is idempotent, or always."""

_NOTHING: Final[Mapping[str, Any]] = {}


class ToolRule(msgspec.Struct, frozen=True):
    """What an operator says of one tool, by the server's name of it.

    `alias` is the name for models. `rename` maps an argument as the model sees it to the server's, `defaults` fill
    arguments that are missing, `fixed` ones cannot be set. `read_only` and `idempotent` replace the server's hints.
    A `defer`red tool is found by search only, a `hidden` one is not offered. 0 means no own limit.
    """

    alias: str = ""
    shape: str = ""
    rename: Mapping[str, str] = _NOTHING
    defaults: Mapping[str, Any] = _NOTHING
    fixed: Mapping[str, Any] = _NOTHING
    approval: Verdict | None = None
    timeout_s: float = 0.0
    output_bytes_max: int = 0
    price_per_call: str = ""
    read_only: bool | None = None
    idempotent: bool | None = None
    defer: bool = False
    hidden: bool = False


_NO_RULE: Final = ToolRule()


class TokenIssuer(msgspec.Struct, frozen=True):
    """Where the tokens of `client_credentials` come from (RFC 6749, section 4.4); the client's secret is not in it.

    `resource` is the server as the issuer knows it (RFC 8707), "" for unsaid. `in_body`: issuers that do not read the
    client's id and secret from the header `authorization` are told them in the body.
    """

    url: str
    client_id: str
    scope: str = ""
    resource: str = ""
    in_body: bool = False


class ServerSpec(msgspec.Struct, frozen=True):
    """One server as an operator defines it.

    `issuer` is there for `client_credentials` only. `forward_headers` are names of clients' headers that it is told.
    `tenants` and `keys` are who sees it, empty for all. `rules` are verdicts by pattern over tool names, the first that
    fits counts. `idempotency` is how a run's key is told: `meta`, `header:NAME`, `argument:NAME` or `none`. `builtin`
    maps a built-in tool to the server's tool that does it. `required`: a request that names it fails where it cannot be
    listed. `internal`: its calls are not shown. `pin`: a tool that is none of the `pinned` ones (`catalog/pins`) must be
    allowed by a person. `may_defer`: where there are too many tools for a prompt, its own may be left out and found.
    """

    definition: ServerDefinition
    auth: AuthKind = "none"
    issuer: TokenIssuer | None = None
    forward_headers: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    trust: Trust = "standard"
    session: SessionScope = "shared"
    replay: Replay = "hinted"
    idempotency: str = "meta"
    tools: Mapping[str, ToolRule] = _NOTHING
    rules: tuple[tuple[str, Verdict], ...] = ()
    builtin: Mapping[str, str] = _NOTHING
    description: str = ""
    required: bool = False
    internal: bool = False
    pin: bool = False
    pinned: tuple[str, ...] = ()
    may_defer: bool = True

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    def rule(self, tool: str) -> ToolRule:
        """Return what is said of a tool; a rule that says nothing where nothing is."""
        return self.tools.get(tool, _NO_RULE)
