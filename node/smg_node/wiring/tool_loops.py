"""Tool loops of a process: what runs tools for models, loaded with the first request that names some."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from smg_node.config.frozen_settings import Settings
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.wiring.base import Base
from smg_node.wiring.media_parts import LazyMedia, LazyPictures

if TYPE_CHECKING:
    from smg_node.mcp.tool_servers import ToolServers
    from smg_node.pipeline.tool_loop.loop_parts import LoopParts


def loop_parts(
    settings: Settings,
    base: Base,
    journal: Journal,
    servers: "Callable[[], ToolServers | None]",
    media: LazyMedia,
) -> "Callable[[], LoopParts]":
    """Return the function that returns the parts of loops, built at its first call."""

    @cache
    def built() -> "LoopParts":
        from smg_node.pipeline.tool_loop.builtin.server_builtins import ServerBuiltins
        from smg_node.pipeline.tool_loop.builtin.tool_searches import ToolSearches
        from smg_node.pipeline.tool_loop.loop_parts import LoopParts
        from smg_node.pipeline.tool_loop.ports import LoopOptions

        mcp = settings.mcp
        options = LoopOptions(
            rounds_max=mcp.rounds_max,
            parallel_max=mcp.calls_parallel,
            output_bytes_max=mcp.output_bytes_max,
            approval_wait_s=mcp.approval_wait_s,
        )
        return LoopParts(
            servers,
            base.ids,
            base.clock,
            lambda: options,
            builtins=ServerBuiltins(),
            search=ToolSearches(),
            approvals=base.approvals,
            pictures=LazyPictures(media),
            on_run=journal.ran,
        )

    return built
