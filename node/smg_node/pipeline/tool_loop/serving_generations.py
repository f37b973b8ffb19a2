"""Serving generations: generations around others, which run tools of this side for the requests that name some."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from smg_node.core.generation.request import GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.generation.run_interface import Generations, Run

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this side.
    from smg_node.pipeline.tool_loop.loop_parts import LoopParts


class ServingGenerations:
    """Starts generations; see `run_interface.Generations`."""

    def __init__(self, inner: Generations, parts: "Callable[[], LoopParts]") -> None:
        """Use `inner` for every pass of a model; `parts` is called with the first request that names tools."""
        self._inner = inner
        self._parts = parts

    def start(self, dialect: str, request: GenerateRequest, context: RequestContext) -> Run:
        """Return a run that has not begun."""
        if request.serving is None:
            return self._inner.start(dialect, request, context)
        from smg_node.pipeline.tool_loop.loop_run import ToolLoopRun

        return ToolLoopRun(self._inner, self._parts(), dialect, request, context)
