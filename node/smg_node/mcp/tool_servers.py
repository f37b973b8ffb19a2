"""Port to the servers of tools that a node knows: who may see them, what they offer, and calls to them.

`cluster/mcp` fits: servers that operators defined, and those that clients may give. The loop around generations and the
node's own MCP server use it; neither knows where a definition came from, nor how a server is reached.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from smg_node.core.generation.tool_serving import AskedServer, BuiltinKind
from smg_node.core.request_context import RequestContext
from smg_node.mcp.failures import Failure
from smg_node.mcp.pool import Target
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.session.tool_call import Answerer, PassedInput, declined
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult

Noted: TypeAlias = Callable[[str, float | None, float | None], None]
"""Hears how far a call is: a message, how much is done, and how much there is to do in all."""


class ResolvedServer(msgspec.Struct, frozen=True):
    """A server as one request uses it: under its label, with its credential, for its tenant.

    `defined`: an operator did; a client gave the others.
    """

    label: str
    spec: ServerSpec
    target: Target
    defined: bool = True


class CallOptions(msgspec.Struct, frozen=True):
    """How one call is made.

    `key` tells a repeated run from a new one, "" for none. `trace` are `traceparent` and `tracestate`. `sending` is
    called once, just before a first byte may leave; `noted` hears of progress (message, done, total). `answerer`
    answers what the server asks back; with `passed` the client that called is asked instead. `total_s` bounds the time,
    None for that of the limits. `model` is the one that calls, "" for none.
    """

    key: str = ""
    trace: Mapping[str, str] | None = None
    sending: Callable[[], None] | None = None
    noted: Noted | None = None
    answerer: Answerer = declined
    total_s: float | None = None
    model: str = ""
    passed: PassedInput | None = None


PLAIN_CALL = CallOptions()


class ToolServers(Protocol):
    """All servers of tools, as a request's caller may use them."""

    async def resolve(
        self, asked: AskedServer, headers: Mapping[str, str], context: RequestContext
    ) -> ResolvedServer:
        """Return the server that a request names; `headers` are those of its head, in lower case.

        INVALID_REQUEST for a name that this caller cannot see, and for a URL that may not be used.
        """
        ...

    def builtin(
        self, kind: BuiltinKind, headers: Mapping[str, str], context: RequestContext
    ) -> tuple[ResolvedServer, str] | None:
        """Return the server and the tool that do a built-in tool's work for this caller; None where nothing does."""
        ...

    def visible(
        self, headers: Mapping[str, str], context: RequestContext
    ) -> Sequence[ResolvedServer]:
        """Return the defined servers that this caller may see, by name."""
        ...

    async def list_tools(
        self, server: ResolvedServer, *, fresh: bool = False
    ) -> ToolList | Failure:
        """Return the tools that a server offers."""
        ...

    async def call(
        self,
        server: ResolvedServer,
        tool: str,
        arguments: str | bytes,
        context: RequestContext,
        options: CallOptions = PLAIN_CALL,
    ) -> CallResult | Failure:
        """Call a tool, by the server's name of it, with arguments as JSON text; limits and counts are seen to."""
        ...
