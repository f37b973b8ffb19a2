"""Tool searches: the search among tools that a prompt does not show, in a worker thread; see `ports.ToolSearch`.

By words and by patterns always; by meaning as well, or both together, where that is set and its model can be asked.

The texts of a request's tools are read for its first search, a rest after every few, and kept for the next ones: several
hundred tools take some tens of milliseconds.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from smg_node.core.cooperative_steps import Steps
from smg_node.core.generation.request import Tool
from smg_node.core.generation.tool_serving import AskedBuiltin, RunResult
from smg_node.core.request_context import RequestContext
from smg_node.dialects.messages.request.tools import functions_text
from smg_node.mcp.builtin.builtin_tool import argument_of, builtin_tool, by_pattern
from smg_node.mcp.builtin.server_arguments import action_of
from smg_node.mcp.search.bm25 import FOUND_MAX, ToolIndex, build_index
from smg_node.mcp.search.found_tools import search_result
from smg_node.mcp.search.regex_search import (
    SEARCH_S_MAX,
    SearchRefusal,
    ToolTexts,
    build_texts,
)
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.pipeline.tool_loop.builtin.rested_steps import with_rests

if TYPE_CHECKING:
    # Loaded where a way of searching by meaning is set.
    from smg_node.pipeline.tool_loop.search.semantic_search import SemanticSearch

FUSED_MAX: Final = 50
"""Tools of each ranking that are looked at where two are made into one."""
KEPT_MAX: Final = 4
"""Sets of tools whose index is kept: a thousand tools take a few megabytes."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_Made = TypeVar("_Made", ToolIndex, ToolTexts)


class SearchOptions(msgspec.Struct, frozen=True):
    """How tools are searched for where that is not by pattern; `model` is the embedding model, "" for none."""

    search: Literal["bm25", "embeddings", "hybrid"] = "bm25"
    model: str = ""


class ToolSearches:
    """Searches by words (BM25), by pattern, and by the meaning of words, which `semantic` returns, None for nothing.

    `counted` is told of each search by words: the way that is set, and `ok` or why it was another one.
    """

    def __init__(
        self,
        options: Callable[[], SearchOptions] = SearchOptions,
        semantic: "Callable[[], SemanticSearch] | None" = None,
        counted: Callable[[str, str], None] = lambda _search, _outcome: None,
    ) -> None:
        self._options = options
        self._semantic = semantic
        self._counted = counted
        self._kept: OrderedDict[tuple[str, bytes], ToolIndex | ToolTexts] = OrderedDict()

    def offered(self, asked: AskedBuiltin) -> Tool:
        """See `ToolSearch`."""
        return builtin_tool(asked.kind, asked.settings, spelled=asked.spelled)

    async def search(
        self,
        asked: AskedBuiltin,
        arguments: str,
        tools: Sequence[SearchedTool],
        context: RequestContext,
    ) -> RunResult:
        """See `ToolSearch`."""
        action = action_of(asked.kind, arguments)
        text = str(action.get(argument_of(asked.kind, asked.spelled), ""))
        if by_pattern(asked.kind, asked.spelled):
            matches = await asyncio.to_thread(self._by_pattern, text, tools)
            return search_result(action, matches, functions_text)
        found = await self._meant(text, tools, context)
        return search_result(action, found, functions_text)

    async def _meant(
        self, query: str, tools: Sequence[SearchedTool], context: RequestContext
    ) -> Sequence[SearchedTool]:
        """Return the tools that a query means, in the way that is set, else by its words."""
        options = self._options()
        if self._semantic is None or options.search == "bm25" or not (options.model and query):
            self._counted("bm25", "ok")
            return await asyncio.to_thread(self._by_words, query, tools)
        limit = FOUND_MAX if options.search == "embeddings" else FUSED_MAX
        near = await self._semantic().ranked(options.model, query, tools, context, limit)
        if isinstance(near, str):
            self._counted(options.search, near)
            return await asyncio.to_thread(self._by_words, query, tools)
        self._counted(options.search, "ok")
        if options.search == "embeddings":
            return near
        from smg_node.mcp.search.rank_fusion import fused  # where it is set

        worded = await asyncio.to_thread(self._by_words, query, tools, FUSED_MAX)
        # Tools hold mappings, so that their names stand for them: what a model calls is the name of one.
        named = {one.called: one for one in (*near, *worded)}
        ranks = [[one.called for one in ranking] for ranking in (worded, near)]
        return [named[name] for name in fused(ranks, FOUND_MAX)]

    def _by_words(
        self, query: str, tools: Sequence[SearchedTool], limit: int = FOUND_MAX
    ) -> Sequence[SearchedTool]:
        index = self._made("words", tools, ToolIndex, partial(build_index, tools))
        return index.search(query, limit)

    def _by_pattern(
        self, pattern: str, tools: Sequence[SearchedTool]
    ) -> Sequence[SearchedTool] | SearchRefusal:
        texts = self._made("texts", tools, ToolTexts, partial(build_texts, tools))
        until_s = time.monotonic() + SEARCH_S_MAX
        return texts.search(pattern, expired=lambda: time.monotonic() > until_s)

    def _made(
        self,
        what: str,
        tools: Sequence[SearchedTool],
        kind: type[_Made],
        build: Callable[[], Steps[_Made]],
    ) -> _Made:
        """Return what is searched; two threads that make the same at once both do, and one of them is kept."""
        key = (what, hashlib.blake2b(_encode(tools), digest_size=16).digest())
        kept = self._kept.get(key)
        if isinstance(kept, kind):
            return kept
        made = with_rests(build())
        self._kept[key] = made
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return made
