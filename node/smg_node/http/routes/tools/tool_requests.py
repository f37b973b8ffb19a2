"""Tool requests: what each method of the node's own MCP server answers, over the servers that its caller may see."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from smg_node import __version__
from smg_node.core.errors import SmgError
from smg_node.core.request_context import RequestContext
from smg_node.mcp.catalog.arguments import server_arguments
from smg_node.mcp.failures import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Failure,
    plain_text,
    prompt_text,
    refused,
)
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, revision_named
from smg_node.mcp.serving.call_state import (
    APPROVAL,
    STATE_CHARACTERS_MAX,
    CallBinding,
    CallState,
    Vault,
    approval_answer,
    approval_request,
    binding_of,
    can_be_asked,
    opened,
    sealed,
)
from smg_node.mcp.serving.header_values import differing_argument
from smg_node.mcp.serving.incoming import META, MODERN_NAMES, Incoming
from smg_node.mcp.serving.offered_tools import (
    OfferedTool,
    decision,
    listed,
    offered,
    page_of,
    splits,
)
from smg_node.mcp.serving.outcomes import complete, failed, input_required, reply_of
from smg_node.mcp.serving.replies import MISSING_CAPABILITY, Refusal, Result
from smg_node.mcp.session.tool_call import Arguments, PassedInput, read_arguments
from smg_node.mcp.tool_servers import CallOptions, Noted, ResolvedServer, ToolServers
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import InputRequired

if TYPE_CHECKING:
    # Loaded where an operator exposes a model.
    from smg_node.http.routes.tools.model_calls import ModelCalls
    from smg_node.mcp.serving.model_tools import ModelTool

SERVER: Final[Mapping[str, str]] = {"name": "smg-node", "version": __version__}
DISCOVERY_TTL_MS: Final = 3_600_000
_PASSED: Final = ("elicitation", "sampling", "roots")
"""Capabilities of a client that a server may use through this node: each is a question that the client answers."""
_TRACE: Final = ("traceparent", "tracestate")
_LISTED_AT_ONCE: Final = 16


class ToolRequests:
    """Requests of one HTTP request. `one` is the server that its path names, None for all of them or for `models`.

    `headers` are those of its head, which repeat arguments of a call in the modern era; `now_ms` is the wall clock.
    """

    def __init__(
        self,
        servers: ToolServers | None,
        seen: Sequence[ResolvedServer],
        one: ResolvedServer | None,
        headers: Mapping[str, str],
        context: RequestContext,
        *,
        vault: Vault,
        now_ms: Callable[[], int],
        left_s: Callable[[], float],
        models: "ModelCalls | None" = None,
    ) -> None:
        self._servers = servers
        self._seen = seen
        self._one = one
        self._headers = headers
        self._context = context
        self._vault = vault
        self._now_ms = now_ms
        self._left_s = left_s
        self._models = models
        self._called = 0
        """Calls so far: those of one batch are different runs."""

    async def answer(self, request: Incoming, noted: Noted | None = None) -> Result | Refusal:
        """Return the answer to a request of a known method; `noted` hears of a call's progress."""
        match request.method:
            case "initialize":
                return self._initialize(request)
            case "server/discover":
                return self._discover(request)
            case "ping":
                return Result(request.id, {})
            case "tools/list":
                return await self._list(request)
            case _:
                return await self._call(request, noted)

    def _initialize(self, request: Incoming) -> Result:
        wanted = revision_named(request.params.get("protocolVersion"))
        agreed = NEWEST_HANDSHAKE if wanted is None or wanted.modern else wanted
        about = {
            "protocolVersion": agreed.name,
            "capabilities": {"tools": {}},
            "serverInfo": SERVER,
        }
        return Result(request.id, {**about, **self._instructions()})

    def _discover(self, request: Incoming) -> Result:
        about = {
            "supportedVersions": list(MODERN_NAMES),
            "capabilities": {"tools": {}},
            "ttlMs": DISCOVERY_TTL_MS,
            "cacheScope": "private",
            "_meta": {META + "serverInfo": SERVER},
        }
        return complete(request, {**about, **self._instructions()})

    def _instructions(self) -> Mapping[str, Any]:
        told = self._one.spec.description if self._one is not None else ""
        return {"instructions": told} if told else {}

    async def _list(self, request: Incoming) -> Result | Refusal:
        cursor = request.params.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            return request.refusal(INVALID_PARAMS, "params.cursor is a string")
        lists = await self._lists(self._seen)
        if self._one is not None and isinstance(lists[0], Failure):
            return request.refusal(
                INTERNAL_ERROR, f"the tools cannot be listed: {lists[0].message}"
            )
        pairs = zip(self._seen, lists, strict=True)
        known = [(server, one) for server, one in pairs if isinstance(one, ToolList)]
        page = page_of(self._offered(known), cursor or "")
        if page is None:
            return request.refusal(INVALID_PARAMS, "params.cursor is none that this server gave")
        modern = request.revision.modern
        rows = [
            listed(one, modern=modern) if isinstance(one, OfferedTool) else one.row()
            for one in page.tools
        ]
        value: dict[str, Any] = {"tools": rows}
        if page.cursor:
            value["nextCursor"] = page.cursor
        if modern:
            value |= {"ttlMs": _ttl_ms(lists), "cacheScope": "private"}
        return complete(request, value)

    def _offered(
        self, known: Sequence[tuple[ResolvedServer, ToolList]]
    ) -> "Sequence[OfferedTool | ModelTool]":
        """Return all tools by name; those of servers go before those of models."""
        pairs = [(server, one.tools) for server, one in known]
        tools = offered(pairs, plain=self._one is not None)
        if self._models is None:
            return tools
        named: dict[str, OfferedTool | ModelTool] = {one.name: one for one in self._models.tools()}
        named |= {one.name: one for one in tools}
        return [named[name] for name in sorted(named)]

    async def _lists(self, servers: Sequence[ResolvedServer]) -> list[ToolList | Failure]:
        """Return the lists of servers, in their order."""
        assert self._servers is not None or not servers, "whoever shows servers can list them"
        free = asyncio.Semaphore(_LISTED_AT_ONCE)

        async def one(server: ResolvedServer) -> ToolList | Failure:
            assert self._servers is not None, "as above"
            async with free:
                return await self._servers.list_tools(server)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(server)) for server in servers]
        return [task.result() for task in tasks]

    async def _call(self, request: Incoming, noted: Noted | None) -> Result | Refusal:
        name = request.params.get("name")
        if not isinstance(name, str) or not name:
            return request.refusal(INVALID_PARAMS, "params.name is missing, or no string")
        text = b"" if request.arguments == b"null" else request.arguments
        read = read_arguments(text)
        if isinstance(read, Failure):
            return request.refusal(INVALID_PARAMS, f"params.arguments: {read.message}")
        found = await self._find(name)
        if isinstance(found, Failure):
            return reply_of(request, found)
        if found is None or found.rule.hidden:
            return await self._ask_model(request, name, read, noted)
        if request.revision.modern:
            differs = differing_argument(found.schema, read.values, self._headers)
            if differs:
                return request.refusal(HEADER_MISMATCH, f"{differs} does not match the arguments")
        verdict, rule, _ = decision(found.server, found.tool)
        if verdict == "deny":
            return failed(request, f"not run: {found.name} is not allowed ({rule})")
        binding = self._binding(found, read.values)
        state, responses = self._resumed(request, binding)
        if isinstance(state, Refusal):
            return state
        if verdict == "ask" and not (state is not None and state.approved):
            asked = self._approval(request, found, read, binding, state, responses)
            if asked is not None:
                return asked
            state = CallState(approved=True)
            responses = None
        sent = server_arguments(bytes(read.text).decode(), found.rule)
        return await self._run(request, found, sent, binding, state, responses, noted)

    async def _ask_model(
        self, request: Incoming, name: str, arguments: Arguments, noted: Noted | None
    ) -> Result | Refusal:
        """Return the answer of the model whose tool has that name; a refusal where there is none for this caller."""
        model = None if self._models is None else self._models.find(name)
        answer = None
        if self._models is not None and model is not None:
            answer = await self._models.call(request, model, arguments, noted)
        unknown = f"unknown tool: {plain_text(name, 200)}"
        return answer or request.refusal(INVALID_PARAMS, unknown)

    async def _find(self, name: str) -> OfferedTool | Failure | None:
        """Return the tool of a name, None for no such tool; a failure where its server cannot be listed."""
        one = self._one
        may_be = [(one, name)] if one is not None else list(splits(name, self._seen))
        failure: Failure | None = None
        for server, tool in may_be:
            (tools,) = await self._lists((server,))
            if isinstance(tools, Failure):
                failure = failure or tools
            elif tool in tools.tools:
                return OfferedTool(name, server, tools.tools[tool])
        return failure

    def _binding(self, found: OfferedTool, arguments: Mapping[str, Any]) -> CallBinding:
        return binding_of(
            tenant=self._context.tenant,
            key_id=self._context.key_id,
            server=found.server.label,
            tool=found.tool.name,
            arguments=arguments,
        )

    def _resumed(
        self, request: Incoming, binding: CallBinding
    ) -> tuple[CallState | Refusal | None, Mapping[str, Any] | None]:
        """Return the state and the answers that a call brings back, or why they cannot be taken."""
        if not request.revision.modern:
            return None, None
        text, responses = request.params.get("requestState"), request.params.get("inputResponses")
        if responses is not None and not isinstance(responses, dict):
            return request.refusal(INVALID_PARAMS, "params.inputResponses is an object"), None
        if text is None:
            return None, responses
        state = None
        if isinstance(text, str):
            state = opened(self._vault, text, binding, now_ms=self._now_ms())
        if state is None:
            why = "params.requestState is none of this call, or too old"
            return request.refusal(INVALID_PARAMS, why), None
        return state, responses

    def _approval(
        self,
        request: Incoming,
        found: OfferedTool,
        arguments: Arguments,
        binding: CallBinding,
        state: CallState | None,
        responses: Mapping[str, Any] | None,
    ) -> Result | Refusal | None:
        """Return how a person is asked, or that nobody allows the call; None where somebody does."""
        if not request.revision.modern:
            why = (
                f"{found.name} needs a person's approval, which only clients of 2026-07-28 can give"
            )
            return failed(request, f"not run: {why}")
        # An answer counts with our question's state only: that says which call it was about.
        said = approval_answer(responses or {}) if state is not None else None
        if said is None:
            if not can_be_asked(request.capabilities):
                needed: dict[str, Any] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
                why = f"{found.name} needs a person's approval"
                return request.refusal(MISSING_CAPABILITY, why, needed)
            text = bytes(arguments.text).decode()
            question = {APPROVAL: approval_request(found.server.label, found.tool.name, text)}
            carried = sealed(self._vault, CallState(), binding, now_ms=self._now_ms())
            return input_required(request, InputRequired(question, carried))
        return None if said else failed(request, "not run: the call was not approved")

    async def _run(
        self,
        request: Incoming,
        found: OfferedTool,
        arguments: str,
        binding: CallBinding,
        state: CallState | None,
        responses: Mapping[str, Any] | None,
        noted: Noted | None,
    ) -> Result | Refusal:
        assert self._servers is not None, "a tool was found"
        wanted: list[InputRequired] = []
        self._called += 1
        upstream = self._context.upstream_headers
        options = CallOptions(
            key=f"{self._context.token}/{self._called}",
            trace={name: upstream[name] for name in _TRACE if name in upstream},
            noted=noted,
            total_s=max(0.0, self._left_s()),
            passed=self._passed(request, wanted, state, responses),
        )
        try:
            outcome = await self._servers.call(
                found.server, found.tool.name, arguments, self._context, options
            )
        except SmgError as error:
            # A limit, or a secret that is out of reach: of a batch, only this call fails.
            return failed(request, prompt_text(refused(error.message)))
        if not wanted:
            return reply_of(request, outcome)
        return self._ask_back(request, wanted[0], binding, state)

    def _passed(
        self,
        request: Incoming,
        wanted: list[InputRequired],
        state: CallState | None,
        responses: Mapping[str, Any] | None,
    ) -> PassedInput | None:
        """Return how the server's questions reach the client; None where it can answer none."""
        can = {name: one for name, one in request.capabilities.items() if name in _PASSED}
        server_state = state.server_state if state is not None else None
        if not can and responses is None and server_state is None:
            return None
        return PassedInput(wanted.append, can, responses, server_state)

    def _ask_back(
        self, request: Incoming, asked: InputRequired, binding: CallBinding, state: CallState | None
    ) -> Result:
        """Return the server's questions, with its state wrapped in ours where there is anything to carry."""
        approved = state is not None and state.approved
        carried = None
        if len(asked.state or "") > STATE_CHARACTERS_MAX:
            most = f"{STATE_CHARACTERS_MAX} characters"
            return failed(request, f"tool failed: the server's state has more than {most}")
        if approved or asked.state is not None:
            wrapped = CallState(approved, asked.state)
            carried = sealed(self._vault, wrapped, binding, now_ms=self._now_ms())
        return input_required(request, InputRequired(asked.requests, carried))


def _ttl_ms(lists: Sequence[ToolList | Failure]) -> int:
    """Return how long the shortest of the lists holds; nothing of a server that could not be listed does."""
    now_s = asyncio.get_running_loop().time()
    lives = [one.good_until_s - now_s if isinstance(one, ToolList) else 0.0 for one in lists]
    return max(0, int(min(lives, default=0.0) * 1000))
