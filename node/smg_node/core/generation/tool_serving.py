"""Tools that this node runs for a model: what a request asks for, whose a call is, and what came of a run.

A request names servers of tools and built-in tools (`ToolServing`). The loop around its generations lists them, offers
them to the model beside the client's own tools, runs the calls that are theirs, and shows the model what came of it.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.ports import SendGate

BuiltinKind: TypeAlias = Literal[
    "web_search",
    "web_fetch",
    "file_search",
    "code_interpreter",
    "image_generation",
    "tool_search",
]

SERVERS_MAX: Final = 64
"""So many servers one request may name: all of them are listed before the model says a word."""
_NOTHING: Final[Mapping[str, Any]] = {}


class ListedTool(msgspec.Struct, frozen=True):
    """A tool as its server lists it. `schema` is the JSON Schema of its arguments, `annotations` the server's hints."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = _NOTHING
    annotations: Mapping[str, Any] = _NOTHING


class ToolFilter(msgspec.Struct, frozen=True, gc=False):
    """Tools of a server: those of these `names`, None for any, and of this hint, None for any; both must fit."""

    names: tuple[str, ...] | None = None
    read_only: bool | None = None


class ApprovalRule(msgspec.Struct, frozen=True, gc=False):
    """Which tools of a server a request wants a person to be asked about; where both fit, `always` counts.

    `otherwise` is for tools that neither fits.
    """

    always: ToolFilter | None = None
    never: ToolFilter | None = None
    otherwise: Literal["always", "never"] = "always"


class AskedServer(msgspec.Struct, frozen=True):
    """A server that a request names. `url` is "" where the label, or `definition`, names one that the operator defined.

    `authorization` and `headers` are secrets of the client: shown to the server, echoed and stored nowhere, and not
    printed. `tools` are the only ones wanted, None for all, and `excluded` ones are not wanted whatever else is said;
    `approval` is None in APIs that have no approvals.
    `pinned` is the listing that counts instead of asking the server. `deferred` tools are found by search only: all but
    the `loaded_tools`, or the `deferred_tools`. `where` is the JSON path of what named it. `thread` is what its
    conversation is known by, for servers that keep a session for each; "" for a request that stands alone.
    """

    label: str
    url: str = ""
    definition: str = ""
    authorization: str = ""
    headers: Mapping[str, str] = _NOTHING
    tools: ToolFilter | None = None
    approval: ApprovalRule | None = None
    pinned: tuple[ListedTool, ...] | None = None
    description: str = ""
    deferred: bool = False
    deferred_tools: tuple[str, ...] = ()
    where: str = "tools"
    thread: str = ""
    excluded: tuple[str, ...] = ()
    loaded_tools: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Some servers are let in by what stands in the query.
        return f"AskedServer({self.label!r}, {self.url.partition('?')[0]!r})"


class AskedBuiltin(msgspec.Struct, frozen=True):
    """A built-in tool that a request names. `settings` are the tool object's own (filters, location, container).

    `kind` is the tool whatever its spelling, `spelled` the type as the request has it. `uses_max` is None for any
    number. `insisted`: the tool choice asks for it.
    """

    kind: BuiltinKind
    spelled: str
    settings: Mapping[str, Any] = _NOTHING
    uses_max: int | None = None
    insisted: bool = False
    where: str = "tools"


class ApprovedCall(msgspec.Struct, frozen=True, gc=False):
    """A call that a person was asked about and has answered; `arguments` is its JSON text. `reason` is why not.

    `kept`: a response that a node has stored asks for it, so that it is no client's invention.
    """

    approval: str
    server: str
    tool: str
    arguments: str
    approve: bool = True
    reason: str = ""
    kept: bool = False


class ChosenTool(msgspec.Struct, frozen=True, gc=False):
    """A tool of ours that a tool choice names: one of a server, any of a server where `tool` is "", or a built-in one.

    `server` is the label of the server, "" for a built-in tool.
    """

    server: str = ""
    tool: str = ""
    builtin: BuiltinKind | None = None


class ServedChoice(msgspec.Struct, frozen=True, gc=False):
    """Tools of ours that a tool choice leaves; none of them where `tools` is empty.

    Whether one of them must be called is in the prompt's own choice, as `mode`, whose `allowed` then are the functions
    of the client's that may be called too, perhaps none: the names by which the model knows `tools` are added to it.
    """

    tools: tuple[ChosenTool, ...] = ()


class ToolServing(msgspec.Struct, frozen=True):
    """What a request asks of tools on this node's side.

    `calls_max` bounds the runs of one answer, None for no bound. `answered` are approvals that the request brings.
    `headers` are those of the request's head, names in lower case, for servers that are to be told some of them.
    `approvals`: its API can ask for approval. `stored`: the answer is kept, so that any node can go on with it.
    `open_calls` are calls of ours without a result at the end of the context, which are run before any pass.
    `choice` is None where the tool choice says nothing of tools of ours. `found` are names of deferred tools, as the
    model knows them, that a search of the context has found: they stay callable. `gate` is passed before anything is
    sent to a server; None where nobody else can end the answer.
    """

    servers: tuple[AskedServer, ...] = ()
    builtins: tuple[AskedBuiltin, ...] = ()
    calls_max: int | None = None
    answered: tuple[ApprovedCall, ...] = ()
    headers: Mapping[str, str] = _NOTHING
    approvals: bool = False
    stored: bool = False
    open_calls: tuple["OpenToolCall", ...] = ()
    choice: ServedChoice | None = None
    found: tuple[str, ...] = ()
    gate: SendGate | None = None

    def __repr__(self) -> str:
        return f"ToolServing({self.servers!r}, {self.builtins!r})"


class OpenToolCall(msgspec.Struct, frozen=True, gc=False):
    """A call of ours that the context shows without a result: a client sent back an answer that paused there.

    `call_id` is its id in the context, `shown_id` the one that its client knows it by.
    """

    call_id: str
    owner: ToolOwner
    arguments: str
    shown_id: str = ""


class RunError(msgspec.Struct, frozen=True):
    """Why a run has no good result.

    `type` is that of Responses: `mcp_tool_execution_error` with `content`, the tool's own words; `mcp_protocol_error`
    and `http_error` with `code` and `message`.
    """

    type: str
    code: int = 0
    message: str = ""
    content: tuple[Mapping[str, Any], ...] = ()


class Source(msgspec.Struct, frozen=True, gc=False):
    """One thing that a search found. `score` is from 0 to 1, None where the server says none."""

    url: str = ""
    title: str = ""
    text: str = ""
    score: float | None = None
    file_id: str = ""
    age: str = ""


class RunResult(msgspec.Struct, frozen=True):
    """What came of a run. `text` is what the model is shown; `error` is None where it went well.

    `content` are the blocks as MCP has them. Of built-in tools: `action` is what was done (`query`, `queries`, `url`,
    `pattern`), `sources` what was found, `outputs` what code printed or drew. `found` are tools that a search found,
    each under the name by which the model calls it, and `found_at` the labels of their servers, "" for the client's.
    `cut`: the client left or the node stopped before it was over. `duration_ms` is the time of the call.
    `pictures` are data URLs of what the model is shown beside the text.
    """

    text: str
    error: RunError | None = None
    content: tuple[Mapping[str, Any], ...] = ()
    action: Mapping[str, Any] = _NOTHING
    sources: tuple[Source, ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    found: tuple[ListedTool, ...] = ()
    found_at: tuple[str, ...] = ()
    cut: bool = False
    duration_ms: int = 0
    pictures: tuple[str, ...] = ()
