"""Vendor call: one answer of a vendor's model, passed on as it comes or translated, with its end and its errors known.

    the client speaks an API of the vendor    its bytes, dressed; the answer's bytes, judged as they pass
    its events are wanted                     a body written for the vendor; the answer's bytes, for who listens
    neither                                   the same, and here the events become the client's API again

An answer is held back until its first word, and one that is not streamed until it is whole: until then another target
may give it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import Begin, Usage
from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.chat.writer import call_ids
from smg_node.dialects.dialect import Presenter
from smg_node.dialects.provider_dialect import AnswerListener
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.http.http_engine import HttpEngine, RelayRequest
from smg_node.engines.http.response_stream import HttpStream
from smg_node.engines.http.vendor_cache import CacheCall
from smg_node.engines.http.vendor_side import Dressed, VendorSide
from smg_node.pipeline.relay.answer_collector import AnswerCollector, begin_of
from smg_node.pipeline.relay.relay_call import REFUSAL_MAX_BYTES, Head
from smg_node.pipeline.relay.relay_context import Asks, Spent, Translation
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.response_filter import UsageReader
from smg_node.pipeline.relay.vendors.asked_api import asked_api
from smg_node.pipeline.relay.vendors.call_errors import RefusedError, misfit
from smg_node.pipeline.relay.vendors.call_prices import spent_of
from smg_node.pipeline.relay.vendors.call_state import CallState
from smg_node.pipeline.relay.vendors.native_stream import NativeStream
from smg_node.pipeline.relay.vendors.provider_meter import ProviderMeter
from smg_node.pipeline.relay.vendors.vendor_stream import reading, whole
from smg_node.pipeline.reservation import NOT_CACHED

_STREAMS: Final = ("text/event-stream", "application/vnd.amazon.eventstream")
_PACKED: Final = (b'"smg1', b"WyJvcGFxdWUi")
"""How seals and envelopes begin in a body, and envelopes without their prefix: see `opaque_envelope`."""
IGNORED_HEADER: Final = "x-smg-ignored-params"
_SSE: Final = "text/event-stream"
_JSON: Final = "application/json"


class VendorCall:
    """One call for a tenant. `ours` is the public name of the model; `spoke` is called at the first word."""

    def __init__(
        self,
        engine: HttpEngine,
        side: VendorSide,
        asked: Relayable,
        asks: Asks,
        ours: str,
        now_ms: Callable[[], int],
        spoke: Callable[[], None],
        meter: ProviderMeter,
        state: CallState,
        cached: CacheCall = NOT_CACHED,
    ) -> None:
        self.usage = UsageReader()
        self._cached = cached
        self._engine = engine
        self._side = side
        self._asked = asked
        self._asks = asks
        self._ours = ours
        self._now_ms = now_ms
        self._spoke_to = spoke
        self._meter = meter
        self._state = state
        self._translation: Translation | None = None
        self._sent: Dressed | None = None
        self._finished: Callable[[], bool] = lambda: False
        """Whether the answer is whole, as far as its listener has heard."""
        self._listening = False
        self._told: Callable[[], tuple[Usage | None, int]] = lambda: (None, 0)
        """What the vendor has said by now that the answer costs, and how many pieces of it came."""
        self._answered = False
        """Whether the vendor has begun to answer."""
        self._broken = False
        """Whether it told an error instead of going on."""
        self._stateless = False
        """Whether the vendor refused opaque state of this request."""
        self._again = False
        """Whether the request is written once more."""
        self._ignored: tuple[str, ...] = ()
        self._api = asked.api.name

    def listen_as(self, begin: Begin, prompt_tokens: int, taken: Collection[str]) -> AnswerListener:
        """Return the listener of this vendor's answers; only for a call whose events are wanted."""
        side = self._side
        listener = side.dialect(self._preferred()).listen(
            begin, prompt_tokens=prompt_tokens, taken=taken, quirks=side.quirks()
        )
        return self._state.heard(listener, begin)

    @property
    def streamed(self) -> bool:
        """Whether its vendor was asked to answer bit by bit."""
        return self._asked.streamed or self._translation is not None or self._listening

    def spent(self) -> Spent | None:
        """Return what the vendor takes money for, None if it gave no answer; to be called when the call is over.

        What it did not come to say is counted: the prompt by its length, the answer by its pieces.
        """
        used, pieces = self._told()
        if not self._answered or (self._broken and used is None and not pieces):
            return None
        found = spent_of(used, pieces, self._asked.prompt_tokens, whole=self._finished())
        if pieces and not self.usage.prompt_tokens:
            self.book(found.used, estimated=True)
        return found

    def book(self, used: Usage | None, *, estimated: bool = False) -> None:
        """Take what the answer cost, as its listener read it; an estimate says nothing of the vendor's cache."""
        cached = self._cached
        cached.answered(None if estimated else used)
        if used is None:
            return
        self._side.cached(
            read=used.cached_tokens, written=used.cache_write_tokens, expected=cached.expected
        )
        usage = self.usage
        usage.prompt_tokens, usage.completion_tokens = used.prompt_tokens, used.completion_tokens
        usage.cached_tokens, usage.tells_cached = used.cached_tokens, True

    async def answer(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield what the client is to be told of the answer, or what its listener lets out; errors as `pieces`."""
        listener = self._asks.listen(self.listen_as)
        self._listening = listener is not None
        if listener is not None:
            self._finished = lambda: listener.finished
            self._told = lambda: (listener.spent, listener.deltas)
        async with aclosing(self.pieces(request, listened=listener is not None)) as pieces:
            async for piece in pieces:
                if listener is None or listener.hear(piece):
                    yield piece
        if listener is not None:
            listener.over()
            self.book(listener.used)
            await self._state.keep()

    async def pieces(
        self, request: RelayRequest, *, listened: bool
    ) -> AsyncGenerator[Head | bytes, None]:
        """Yield the head, then the body. `listened`: the vendor's own bytes are wanted, for a listener.

        SmgError if there is no answer, or it breaks.
        """
        native = not listened and self._api in self._side.dialects and not self._foreign()
        try:
            async with aclosing(self._once(request, native=native, listened=listened)) as pieces:
                async for piece in pieces:
                    yield piece
        except RefusedError as refused:
            self._stateless = refused.without_state
            again = self._once(request, native=False, listened=listened)
            async with aclosing(again) as pieces:
                async for piece in pieces:
                    yield piece

    def _foreign(self) -> bool:
        """Whether a client's bytes hold opaque state that this node packed, which no vendor can read."""
        raw = self._asked.raw
        return any(mark in raw for mark in _PACKED)

    async def _once(
        self, request: RelayRequest, *, native: bool, listened: bool
    ) -> AsyncGenerator[Head | bytes, None]:
        side = self._side
        if not native:
            translate = self._asks.translate
            assert translate is not None, "only what can be translated is placed there"
            self._api, asked = self._preferred(), translate()
            stated = await self._state.restored(asked.wish, self._api, side.quirks())
            self._translation = replace(asked, wish=stated)
        if self._cached.wait_s and not self._again:
            await asyncio.sleep(min(self._cached.wait_s, request.timeout_s))
        # Right before it is sent: what waits is charged to no window, and no other call is kept from what is left.
        await self._meter.begin()
        dressed = await self._dressed(native=native)
        self._sent = dressed
        self._meter.sent()
        self._cached.sent(side.cache_key_of(dressed))
        dressed_request = replace(
            request,
            path=dressed.path,
            body=dressed.body,
            headers=dressed.headers,
            streamed=not native or self._asked.streamed,
        )
        answered = False
        try:
            stream = await self._engine.relay(dressed_request)
            answered = True
        finally:
            if not answered:
                side.unanswered(dressed)
        try:
            if not 200 <= stream.status < 300:
                raise await self._refusal(stream, native=native)
            self._answered = True
            told = self._native if native else self._listened if listened else self._presented
            async with aclosing(told(stream, self._head(stream))) as pieces:
                async for piece in pieces:
                    yield piece
        except WorkerError as said:
            self._broken = True
            raise side.broken(said, dressed) from said
        finally:
            stream.close()

    @property
    def _dress(self) -> Dressed:
        assert self._sent is not None, "it was sent"
        return self._sent

    def _preferred(self) -> str:
        return asked_api(self._side, self._asks.dialect)

    def _spoke(self) -> None:
        self._cached.spoke()
        self._spoke_to()

    async def _dressed(self, *, native: bool) -> Dressed:
        side, headers, cached = self._side, self._asks.headers, self._cached
        prefer = cached.prefer
        if native:
            return await side.passed(
                self._api,
                cached.native(self._asked.raw),
                ours=self._ours,
                streamed=self._asked.streamed,
                headers=headers,
                prompt_tokens=self._asked.prompt_tokens,
                prefer=prefer,
            )
        assert self._translation is not None
        options = side.options(self._api, stateless=self._stateless)
        written = side.dialect(self._api).write(self._translation.wish, options)
        self._ignored = written.ignored
        fields, spent = cached.written(written.fields), self._asked.prompt_tokens
        return await side.written(
            self._api, fields, headers=headers, prompt_tokens=spent, prefer=prefer
        )

    # ── As it comes ──────────────────────────────────────────────────────────

    async def _native(self, stream: HttpStream, head: Head) -> AsyncGenerator[Head | bytes, None]:
        judge = self._side.dialect(self._api).judge(self._side.quirks())
        self._told = lambda: (judge.usage, judge.deltas)
        self._finished = lambda: judge.done
        undress = self._dress.undress
        assert undress is not None, "what passes was dressed"
        if head.events != self._asked.streamed:
            raise misfit(head)
        if not head.events:
            body = await whole(stream)
            judge.whole(body)
            if judge.failure is not None:
                raise judge.failure
            self.book(judge.usage)
            self._spoke()
            yield replace(head, whole=True)
            yield undress.whole(body)
            return
        passing, said = NativeStream(judge, undress), False
        read = self._reading(stream, lambda: passing.done)
        while piece := await read():
            passed = passing.feed(piece)
            if passed and not said:
                said = True
                self._spoke()
                yield head
            if passed:
                yield passed
            if passing.failure is not None:
                raise passing.failure
        rest = passing.finish()
        self.book(judge.usage)
        if passing.failure is not None:
            raise passing.failure
        if not said:
            self._spoke()
            yield head
        if rest:
            yield rest

    # ── Translated ───────────────────────────────────────────────────────────

    async def _listened(self, stream: HttpStream, head: Head) -> AsyncGenerator[Head | bytes, None]:
        """Yield the vendor's own bytes, without its hosting's frames."""
        yield head
        read, said = self._reading(stream, self._finished), False
        while piece := await read():
            if not said:
                said = True
                self._spoke()
            yield piece

    async def _presented(
        self, stream: HttpStream, head: Head
    ) -> AsyncGenerator[Head | bytes, None]:
        """Yield the answer in the client's API."""
        translation = self._translation
        assert translation is not None
        presenter = translation.presenter
        assert presenter is not None, "who wants events listens"
        collector = self._collector(translation)
        collector.hear(head)
        self._told = lambda: (collector.spent, collector.deltas)
        self._finished = lambda: collector.finished
        if self._asked.streamed:
            told = self._frames(stream, collector, presenter)
            shown = Head(200, _SSE, head.headers, events=True)
        else:
            told = self._body(stream, collector, presenter)
            shown = Head(200, _JSON, head.headers, whole=True)
        said = False
        async with aclosing(told) as pieces:
            async for piece in pieces:
                if not said:
                    said = True
                    self._spoke()
                    yield shown
                yield piece

    def _collector(self, translation: Translation) -> AnswerCollector:
        wish, asks = translation.wish, self._asks
        prompt = wish.prompts[0]
        taken = call_ids(prompt) if isinstance(prompt, ChatPrompt) else frozenset[str]()
        begin = begin_of(wish, asks.answer, self._now_ms())
        listener = self.listen_as(begin, self._asked.prompt_tokens, taken)
        return AnswerCollector(listener, seen=self._asked.streamed)

    async def _frames(
        self, stream: HttpStream, collector: AnswerCollector, presenter: Presenter
    ) -> AsyncGenerator[bytes, None]:
        read = self._reading(stream, lambda: collector.finished)
        while piece := await read():
            if collector.hear(piece) and (frames := presenter.frames(collector.take())):
                yield frames
        collector.over()
        self.book(collector.used)
        await self._state.keep()
        yield presenter.frames(collector.take())

    async def _body(
        self, stream: HttpStream, collector: AnswerCollector, presenter: Presenter
    ) -> AsyncGenerator[bytes, None]:
        read = self._reading(stream, lambda: collector.finished)
        while piece := await read():
            collector.hear(piece)
        collector.over()
        self.book(collector.used)
        await self._state.keep()
        answer = Collector(1)
        answer.feed(collector.take())
        yield presenter.answer(answer.answer())

    # ── Bytes ────────────────────────────────────────────────────────────────

    def _reading(
        self, stream: HttpStream, finished: Callable[[], bool]
    ) -> Callable[[], Awaitable[bytes]]:
        return reading(stream, self._side.unframer(self._api), finished)

    def _head(self, stream: HttpStream) -> Head:
        kind = stream.headers.get("content-type", "").lower()
        events = kind.startswith(_STREAMS)
        shown = stream.headers.get("content-type", "") if events else _JSON
        headers = self._side.answer_headers(stream.headers, self._dress)
        headers.pop("content-type", None)
        if self._ignored:
            headers[IGNORED_HEADER] = ", ".join(self._ignored)
        return Head(200, shown, headers, events=events)

    async def _refusal(self, stream: HttpStream, *, native: bool) -> Exception:
        """Return the error for an answer whose status is none of success."""
        parts, size = list[bytes](), 0
        while size < REFUSAL_MAX_BYTES and (piece := await stream.read()):
            parts.append(piece)
            size += len(piece)
        words = b"".join(parts)[:REFUSAL_MAX_BYTES]
        found = self._side.refused(stream.status, stream.headers, words, self._dress)
        may = self._asks.translate is not None and not self._again
        if may and (found.without_state or (found.anew and not native)):
            self._again = True
            return RefusedError(found)
        return found.error
