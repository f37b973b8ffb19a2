"""Ports of the tool loop: built-in tools, search among tools, operators' approvals, and what keeps records of runs."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from smg_node.core.generation.request import Tool
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    BuiltinKind,
    RunResult,
    Source,
)
from smg_node.core.request_context import RequestContext
from smg_node.mcp.failures import Failure
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.mcp.tools.tool_result import CallResult


class LoopOptions(msgspec.Struct, frozen=True):
    """Limits of one answer: passes of its model, runs at a time, and of one result what its model is shown.

    `approval_wait_s` is how long a run waits for an operator's word. Tools of more prompt tokens than
    `defer_over_tokens` are left out of prompts and searched for, 0 for never.
    """

    rounds_max: int = 10
    parallel_max: int = 8
    output_bytes_max: int = McpLimits().output_bytes_max
    approval_wait_s: float = 300.0
    defer_over_tokens: int = 0


class Builtins(Protocol):
    """Built-in tools on any server: what a model is offered for them, what the server is told, what its answer means."""

    def offered(self, asked: AskedBuiltin) -> Tool | None:
        """Return the function that a model is offered; None for a kind that nothing is known of."""
        ...

    def arguments(
        self,
        kind: BuiltinKind,
        settings: Mapping[str, Any],
        arguments: str,
        schema: Mapping[str, Any] | None,
    ) -> str | Failure:
        """Return the arguments for the server's tool, JSON text: a model's, with the settings, which win.

        `schema` is that of the server's tool, None where it is not known. A failure for what is no object.
        """
        ...

    def read(
        self,
        kind: BuiltinKind,
        settings: Mapping[str, Any],
        arguments: str,
        outcome: CallResult | Failure,
        *,
        first: int,
        bytes_max: int,
    ) -> RunResult:
        """Return what came of a run; `arguments` are the model's own, and its sources are numbered from `first`."""
        ...

    def annotations(self, text: str, sources: Sequence[Source]) -> tuple[Mapping[str, Any], ...]:
        """Return the citations in a model's text of sources that it was shown, in the form of Responses.

        The sources come without their texts.
        """
        ...


class ToolSearch(Protocol):
    """Search among tools that a prompt does not show."""

    def offered(self, asked: AskedBuiltin) -> Tool:
        """Return the function that a model is offered for it."""
        ...

    async def search(
        self,
        asked: AskedBuiltin,
        arguments: str,
        tools: Sequence[SearchedTool],
        context: RequestContext,
    ) -> RunResult:
        """Return the tools found, in `found`, and what the model is shown of them; `context` is that of who searches."""
        ...


class OperatorAnswer(msgspec.Struct, frozen=True, gc=False):
    """What an operator said of a run; `why` says why it is not run, for its model.

    `crowded`: nobody was asked, for too many runs wait already.
    """

    approve: bool
    why: str = ""
    crowded: bool = False


class Approvals(Protocol):
    """Operators, who are asked about runs of clients whose API cannot ask."""

    async def wait(
        self,
        owner: ToolOwner,
        arguments: str,
        context: RequestContext,
        *,
        model: str,
        until_s: float,
    ) -> OperatorAnswer:
        """Return what an operator says of the run; no where nobody says anything before `until_s` of the monotonic clock.

        A wait that is cancelled is over: nobody can allow its run any more.
        """
        ...


class RunJournal(Protocol):
    """Keeps what is known of runs where another node finds it; see `mcp/run_record`."""

    async def meant(self, key: str, owner: ToolOwner, arguments: str) -> None:
        """Take note of a run before anything of it is sent; kept when this returns."""
        ...

    def sent(self, key: str) -> None:
        """Take note that a first byte leaves now."""
        ...

    async def done(self, key: str, result: RunResult) -> None:
        """Keep a run's result, before anybody is shown it."""
        ...


class Pictures(Protocol):
    """Finds what a model can be shown of the pictures that tools answer."""

    async def shown(
        self,
        model: str,
        content: Sequence[Mapping[str, Any]],
        beside: int = 0,
        tenant: str | None = None,
    ) -> tuple[str, ...]:
        """Return data URLs of the pictures among the blocks of a result that the model of that name takes, in order.

        `tenant` is whose answer it is for, None where that is not known.

        None where it takes none, no more than it takes with `beside` others in one request, and without those that cannot be read: what is there is told in words as well.
        """
        ...
