"""Scheduler of a rank: slots, KV blocks, steps, and preemption when blocks run out.

Requests wait in order until there is a slot and room for their prompt, and their prompts are
computed in that order, so many tokens per second for all of them together. A running request takes
another block whenever one is full; when there is none left, the request placed last gives its
blocks up and waits again, at the front, and is computed anew later: its tokens stay, only time is
lost.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic

from smg_chaos.engine.cache.blocks import Blocks, Places, chain
from smg_chaos.engine.cache.loads import Meter
from smg_chaos.engine.protocol.prompt_ids import Lately
from smg_chaos.engine.protocol.servicer_behaviours import AnswerBlocks, Manners
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.choice import CallT, Choice, State
from smg_chaos.engine.simulator.pacing import Pacer

_NEVER: Final = 1 << 62


class Scheduler(Generic[CallT]):
    """Places choices, advances them, and frees their slots and blocks.

    `on_over` is called with each choice that made its last token.
    """

    def __init__(
        self,
        settings: EngineSettings,
        manners: Manners,
        table: Blocks,
        pacer: Pacer[Choice[CallT]],
        meter: Meter,
        on_over: Callable[[Choice[CallT], float], None],
    ) -> None:
        self._settings = settings
        self._late = manners.answer_blocks is AnswerBlocks.AT_END
        self._reports_cached = manners.reports_cached
        self._indexes_whole = manners.indexes_whole
        self._table = table
        self._pacer = pacer
        self._meter = meter
        self._on_over = on_over
        self._waiting: deque[Choice[CallT]] = deque()
        self._placed: dict[Choice[CallT], None] = {}
        self._kept: dict[Choice[CallT], None] = {}
        self._caches = settings.caches()
        self._whole = settings.step_s == 0
        self._prefilled_s = 0.0
        self._seen: Lately[list[int]] = Lately()
        self.preemptions = 0
        self.made = 0

    @property
    def running(self) -> int:
        """How many choices have a slot."""
        return len(self._placed)

    @property
    def waiting(self) -> int:
        """How many choices wait for one."""
        return len(self._waiting)

    def placed(self) -> tuple[Choice[CallT], ...]:
        """Return the choices that have a slot, in the order they got it."""
        return tuple(self._placed)

    @property
    def busy(self) -> bool:
        """Whether a choice runs, waits, or is over and still to be fetched by another engine."""
        return bool(self._placed or self._waiting or self._kept)

    def waiting_tokens(self) -> int:
        """Return the prompt tokens of those that wait."""
        return sum(len(choice.call.asked.ids) for choice in self._waiting)

    def prefill_tokens(self) -> int:
        """Return the prompt tokens of those that have a slot and made no token yet."""
        return sum(len(choice.call.asked.ids) for choice in self._placed if not choice.made)

    def full(self) -> bool:
        """Return whether no other choice may be queued."""
        return len(self._waiting) >= self._settings.waiting_max

    def add(self, choice: Choice[CallT], now_s: float) -> None:
        """Queue a choice; it is placed at once if it can be."""
        self._waiting.append(choice)
        self.admit(now_s)

    def admit(self, now_s: float) -> None:
        """Place the choices that can be placed, in order."""
        while self._waiting and len(self._placed) < self._settings.slots:
            if not self._place(self._waiting[0], now_s):
                return
            self._waiting.popleft()

    def _place(self, choice: Choice[CallT], now_s: float) -> bool:
        asked, size = choice.call.asked, self._table.size
        tokens: Sequence[int] = asked.ids
        if choice.made:
            tokens = [*tokens, *choice.answer.slice(0, choice.made)]
        count = len(tokens)
        full = count // size
        keys = self._keys(tokens, asked.hashes) if self._caches else []
        found = self._table.match(keys[: max(0, count - 1) // size]) if keys else []
        blocks = self._table.claim(found, full + 1 - len(found))
        if blocks is None:
            if self._placed:
                return False
            return self._place_unpaged(choice, now_s, count)
        known = len(found)
        if keys:
            parent = keys[known - 1] if known else None
            if known < full:
                begin = known * size
                self._table.fill(
                    blocks[known:full], keys[known:], tokens[begin:], parent, asked.hashes, begin
                )
        choice.blocks = blocks
        choice.filled = choice.stored = full
        choice.last_key = keys[-1] if keys else None
        choice.room = (full + 1) * size - len(asked.ids) + 1
        choice.state = State.PLACED
        self._placed[choice] = None
        self._begin(choice, now_s, count, cached=known * size)
        return True

    def _keys(self, tokens: Sequence[int], media: Places) -> list[int]:
        if media:
            return chain(tokens, self._table.size, media=media)
        return self._seen.of(tokens, lambda ids: chain(ids, self._table.size))

    def _place_unpaged(self, choice: Choice[CallT], now_s: float, count: int) -> bool:
        """Run a choice larger than all blocks together: engines that accept it do not page."""
        choice.filled = choice.stored = 0
        choice.room = _NEVER
        choice.state = State.PLACED
        self._placed[choice] = None
        self._begin(choice, now_s, count, cached=0)
        return True

    def _begin(self, choice: Choice[CallT], now_s: float, count: int, *, cached: int) -> None:
        handed = choice.call.handed
        found = cached if handed is None else max(cached, handed.cached)
        if handed is not None:
            cached = min(count, max(cached, handed.tokens))
        if choice.spoken is None:
            asked = choice.call.asked
            choice.cached = found
            if handed is None or handed.digest is None:  # a prompt counts where it was worked off
                self._meter.prompt(len(asked.ids), found)
            choice.spoken = choice.call.writer.spoken(
                asked.request_id,
                prompt=len(asked.ids),
                cached=found if self._reports_cached else 0,
                index=choice.index if asked.stream or self._indexes_whole else 0,
            )
        self._pacer.add(choice, self._ready_s(choice, now_s, count - cached))

    def _ready_s(self, choice: Choice[CallT], now_s: float, tokens: int) -> float:
        """Return when a prompt is computed: one after the other, choices of a request together."""
        call = choice.call
        if choice.index and not choice.made and call.ready_s >= now_s:
            return call.ready_s
        rate = self._settings.prefill_tokens_per_s
        if rate:
            self._prefilled_s = max(self._prefilled_s, now_s) + tokens / rate
            now_s = self._prefilled_s
        call.ready_s = now_s + self._settings.first_token_s
        return call.ready_s

    # ── Steps ───────────────────────────────────────────────────────────────

    def step(self, now_s: float) -> list[Choice[CallT]]:
        """Make the tokens that are due; return the choices that made some."""
        stepped = []
        for choice in self._pacer.fire(now_s):
            if choice.state is not State.PLACED:
                continue
            end = choice.end_at
            made = end if self._whole or choice.made >= end else choice.made + 1
            if made >= choice.room and not self._grow(choice, made):
                continue  # it was the one to make room: it waits again
            self.made += made - choice.made
            choice.made = made
            stepped.append(choice)
            if made >= end:
                self._on_over(choice, now_s)
            else:
                self._pacer.again(choice, now_s)
        return stepped

    def _grow(self, choice: Choice[CallT], made: int) -> bool:
        while made >= choice.room:
            size = self._table.size
            more = self._table.claim((), 1)
            while more is None:
                if len(self._placed) == 1:
                    choice.room = _NEVER
                    return True
                victim = next(reversed(self._placed))
                self._preempt(victim)
                if victim is choice:
                    return False
                more = self._table.claim((), 1)
            choice.filled += 1
            choice.room += size
            if not self._late:
                self._store(choice)
            choice.blocks += more
        return True

    def _preempt(self, choice: Choice[CallT]) -> None:
        self.preemptions += 1
        self._pacer.drop(choice)
        del self._placed[choice]
        self._table.release(choice.blocks)
        choice.blocks = []
        choice.state = State.WAITING
        self._waiting.appendleft(choice)

    def _store(self, choice: Choice[CallT]) -> None:
        """Publish the blocks that are full and not yet known."""
        first, last = choice.stored, choice.filled
        if first >= last or not self._caches:
            return
        size, prompt, media = self._table.size, choice.call.asked.ids, choice.call.asked.hashes
        begin, end = first * size, last * size
        tokens = [
            *prompt[begin:end],
            *choice.answer.slice(max(0, begin - len(prompt)), max(0, end - len(prompt))),
        ]
        keys = chain(tokens, size, parent=choice.last_key, media=media, start=begin)
        self._table.fill(choice.blocks[first:last], keys, tokens, choice.last_key, media, begin)
        choice.last_key = keys[-1]
        choice.stored = last

    # ── Leaving ─────────────────────────────────────────────────────────────

    def leave(self, choice: Choice[CallT], now_s: float) -> None:
        """Free the slot and the blocks; harmless for a choice that has none."""
        if choice.state is State.PLACED:
            self._pacer.drop(choice)
            del self._placed[choice]
            if self._late:
                self._store(choice)
            self._table.release(choice.blocks)
            choice.blocks = []
        elif choice.state is State.WAITING and choice in self._waiting:
            self._waiting.remove(choice)
        choice.state = State.OVER

    def keep(self, choice: Choice[CallT]) -> None:
        """Free the slot of a choice that is over, but leave it its blocks until `drop`."""
        assert choice.state is State.PLACED, "only who was placed has blocks"
        self._pacer.drop(choice)
        del self._placed[choice]
        if self._late:
            self._store(choice)
        choice.state = State.OVER
        self._kept[choice] = None

    def drop(self, choice: Choice[CallT]) -> None:
        """Free the blocks that a choice was left; harmless if it was left none."""
        if self._kept.pop(choice, choice) is None:
            self._table.release(choice.blocks)
            choice.blocks = []

    def check(self) -> None:
        """Assert that slots and blocks belong to exactly the choices that are placed."""
        assert len(self._placed) <= self._settings.slots, "more choices than slots"
        users = [0] * self._table.count
        for choice in self._placed:
            assert choice.state is State.PLACED, "a slot without its choice"
            for block in choice.blocks:
                users[block] += 1
        for choice in self._kept:
            assert choice.state is State.OVER, "blocks are kept for somebody who still runs"
            for block in choice.blocks:
                users[block] += 1
        assert users == self._table.users(), "blocks are used by nobody, or twice"
        for choice in self._waiting:
            assert choice.state is State.WAITING, "somebody waits who should not"
            assert not choice.blocks, "somebody waits and holds blocks"
