"""Run order: in which order an answer with runs of tools on this node's side is shown, whenever its events came.

    { { block | call of ours } { result } } { call of the client's } finish

Runs overlap with each other and with what the model goes on to say. A client sees them pass by pass: all that the model
says in one, then the results of its calls, in the order of the calls. So a reader of the history knows which calls were
made at once, and its prompt is the one that the model had. What the next pass says waits for them; and so does a result
until it is known that its pass says nothing more. Calls of the client's own are last, so that what it answers stands
behind all results that are there already; where there can be only one call, that is so by itself, and none waits. A call
of ours is shown when it runs, and what is said behind it waits for that. One that is never run is shown only where the
answer pauses, to be gone on with: it may have been cut off in the middle, and its client would send it back to be run.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from smg_node.core.generation.events import (
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Fail,
    Finish,
    RunEnd,
    RunNote,
    RunStart,
)

Shown: TypeAlias = BlockEnd | RunEnd


class _Block:
    """A block that was not shown yet, or not all of it, or a call whose result was not."""

    __slots__ = ("ended", "events", "result", "running", "start")

    def __init__(self, start: BlockStart) -> None:
        self.start = start
        self.events: list[Event] = [start]
        self.ended = False
        self.running = False
        self.result: RunEnd | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is a call that this node runs."""
        return self.start.owner is not None

    @property
    def is_shown(self) -> bool:
        """Whether it is to be shown as far as it is known."""
        return self.running or not self.is_ours


class _Pass:
    """Blocks of one pass of the model. `spoken`: it says nothing more."""

    __slots__ = ("number", "owing", "spoken", "waiting")

    def __init__(self, number: int) -> None:
        self.number = number
        self.waiting: deque[_Block] = deque()
        """Blocks that are not shown whole."""
        self.owing: deque[_Block] = deque()
        """Calls of ours that are shown, or wait, and whose results are not shown."""
        self.spoken = False

    @property
    def is_over(self) -> bool:
        """Whether all of it was shown."""
        return self.spoken and not self.waiting and not self.owing


class RunOrder:
    """Orders the events of one answer. `calls_last`: calls of the client's own wait for all else."""

    __slots__ = ("_calls", "_calls_last", "_open", "_passes")

    def __init__(self, *, calls_last: bool) -> None:
        self._calls_last = calls_last
        self._passes: deque[_Pass] = deque([_Pass(0)])
        """The first one is being shown, later ones wait; never empty."""
        self._calls: list[_Block] = []
        self._open: _Block | None = None
        """The block that the model is printing; None for one that nobody is shown."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return what is to be shown now; of runs, that they start, and their results."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, Delta | BlockEnd):
                self._go_on(event, out)
            elif isinstance(event, BlockStart):
                self._start(event, out)
            elif isinstance(event, RunStart | RunEnd):
                self._run(event, out)
            elif not isinstance(event, RunNote):
                if isinstance(event, Finish | Fail):
                    self._flush(out, pauses=isinstance(event, Finish) and event.reason == "pause")
                out.append(event)
        return out

    def _start(self, event: BlockStart, out: list[Event]) -> None:
        owner = event.owner
        last = self._passes[-1]
        if event.round != last.number:
            last.spoken = True
            last = _Pass(event.round)
            self._passes.append(last)
        self._open = None
        if owner is None or not owner.hidden:
            self._open = block = _Block(event)
            if event.kind == "call" and owner is None and self._calls_last:
                self._calls.append(block)
            else:
                last.waiting.append(block)
                if block.is_ours:
                    last.owing.append(block)
        self._advance(out)

    def _go_on(self, event: Delta | BlockEnd, out: list[Event]) -> None:
        block = self._open
        if block is None:
            return
        block.events.append(event)
        block.ended = isinstance(event, BlockEnd)
        self._advance(out)

    def _run(self, event: RunStart | RunEnd, out: list[Event]) -> None:
        for one in self._passes:
            for block in one.owing:
                if block.start.block != event.block:
                    continue
                block.running = True
                if isinstance(event, RunEnd):
                    block.result = event
                    one.spoken = one.spoken or event.spoken
                else:
                    block.events.append(event)
                self._advance(out)
                return

    def _advance(self, out: list[Event]) -> None:
        """Show all whose turn has come."""
        while True:
            one = self._passes[0]
            while one.waiting and one.waiting[0].is_shown:
                block = one.waiting[0]
                self._let(block, out)
                if not block.ended:
                    return
                one.waiting.popleft()
            if one.waiting or not one.spoken:
                return
            while one.owing and (result := one.owing[0].result) is not None:
                one.owing.popleft()
                out.append(result)
            if len(self._passes) == 1 or not one.is_over:
                return
            self._passes.popleft()

    def _flush(self, out: list[Event], *, pauses: bool) -> None:
        for one in self._passes:
            for block in one.waiting:
                if pauses or block.is_shown:
                    self._let(block, out)
            out += [block.result for block in one.owing if block.result is not None]
        for block in self._calls:
            self._let(block, out)
        self._passes = deque([_Pass(0)])
        self._calls.clear()
        self._open = None

    @staticmethod
    def _let(block: _Block, out: list[Event]) -> None:
        out += block.events
        block.events = []


def in_order(
    blocks: Sequence[BlockEnd], runs: Mapping[int, RunEnd], *, pauses: bool, calls_last: bool
) -> Iterator[Shown]:
    """Yield the blocks and results of a whole answer in the order in which a stream has them."""
    calls: list[BlockEnd] = []
    for _, said in groupby(blocks, lambda block: block.round):
        results: list[RunEnd] = []
        for block in said:
            owner = block.owner
            if owner is None:
                if block.kind == "call" and calls_last:
                    calls.append(block)
                else:
                    yield block
            elif not owner.hidden:
                result = runs.get(block.block)
                if result is not None or pauses:
                    yield block
                if result is not None:
                    results.append(result)
        yield from results
    yield from calls
