"""Semantic search: tools ranked by their meaning, as an embedding model of the cluster's own has it.

Texts of tools are embedded once: their vectors are kept by the model's name and a digest of the text. What is asked of the
model for them is the node's own request, and none of a tenant's; a question is the request of who asks it. Nothing here
fails a search: a ranking that cannot be had is a word that says why, and tools are found by their words instead.
"""

import asyncio
import hashlib
import logging
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import SmgError
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.mcp.search.bm25 import QUERY_CHARACTERS_MAX
from smg_node.mcp.search.searched_tool import SearchedTool, tool_text
from smg_node.mcp.search.vector_index import nearest_tools, unit_vector
from smg_node.pipeline.tool_loop.builtin.rested_steps import with_rests

TOOLS_MAX: Final = 2_000
"""Among more than these a comparison takes too long."""
WAIT_S: Final = 10.0
"""For all vectors of one search; a model waits meanwhile, and its client. What came by then is kept."""
VECTORS_BYTES_MAX: Final = 64 << 20
TEXT_CHARACTERS_MAX: Final = 2_000
TEXT_CHARACTERS_MIN: Final = 100
_AT_ONCE: Final = 64
"""Texts of one request for embeddings."""

Embed: TypeAlias = Callable[
    [str, Sequence[str], RequestContext], Awaitable["Sequence[array[float]]"]
]
"""Returns the vector of each text by that model; SmgError where there are none."""
Unranked: TypeAlias = Literal["away", "long", "many"]
"""Why there is no ranking: the model is away, it took too long, there are too many tools."""

_Made = TypeVar("_Made")
_log: Final = logging.getLogger("smg_node.mcp")


class SemanticSearch:
    """Rankings by meaning, with the vectors of tools."""

    def __init__(self, embed: Embed, ids: IdSource, clock: Clock) -> None:
        self._embed = embed
        self._ids = ids
        self._clock = clock
        self._kept: OrderedDict[tuple[str, bytes], array[float] | None] = OrderedDict()
        self._bytes = 0
        self._filling: dict[str, asyncio.Lock] = {}
        """By model that vectors are asked of now: what two searches want is asked for once."""
        self._characters: dict[str, int] = {}
        """By model, how much of a text it takes, where that is less than usual."""
        self._away: dict[str, str] = {}
        """By model, what was logged of it."""

    @property
    def vectors_bytes(self) -> int:
        """How large the vectors are that are kept."""
        return self._bytes

    async def ranked(
        self,
        model: str,
        query: str,
        tools: Sequence[SearchedTool],
        context: RequestContext,
        limit: int,
    ) -> Sequence[SearchedTool] | Unranked:
        """Return the tools nearest to a query by a model, best first, at most so many; why not, where there is no ranking."""
        if len(tools) > TOOLS_MAX:
            return "many"
        try:
            async with asyncio.timeout(WAIT_S):
                question = await self._question(model, query, context)
                async with self._filling.setdefault(model, asyncio.Lock()):
                    vectors = await self._vectors(model, tools)
        except TimeoutError:
            return "long"
        except SmgError as error:
            self._complain(model, error)
            return "away"
        self._away.pop(model, None)
        if question is None:
            return ()
        steps = nearest_tools(question, tools, vectors, limit)
        return await asyncio.to_thread(partial(with_rests, steps))

    async def _question(
        self, model: str, query: str, context: RequestContext
    ) -> "array[float] | None":
        # It belongs to a request that was let in.
        asking = msgspec.structs.replace(context, goes_on=True, target_worker=None)

        async def asked(most: int) -> "array[float] | None":
            (vector,) = await self._embed(model, [query[: min(most, QUERY_CHARACTERS_MAX)]], asking)
            return unit_vector(vector)

        return await self._fitting(model, asked)

    async def _vectors(
        self, model: str, tools: Sequence[SearchedTool]
    ) -> "list[array[float] | None]":
        """Return the vectors of tools, after asking for those that are not kept."""

        async def filled(most: int) -> "list[array[float] | None]":
            texts = [_text(tool, most) for tool in tools]
            keys = [(model, _digest(text)) for text in texts]
            found: dict[tuple[str, bytes], array[float] | None] = {}
            missing: dict[tuple[str, bytes], str] = {}
            for key, text in zip(keys, texts, strict=True):
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found[key] = self._kept[key]
                else:
                    missing[key] = text
            await self._ask(model, missing, found)
            return [found[key] for key in keys]

        return await self._fitting(model, filled)

    async def _fitting(self, model: str, work: Callable[[int], Awaitable[_Made]]) -> _Made:
        """Do work with as many characters of each text as a model takes, which it is found out by."""
        while True:
            most = self._characters.get(model, TEXT_CHARACTERS_MAX)
            try:
                return await work(most)
            except SmgError as error:
                too_long = error.excess is not None or error.code == TOO_LONG_CODE
                if not too_long or most // 2 < TEXT_CHARACTERS_MIN:
                    raise
                self._characters[model] = most // 2

    async def _ask(
        self,
        model: str,
        missing: dict[tuple[str, bytes], str],
        found: "dict[tuple[str, bytes], array[float] | None]",
    ) -> None:
        rows = list(missing.items())
        for first in range(0, len(rows), _AT_ONCE):
            some = rows[first : first + _AT_ONCE]
            vectors = await self._embed(model, [text for _, text in some], self._own_context())
            for (key, _), vector in zip(some, vectors, strict=True):
                found[key] = unit_vector(vector)
                self._keep(key, found[key])

    def _keep(self, key: tuple[str, bytes], vector: "array[float] | None") -> None:
        self._kept[key] = vector
        self._bytes += _size(vector)
        while self._bytes > VECTORS_BYTES_MAX and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= _size(gone)

    def _own_context(self) -> RequestContext:
        now_s = self._clock.monotonic_s()
        return RequestContext(self._ids.new("search_"), now_s, now_s + WAIT_S)

    def _complain(self, model: str, error: SmgError) -> None:
        """Log that a model is away, once for each reason."""
        if self._away.get(model) != error.code:
            self._away[model] = error.code
            _log.warning(
                "tools are found by their words: mcp.search_model %s cannot be asked: %s",
                ascii(model)[1:-1],
                error.message,
            )


def _text(tool: SearchedTool, characters_max: int) -> str:
    """Return what a model compares of a tool."""
    told = tool_text(tool)
    return f"{told.name}: {told.description}\n{told.parameters}"[:characters_max]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _size(vector: "array[float] | None") -> int:
    return 128 + (0 if vector is None else vector.itemsize * len(vector))
