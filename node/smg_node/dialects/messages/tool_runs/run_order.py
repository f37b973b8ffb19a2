"""Run order: in which order an answer with runs of tools on this node's side is shown, whenever its events came.

    { block | call of ours, its result } { call of the client's } finish

Runs overlap with each other and with what the model goes on to say. A client sees them in the order of their calls, each
result directly behind its call: what comes before its turn waits. The start of a run follows its call, which is whole. Calls of the client's own are last, so that what it
answers stands behind all results that are there already; where there can be only one call, that is so by itself, and
none waits. A call of ours is shown when it runs. One that is never run is shown only where the answer pauses, to be gone
on with: it may have been cut off in the middle, and its client would send it back to be run.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    """A block whose turn has not come, or is not over."""

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
    def is_over(self) -> bool:
        """Whether all of it is known."""
        return self.result is not None if self.is_ours else self.ended


class RunOrder:
    """Orders the events of one answer. `calls_last`: calls of the client's own wait for all else."""

    __slots__ = ("_blocks", "_calls", "_calls_last", "_open")

    def __init__(self, *, calls_last: bool) -> None:
        self._calls_last = calls_last
        self._blocks: deque[_Block] = deque()
        """Whose turn has not come; the first one's has, and it is not over."""
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
        self._open = None
        if owner is not None and owner.hidden:
            return
        self._open = block = _Block(event)
        if event.kind == "call" and owner is None and self._calls_last:
            self._calls.append(block)
            return
        self._blocks.append(block)
        if len(self._blocks) == 1 and not block.is_ours:
            self._let(block, out)

    def _go_on(self, event: Delta | BlockEnd, out: list[Event]) -> None:
        block = self._open
        if block is None:
            return
        block.events.append(event)
        block.ended = isinstance(event, BlockEnd)
        if block.is_ours or not self._blocks or self._blocks[0] is not block:
            return
        self._let(block, out)
        if block.ended:
            self._blocks.popleft()
            self._advance(out)

    def _run(self, event: RunStart | RunEnd, out: list[Event]) -> None:
        for block in self._blocks:
            if block.start.block == event.block and block.is_ours:
                block.running = True
                if isinstance(event, RunEnd):
                    block.result = event
                else:
                    block.events.append(event)
                self._advance(out)
                return

    def _advance(self, out: list[Event]) -> None:
        """Show blocks from the first whose turn it is, up to one that is not over."""
        while self._blocks:
            block = self._blocks[0]
            if block.running or not block.is_ours:
                self._let(block, out)
            if not block.is_over:
                return
            if block.result is not None:
                out.append(block.result)
            self._blocks.popleft()

    def _flush(self, out: list[Event], *, pauses: bool) -> None:
        for block in (*self._blocks, *self._calls):
            if pauses or block.running or not block.is_ours:
                self._let(block, out)
            if block.result is not None:
                out.append(block.result)
        self._blocks.clear()
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
    for block in blocks:
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
                yield result
    yield from calls
