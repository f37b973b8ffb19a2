"""Event grammar: state machine that checks an event stream; tests lay it over every stream.

    stream = Begin { PromptEcho } { Listed } { block | run } ( { Finish } Usage End | Fail )
    block  = BlockStart { Delta } BlockEnd
    run    = RunStart { RunNote } RunEnd

A Fail may also come before Begin: a generation can break before it starts. Nothing of a choice
follows its Finish; on a good end every block is closed and every choice has finished. A run belongs to a call that has
ended and that has an owner; it happens at most once, and is over before its choice finishes.
"""

from collections.abc import Iterable
from typing import TypeAlias

from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Listed,
    PromptEcho,
    RunEnd,
    RunNote,
    RunStart,
    Usage,
)
from smg_node.core.generation.tool_owner import ToolOwner

_Open: TypeAlias = tuple[int, str, list[str], ToolOwner | None, bool, int]
"""Number, kind, texts, owner, whether it stands apart, and round of a block."""


class GrammarError(AssertionError):
    """A stream that breaks the grammar: our mistake, never a caller's."""


class Grammar:
    """Checks one stream as it passes. `choices` is how many the request has."""

    def __init__(self, choices: int) -> None:
        self._open: dict[int, _Open] = {}
        self._rounds = [0] * choices
        self._runnable: set[tuple[int, int]] = set()
        self._running: set[tuple[int, int]] = set()
        self._next_block = [0] * choices
        self._finished = [False] * choices
        self._begun = False
        self._usage = False
        self.over = False

    def feed(self, events: Iterable[Event]) -> None:
        """Take the next events; raise `GrammarError` at the first that must not stand there."""
        for event in events:
            self._one(event)

    def _require(self, condition: bool, event: Event, why: str) -> None:
        if not condition:
            raise GrammarError(f"{why}: {event!r}")

    def _one(self, event: Event) -> None:
        self._require(not self.over, event, "nothing may follow the end")
        if isinstance(event, Fail):
            self._require(not self._open, event, "a block is still open")
            self._require(not self._running, event, "a run is still open")
            self.over = True
            return
        if isinstance(event, Begin):
            self._require(not self._begun, event, "a stream begins once")
            self._begun = True
            return
        self._require(self._begun, event, "a stream begins with Begin")
        self._require(not self._usage or isinstance(event, End), event, "only End follows Usage")
        match event:
            case PromptEcho():
                self._require(self._next_block[event.choice] == 0, event, "an echo comes first")
            case Listed():
                self._require(not any(self._next_block), event, "lists come before blocks")
            case BlockStart():
                self._start(event)
            case Delta():
                self._require(
                    self._open.get(event.choice, (-1,))[0] == event.block,
                    event,
                    "no such open block",
                )
                self._open[event.choice][2].append(event.text)
            case BlockEnd():
                self._end(event)
            case RunStart() | RunNote() | RunEnd():
                self._run(event)
            case Finish():
                self._require(not self._finished[event.choice], event, "a choice finishes once")
                self._require(event.choice not in self._open, event, "a block is still open")
                running = any(choice == event.choice for choice, _ in self._running)
                self._require(not running, event, "a run is still open")
                self._finished[event.choice] = True
            case Usage():
                self._require(all(self._finished), event, "a choice has not finished")
                self._usage = True
            case End():
                self._require(self._usage, event, "Usage comes before End")
                self.over = True

    def _start(self, event: BlockStart) -> None:
        self._require(not self._finished[event.choice], event, "the choice has finished")
        self._require(event.choice not in self._open, event, "a block is still open")
        self._require(self._next_block[event.choice] == event.block, event, "blocks count up")
        self._require(event.owner is None or event.kind == "call", event, "calls have owners")
        self._require(event.round >= self._rounds[event.choice], event, "rounds count up")
        self._rounds[event.choice] = event.round
        place: _Open = (event.block, event.kind, [], event.owner, event.apart, event.round)
        self._open[event.choice] = place
        self._next_block[event.choice] += 1

    def _end(self, event: BlockEnd) -> None:
        nothing: _Open = (-1, "", [], None, False, 0)
        block, kind, texts, owner, apart, at = self._open.pop(event.choice, nothing)
        self._require(block == event.block, event, "no such open block")
        self._require(kind == event.kind, event, "the kind changed")
        self._require("".join(texts) == event.text, event, "the whole is not its parts")
        self._require(owner == event.owner, event, "the owner changed")
        self._require(apart == event.apart, event, "it stands apart at one end only")
        self._require(at == event.round, event, "the round changed")
        if owner is not None and not owner.asks:
            self._runnable.add((event.choice, event.block))

    def _run(self, event: RunStart | RunNote | RunEnd) -> None:
        run = (event.choice, event.block)
        if isinstance(event, RunStart):
            self._require(run in self._runnable, event, "no call of ours that may be run")
            self._runnable.remove(run)
            self._running.add(run)
            return
        self._require(run in self._running, event, "no such run is open")
        if isinstance(event, RunEnd):
            self._running.remove(run)
