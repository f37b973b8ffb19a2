"""Call state: opaque state of one call, fetched from the cache before it and put there at its end.

Only what a vendor of state is asked comes here, and a cache that fails loses the state, never the request: then the
vendor gets what its writer puts in place of lost state.
"""

from collections.abc import Collection, Mapping
from typing import Final

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, BlockEnd, Event, Usage
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.messages.message_object import tool_use_id
from smg_node.dialects.openai.provider.quirks import REASONING_DETAILS, THOUGHT_SIGNATURES
from smg_node.dialects.provider_dialect import AnswerListener
from smg_node.pipeline.relay.relay_context import StateCache
from smg_node.pipeline.relay.vendors.cached_state import (
    before_answer,
    cached_row,
    lacking,
    with_state,
)

_MESSAGES: Final = "messages"
"""The client API that has ids of its own for calls."""
_CHAT: Final = "chat"


def has_state(api: str, quirks: Collection[str]) -> bool:
    """Whether answers of a vendor in that API may have opaque state: of Chat only few vendors have any."""
    return api != _CHAT or REASONING_DETAILS in quirks or THOUGHT_SIGNATURES in quirks


class CallState:
    """State of one call for a tenant, whose client speaks `dialect`; without a cache nothing is kept or found."""

    def __init__(self, cache: StateCache | None, tenant: str, dialect: str) -> None:
        self._cache = cache
        self._tenant = tenant
        self._dialect = dialect
        self._rows: Mapping[str, bytes] | None = None
        self._before = ""
        self._begin: Begin | None = None
        self._blocks: list[BlockEnd] = []

    async def restored(
        self, request: GenerateRequest, api: str, quirks: Collection[str]
    ) -> GenerateRequest:
        """Return a request in a vendor's API with the state that its client did not send back.

        Notes what is said before the answer.
        """
        if self._cache is None or not has_state(api, quirks):
            return request
        self._before = before_answer(request)
        keys = lacking(request)
        if not keys:
            return request
        if self._rows is None:
            self._rows = await self._cache.find(self._tenant, sorted(set(keys.values())))
        return with_state(request, keys, self._rows) if self._rows else request

    def heard(self, listener: AnswerListener, begin: Begin) -> AnswerListener:
        """Return a listener that notes the blocks of an answer."""
        if self._cache is None:
            return listener
        self._begin, self._blocks = begin, []
        return _NotingListener(listener, self._blocks)

    async def keep(self) -> None:
        """Put the state of the answer on the cache: it was whole, and its end is not told yet."""
        cache, begin, blocks = self._cache, self._begin, self._blocks
        if cache is None or begin is None:
            return
        calls = [block for block in blocks if block.kind == "call"]
        own = self._dialect == _MESSAGES
        ids = [tool_use_id(begin, n) if own else one.call_id for n, one in enumerate(calls)]
        row = cached_row(blocks, ids, self._before)
        if row is not None:
            await cache.keep(self._tenant, *row)


class _NotingListener:
    """Listener around another one; see `AnswerListener`."""

    def __init__(self, inner: AnswerListener, blocks: list[BlockEnd]) -> None:
        self._inner = inner
        self._blocks = blocks

    @property
    def finished(self) -> bool:
        """Whether the answer is whole."""
        return self._inner.finished

    @property
    def spent(self) -> Usage | None:
        """What the answer costs, as far as it is told."""
        return self._inner.spent

    @property
    def deltas(self) -> int:
        """How many pieces of it came by now."""
        return self._inner.deltas

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream."""
        at = len(out)
        self._inner.feed(piece, out)
        self._note(out, at)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body."""
        at = len(out)
        self._inner.feed_whole(body, out)
        self._note(out, at)

    def end(self, out: list[Event]) -> None:
        """End the answer."""
        at = len(out)
        self._inner.end(out)
        self._note(out, at)

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks."""
        self._inner.fail(error, out)

    def _note(self, out: list[Event], at: int) -> None:
        self._blocks += [event for event in out[at:] if isinstance(event, BlockEnd)]
