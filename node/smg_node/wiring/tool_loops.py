"""Tool loops of a process: what runs tools for models, loaded with the first request that names some."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from smg_node.config.frozen_settings import Settings
from smg_node.core.generation.outcome import Outcome
from smg_node.core.generation.request import TextPrompt
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.relay.relays import Relays
from smg_node.wiring.base import Base
from smg_node.wiring.media_parts import LazyMedia, LazyPictures

if TYPE_CHECKING:
    from smg_node.mcp.tool_servers import ToolServers
    from smg_node.pipeline.tool_loop.loop_parts import LoopParts
    from smg_node.pipeline.tool_loop.search.semantic_search import SemanticSearch
    from smg_node.pipeline.tool_loop.search.tool_searches import ToolSearches


@dataclass(frozen=True, slots=True)
class Pool:
    """What loops ask of the cluster's own models: vectors of texts, and how many tokens a text is."""

    relays: Relays
    embedder: Embedder
    preparer: Preparer

    async def tokens(self, model: str, text: str) -> int | None:
        """Return how many tokens a text is for a model, None where this node does not have its tokenizer."""
        served = self.relays.parts.placer.own.served(model)
        if served is None or served.unread is not None:
            return None
        prompt = TextPrompt(text, add_special_tokens=False)
        return len((await self.preparer.prompt(prompt, served)).ids)


def loop_parts(
    now: Callable[[], Settings],
    base: Base,
    journal: Journal,
    on_outcome: Callable[[Outcome], None],
    servers: "Callable[[], ToolServers | None]",
    pool: Pool,
    media: LazyMedia,
) -> "Callable[[], LoopParts]":
    """Return the function that returns the parts of loops, built at its first call.

    `now` returns the settings in force: each answer has the limits of when it begins.
    """

    @cache
    def built() -> "LoopParts":
        from smg_node.pipeline.tool_loop.builtin.server_builtins import ServerBuiltins
        from smg_node.pipeline.tool_loop.loop_parts import LoopParts
        from smg_node.pipeline.tool_loop.ports import LoopOptions
        from smg_node.pipeline.tool_loop.search.tool_tokens import ToolTokens

        def options() -> LoopOptions:
            mcp = now().mcp
            return LoopOptions(
                rounds_max=mcp.rounds_max,
                parallel_max=mcp.calls_parallel,
                output_bytes_max=mcp.output_bytes_max,
                approval_wait_s=mcp.approval_wait_s,
                defer_over_tokens=mcp.defer_over_tokens,
            )

        return LoopParts(
            servers,
            base.ids,
            base.clock,
            options,
            builtins=ServerBuiltins(),
            search=_searches(now, base, pool),
            approvals=base.approvals,
            tokens=ToolTokens(pool.tokens),
            on_outcome=on_outcome,
            pictures=LazyPictures(media),
            on_run=journal.ran,
        )

    return built


def _searches(now: Callable[[], Settings], base: Base, pool: Pool) -> "ToolSearches":
    from smg_node.pipeline.tool_loop.search.tool_searches import SearchOptions, ToolSearches
    from smg_node.telemetry.metrics.declared.mcp import MCP_TOOL_SEARCHES

    def options() -> SearchOptions:
        mcp = now().mcp
        return SearchOptions(mcp.search, mcp.search_model)

    @cache
    def semantic() -> "SemanticSearch":
        # Loaded with the first search by meaning.
        from smg_node.pipeline.pool_embeddings import PoolEmbeddings
        from smg_node.pipeline.tool_loop.search.semantic_search import SemanticSearch

        embeddings = PoolEmbeddings(pool.embedder, pool.relays)
        return SemanticSearch(embeddings, base.ids, base.clock)

    def counted(search: str, outcome: str) -> None:
        base.meters.cells.tally(MCP_TOOL_SEARCHES, search, outcome).value += 1

    return ToolSearches(options, semantic, counted)
