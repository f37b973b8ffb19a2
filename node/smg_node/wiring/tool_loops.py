"""Tool loops of a process: what runs tools for models, loaded with the first request that names some."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from smg_node.config.frozen_settings import Settings
from smg_node.core.generation.outcome import Outcome
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.wiring.base import Base

if TYPE_CHECKING:
    from smg_node.mcp.tool_servers import ToolServers
    from smg_node.pipeline.tool_loop.loop_parts import LoopParts


def loop_parts(
    settings: Callable[[], Settings],
    base: Base,
    journal: Journal,
    on_outcome: Callable[[Outcome], None],
    servers: "Callable[[], ToolServers | None]",
) -> "Callable[[], LoopParts]":
    """Return the function that returns the parts of loops, built at its first call.

    `settings` are those in force: each answer has the limits of when it begins.
    """

    @cache
    def built() -> "LoopParts":
        from smg_node.pipeline.tool_loop.builtin.server_builtins import ServerBuiltins
        from smg_node.pipeline.tool_loop.builtin.tool_searches import ToolSearches
        from smg_node.pipeline.tool_loop.loop_parts import LoopParts
        from smg_node.pipeline.tool_loop.ports import LoopOptions

        def options() -> LoopOptions:
            mcp = settings().mcp
            return LoopOptions(
                rounds_max=mcp.rounds_max,
                parallel_max=mcp.calls_parallel,
                output_bytes_max=mcp.output_bytes_max,
                approval_wait_s=mcp.approval_wait_s,
            )

        return LoopParts(
            servers,
            base.ids,
            base.clock,
            options,
            builtins=ServerBuiltins(),
            search=ToolSearches(),
            approvals=base.approvals,
            on_outcome=on_outcome,
            on_run=journal.ran,
        )

    return built
