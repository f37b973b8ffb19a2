"""Model calls: models that an operator exposes as tools of the node's own MCP server, for one request of a client.

A call is a generation like any other, under the caller's key, limits and deadline; losing the client cancels it. A model
that this caller cannot have is no tool at all: nothing tells it from a name that nobody has.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.events import Delta, Event
from smg_node.core.request_context import RequestContext
from smg_node.dialects.dialect import UNKNOWN, reading_steps
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.caller_context import routing_key
from smg_node.http.middleware.model_access import may_ask, visible
from smg_node.mcp.serving.incoming import Incoming
from smg_node.mcp.serving.model_tools import (
    ArgumentError,
    ModelTool,
    answered,
    chat_body,
    model_tools,
)
from smg_node.mcp.serving.outcomes import complete, failed
from smg_node.mcp.serving.replies import Result
from smg_node.mcp.session.tool_call import Arguments
from smg_node.mcp.tool_servers import Noted
from smg_node.pipeline.generation.run_interface import Run

NOTED_S: Final = 0.25
"""Between two words about how far an answer is."""
_DIALECT: Final = "chat"
_UNKNOWN: Final = "model_not_found"
_NOT_BEGUN: Final = (ErrorKind.INVALID_REQUEST, ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED)


class ModelCalls:
    """Models as tools. `exposed` are descriptions by the models' names; `plain`: tools have the models' names alone."""

    def __init__(
        self,
        parts: HttpParts,
        bodies: BodyReader,
        request: HttpRequest,
        context: RequestContext,
        exposed: Mapping[str, str],
        *,
        plain: bool,
    ) -> None:
        self._parts = parts
        self._bodies = bodies
        self._request = request
        self._context = context
        self._tools = model_tools(exposed, plain=plain)

    def tools(self) -> Sequence[ModelTool]:
        """Return those of models that are served now."""
        served = {
            name
            for view in visible(self._request, self._parts.catalog.models())
            for name in (view.id, *view.aliases)
        }
        return [tool for tool in self._tools if tool.model in served]

    def find(self, name: str) -> ModelTool | None:
        """Return the tool of that name, None where there is none."""
        found = next((tool for tool in self._tools if tool.name == name), None)
        if found is None or not may_ask(self._request, found.model):
            return None
        try:
            self._parts.catalog.model(found.model)
        except SmgError:
            return None
        return found

    async def call(
        self, request: Incoming, tool: ModelTool, arguments: Arguments, noted: Noted | None
    ) -> Result | None:
        """Return the answer to a call; None for a model that this caller cannot have. `noted` hears of its tokens."""
        self._request.model = tool.model
        try:
            body = chat_body(tool.model, arguments.values, streamed=noted is not None)
        except ArgumentError as error:
            return failed(request, f"not run: {error}")
        try:
            answer = await self._answer(bytes(arguments.text), body, noted)
        except SmgError as error:
            if error.code == _UNKNOWN:
                return None
            self._request.error_code = error.code
            return failed(request, _words(error))
        return complete(request, answered(answer))

    async def _answer(self, raw: bytes, body: dict[str, object], noted: Noted | None) -> Answer:
        parts, request = self._parts, self._request
        dialect, limit = parts.dialects[_DIALECT], body.get("max_tokens")
        # Of the head nothing is told: it is that of another API.
        read = await self._bodies.large.read_in_steps(
            raw, body, lambda body: reading_steps(dialect, body, UNKNOWN)
        )
        wish = read.request
        if key := routing_key(request.headers, parts.options.key_headers):
            wish = replace(wish, routing_key=key)
        run = parts.translating.start(_DIALECT, wish, self._context)
        try:
            if noted is None:
                return await run.answer()
            return await self._told(run, noted, float(limit) if isinstance(limit, int) else None)
        finally:
            request.worker = run.worker

    async def _told(self, run: Run, noted: Noted, limit: float | None) -> Answer:
        """Return the answer of a run, and meanwhile say how many tokens there are."""
        clock, collector = self._parts.clock, Collector(1)
        tokens, said, next_s = 0, 0, 0.0

        def receive(events: Sequence[Event]) -> None:
            nonlocal tokens, said, next_s
            collector.feed(events)
            tokens += sum(event.tokens for event in events if isinstance(event, Delta))
            if tokens > said and clock.monotonic_s() >= next_s:
                said, next_s = tokens, clock.monotonic_s() + NOTED_S
                noted(f"tokens so far: {tokens}", float(tokens), limit)

        await run.tell(receive)
        return collector.answer()


def _words(error: SmgError) -> str:
    """Return what went wrong, as the model that called is told."""
    # What is read as a chat's body names its path in its message already.
    named = error.where is None or error.message.startswith(error.where)
    where = "" if named else f"{error.where}: "
    again = "" if error.retry_after_s is None else f"; again in {error.retry_after_s:.0f} s"
    lead = "not run" if error.kind in _NOT_BEGUN else "tool failed"
    return f"{lead}: {where}{error.message}{again}"
