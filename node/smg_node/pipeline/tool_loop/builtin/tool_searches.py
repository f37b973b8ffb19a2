"""Tool searches: the search among tools that a prompt does not show, in a worker thread; see `ports.ToolSearch`.

The texts of a request's tools are read for its first search, a rest after every few, and kept for the next ones: several
hundred tools take some tens of milliseconds.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from smg_node.core.cooperative_steps import REST_S, Steps
from smg_node.core.generation.request import Tool
from smg_node.core.generation.tool_serving import AskedBuiltin, RunResult
from smg_node.dialects.messages.request.tools import functions_text
from smg_node.mcp.builtin.builtin_tool import argument_of, builtin_tool, by_pattern
from smg_node.mcp.builtin.server_arguments import action_of
from smg_node.mcp.search.bm25 import ToolIndex, build_index
from smg_node.mcp.search.found_tools import search_result
from smg_node.mcp.search.regex_search import (
    SEARCH_S_MAX,
    SearchRefusal,
    ToolTexts,
    build_texts,
)
from smg_node.mcp.search.searched_tool import SearchedTool

KEPT_MAX: Final = 4
"""Sets of tools whose index is kept: a thousand tools take a few megabytes."""
_WORK_A_REST: Final = 64 * 1024
"""So much is weighed between two rests; about 5 ms of work."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_Made = TypeVar("_Made", ToolIndex, ToolTexts)


class ToolSearches:
    """Searches by words (BM25), and by pattern."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, bytes], ToolIndex | ToolTexts] = OrderedDict()

    def offered(self, asked: AskedBuiltin) -> Tool:
        """See `ToolSearch`."""
        return builtin_tool(asked.kind, asked.settings, spelled=asked.spelled)

    async def search(
        self, asked: AskedBuiltin, arguments: str, tools: Sequence[SearchedTool]
    ) -> RunResult:
        """See `ToolSearch`."""
        action = action_of(asked.kind, arguments)
        text = str(action.get(argument_of(asked.kind, asked.spelled), ""))
        find = self._by_pattern if by_pattern(asked.kind, asked.spelled) else self._by_words
        found = await asyncio.to_thread(find, text, tools)
        return search_result(action, found, functions_text)

    def _by_words(
        self, query: str, tools: Sequence[SearchedTool]
    ) -> Sequence[SearchedTool] | SearchRefusal:
        return self._made("words", tools, ToolIndex, partial(build_index, tools)).search(query)

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
        made = _with_rests(build())
        self._kept[key] = made
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return made


def _with_rests(steps: Steps[_Made]) -> _Made:
    """Do all steps, and let others have the interpreter's lock now and then."""
    weighed = 0
    while True:
        try:
            weighed += next(steps)
        except StopIteration as end:
            made: _Made = end.value
            return made
        if weighed >= _WORK_A_REST:
            weighed = 0
            time.sleep(REST_S)
