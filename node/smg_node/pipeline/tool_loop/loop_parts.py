"""Loop parts: collaborators of every tool loop; built with the first request that names tools of this side."""

from collections.abc import Callable
from dataclasses import dataclass, field

from smg_node.core.generation.outcome import Outcome
from smg_node.core.ids import IdSource
from smg_node.core.journey import Ran
from smg_node.core.ports import Clock
from smg_node.mcp.tool_servers import ToolServers
from smg_node.pipeline.tool_loop.ports import (
    Approvals,
    Builtins,
    LoopOptions,
    Pictures,
    RunJournal,
    ToolSearch,
)
from smg_node.pipeline.tool_loop.search.tool_tokens import ToolTokens


@dataclass(frozen=True, slots=True)
class LoopParts:
    """Collaborators of tool loops. `servers` returns None where no server is known and none may be given.

    What is None is not there: without `builtins` no built-in tool is offered, without `search` nothing is deferred,
    without `approvals` what needs an operator's word is not run, without `journal` runs are known to this process only,
    without `tokens` nothing is deferred because there is too much of it,
    without `pictures` models are told of those of results in words.
    """

    servers: Callable[[], ToolServers | None]
    ids: IdSource
    clock: Clock
    options: Callable[[], LoopOptions] = field(default=LoopOptions)
    builtins: Builtins | None = None
    search: ToolSearch | None = None
    approvals: Approvals | None = None
    journal: RunJournal | None = None
    tokens: ToolTokens | None = None
    on_outcome: Callable[[Outcome], None] = lambda _outcome: None
    """Told what a request came to when it is over."""
    pictures: Pictures | None = None
    on_run: Callable[[str, Ran], None] = lambda _request_id, _ran: None
    """Told what became of each call, by the id of its request."""
