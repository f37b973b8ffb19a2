"""Serving generations: generations around others, which run tools of this side for the requests that name some."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.generation.run_interface import Generations, Run

if TYPE_CHECKING:
    from smg_node.core.generation.tool_serving import ToolServing

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

    async def shown_prompt(
        self,
        dialect: str,
        prompt: ChatPrompt,
        serving: "ToolServing",
        context: RequestContext,
        model: str,
    ) -> ChatPrompt:
        """Return what the first pass of a generation would show its model, for whoever counts its tokens.

        Servers are asked for their tools; errors are those of `Run.enter`.
        """
        from smg_node.pipeline.tool_loop.pass_plan import first_prompt
        from smg_node.pipeline.tool_loop.toolbox import open_toolbox

        toolbox = await open_toolbox(self._parts(), dialect, serving, prompt, context, model)
        return first_prompt(prompt, serving, toolbox.catalog)
