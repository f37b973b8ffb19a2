"""Shadow runs: sends copies of answered requests to another target, and compares the two answers.

A copy begins when its original's client has the whole answer, four at a time. It is tried once, charged to no limit of a
client but to those of its provider, and told to nobody. What does not fit (64 waiting, 32 MiB of them, the day's budget) is counted and forgotten. The budget of
a day is shared out: each process may send its part of it, rounded up, so that the cluster sends at most one more for
each process. At the end of a process, copies that wait or run are cut.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, TypeAlias

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.events import Begin, Event
from smg_node.core.generation.outcome import Outcome
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.dialects.chat.writer import call_ids
from smg_node.dialects.provider_dialect import AnswerListener
from smg_node.dialects.worker_errors import WorkerError
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.pipeline.relay.answer_collector import AnswerCollector, ListenAs, begin_of
from smg_node.pipeline.relay.relay_context import Asks, RelayParts, ShadowPost, StateCache, Tap
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.relay_run import RelayRun
from smg_node.pipeline.relay.shadows.shadow_records import (
    ShadowBook,
    ShadowRecord,
    calls_equal,
    figures_of,
)
from smg_node.pipeline.relay.shadows.shadow_tap import Shadowed, sum_known, tap_of
from smg_node.providers.provider_dialects import provider_dialect

WAITING_MAX: Final = 64
WAITING_MAX_BYTES: Final = 32 * 1024 * 1024
RUNNING_MAX: Final = 4
COPY_S: Final = 300.0
"""A copy may take so long."""
DAY_MS: Final = 86_400_000
_FED_BYTES: Final = 65_536
"""So much of an answer is read before other work gets its turn."""
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None], str], object]
Compare: TypeAlias = Callable[[Shadowed, Clock], Awaitable[ShadowRecord]]
"""Sends a copy and returns how the two answers compare."""

_log = logging.getLogger("smg_node.shadow")


class ShadowRuns:
    """Copies of one process. `processes` returns how many of them, of all nodes, may send copies now."""

    def __init__(
        self,
        spawn: Spawn,
        clock: Clock,
        processes: Callable[[], int],
        compare: "Compare | None" = None,
    ) -> None:
        self.book = ShadowBook()
        self._compare = _compared if compare is None else compare
        self._spawn = spawn
        self._clock = clock
        self._processes = processes
        self._waiting: deque[Shadowed] = deque()
        self._waiting_bytes = 0
        self._running = 0
        self._sent: dict[str, tuple[int, int]] = {}
        """Of each route the day, and the copies on it."""

    def tap(
        self,
        parts: RelayParts,
        asked: Relayable,
        asks: Asks,
        context: RequestContext,
        model: RelayedModel,
    ) -> Tap | None:
        """See `Shadows`."""
        return tap_of(parts, asked, asks, context, model, self.take)

    def take(self, one: Shadowed) -> None:
        """Send a copy soon, if there is room for it."""
        full = len(self._waiting) >= WAITING_MAX
        if full or self._waiting_bytes + one.size_bytes > WAITING_MAX_BYTES:
            self.book.count(one.route, "dropped")
            return
        if not self._afford(one):
            self.book.count(one.route, "over_budget")
            return
        self._waiting.append(one)
        self._waiting_bytes += one.size_bytes
        if self._running < RUNNING_MAX:
            self._begin()

    def _begin(self) -> None:
        work = self._work()
        try:
            self._spawn(work, "shadow")
        except RuntimeError:
            # The process ends, and takes no more tasks.
            work.close()
            self._cut()
            return
        self._running += 1

    def _cut(self) -> None:
        """Forget those that wait."""
        for one in self._waiting:
            self.book.count(one.route, "cut")
        self._waiting.clear()
        self._waiting_bytes = 0

    def _afford(self, one: Shadowed) -> bool:
        today = self._clock.now_ms() // DAY_MS
        day, sent = self._sent.get(one.route, (today, 0))
        if day != today:
            sent = 0
        mine = -(-one.rule.per_day // max(1, self._processes()))
        if sent >= mine:
            return False
        self._sent[one.route] = today, sent + 1
        return True

    async def _work(self) -> None:
        try:
            while self._waiting:
                one = self._waiting.popleft()
                self._waiting_bytes -= one.size_bytes
                await self._copy(one)
        finally:
            self._running -= 1

    async def _copy(self, one: Shadowed) -> None:
        try:
            record = await self._compare(one, self._clock)
        except asyncio.CancelledError:
            self.book.count(one.route, "cut")
            self._cut()
            raise
        except Exception:
            # A door: a comparison that we get wrong must not end the process that serves its clients.
            _log.exception("a copy of request %s could not be compared", one.context.request_id)
            self.book.count(one.route, "failed")
            return
        self.book.count(one.route, "failed" if record.copy is None else "answered")
        if _log.isEnabledFor(logging.INFO):
            bare = msgspec.to_builtins(_without_text(record))
            _log.info("copy of a request of %s: %s", one.route, msgspec.json.encode(bare).decode())
        self.book.keep(one.route, record)


def _without_text(record: ShadowRecord) -> ShadowRecord:
    """Return a record for logs: what clients and models said is not for them."""
    answer, copy = record.answer, record.copy
    return msgspec.structs.replace(
        record,
        answer=msgspec.structs.replace(answer, text=""),
        copy=None if copy is None else msgspec.structs.replace(copy, text=""),
    )


async def _compared(one: Shadowed, clock: Clock) -> ShadowRecord:
    rule, measured = one.rule, one.measured
    origin = one.asks.translate
    assert origin is not None, "only what can be translated is copied"
    wish = origin().wish
    ours = await _read(one, wish)
    own = figures_of(
        ours,
        used=measured.used,
        took_s=measured.took_s,
        first_s=measured.first_s,
        cost_pico=measured.cost_pico,
        keep_text=rule.keep_text,
    )
    record = ShadowRecord(clock.now_ms(), one.context.request_id, one.worker, one.target, own, None)
    call = CopyCall(one, wish, clock)
    try:
        theirs = await call.answer()
    except SmgError as error:
        return msgspec.structs.replace(record, error=error.code)
    outcome = call.outcomes[0]
    first_s = outcome.first_token_s
    copy = figures_of(
        theirs,
        used=(outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens),
        took_s=outcome.ended_s - outcome.received_s,
        first_s=None if first_s is None else first_s - outcome.received_s,
        cost_pico=sum_known([bill.cost_pico for bill in outcome.bills]),
        keep_text=rule.keep_text,
    )
    return msgspec.structs.replace(
        record,
        copy=copy,
        calls_equal=calls_equal(ours, theirs),
        length_ratio=copy.characters / own.characters if own.characters else None,
    )


class CopyCall:
    """The call of one copy: once, at its target, charged to no client."""

    def __init__(self, one: Shadowed, wish: GenerateRequest, clock: Clock) -> None:
        self.outcomes: list[Outcome] = []
        now_s = clock.monotonic_s()
        context = msgspec.structs.replace(
            one.context,
            request_id=f"{one.context.request_id}-shadow",
            received_s=now_s,
            deadline_s=now_s + COPY_S,
            # To one worker and no other: it is never tried again.
            target_worker=one.target,
            priority="bulk",
            # What a copy comes to is no part of a request.
            outcomes=None,
        )
        cache = one.parts.state_cache
        self.parts = replace(
            one.parts,
            copies=True,
            on_outcome=self.outcomes.append,
            post=ShadowPost(),
            state_cache=None if cache is None else _KeepsNothing(cache),
        )
        self._wish = wish
        self._begin = begin_of(wish, "", clock.now_ms())
        self._tokens = one.asked.prompt_tokens
        self._collector: AnswerCollector | None = None
        # Without the client's headers: what it says to one vendor is not for another.
        asks = Asks(one.asks.dialect, True, "", self._listen, one.asks.translate)
        self._run = RelayRun(self.parts, one.asked, {}, context, "", asks)

    async def answer(self) -> Answer:
        """Return the answer; SmgError if there is none."""
        found = Collector(self._wish.choices)
        async with aclosing(self._run.answer()) as pieces:
            async for _ in pieces:
                found.feed(self._told())
        found.feed(self._told())
        return found.answer()

    def _told(self) -> list[Event]:
        return [] if self._collector is None else self._collector.take()

    def _listen(self, listen_as: ListenAs | None) -> AnswerCollector:
        assert listen_as is not None, "a copy goes to a vendor"
        reader = listen_as(self._begin, self._tokens, _taken(self._wish))
        self._collector = AnswerCollector(reader, seen=False)
        return self._collector


class _KeepsNothing:
    """The state cache as a copy uses it: its own answer is nobody's, and no later turn may find it; see `StateCache`."""

    def __init__(self, cache: StateCache) -> None:
        self._cache = cache

    async def keep(self, tenant: str, key: str, row: bytes) -> None:
        """Keep nothing."""

    async def find(self, tenant: str, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the rows that are there, by key."""
        return await self._cache.find(tenant, keys)


async def _read(one: Shadowed, wish: GenerateRequest) -> Answer:
    """Return the original's answer, read from what its client got."""
    listener = _listener(one, wish)
    events: list[Event] = []
    try:
        if one.streamed:
            for at in range(0, len(one.answer), _FED_BYTES):
                listener.feed(one.answer[at : at + _FED_BYTES], events)
                await asyncio.sleep(0)
        else:
            listener.feed_whole(one.answer, events)
        listener.end(events)
    except WorkerError as error:
        raise ValueError(f"its own answer is an error: {error}") from error
    found = Collector(wish.choices)
    found.feed(events)
    return found.answer()


def _listener(one: Shadowed, wish: GenerateRequest) -> AnswerListener:
    begin: Begin = begin_of(wish, "", 0)
    if one.listen_as is not None:
        return one.listen_as(begin, one.asked.prompt_tokens, _taken(wish))
    dialect = provider_dialect(one.asked.api.name, wish.model)
    return dialect.listen(begin, prompt_tokens=one.asked.prompt_tokens, taken=_taken(wish))


def _taken(wish: GenerateRequest) -> Collection[str]:
    prompt = wish.prompts[0]
    return call_ids(prompt) if isinstance(prompt, ChatPrompt) else frozenset()
