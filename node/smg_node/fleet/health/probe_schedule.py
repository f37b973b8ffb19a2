"""Probe schedule: times of this node's probes of one worker, and whether the worker may be given
work. Pure.

    probers say      this node looks                          it may be given work
    ─────────────    ─────────────────────────────────────    ─────────────────────────
    (is a prober)    every interval; sooner after a bad look  by its own looks
    up               when a call of its own did not connect   unless its own looks say no
    down             only when doubted, every 5 s at most     if its own looks say so
    split, nothing   at once, then every interval             by its own looks

So a worker is looked at twice an interval, however many nodes there are; a prober that dies leaves
its duty to the next one, which looks at once; and a path that is broken between this node and a
worker concerns no other node. "Own looks" are those since the probers last said something else: an
old good look is no answer to new bad news.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smg_node.core.ports import Rng
from smg_node.fleet.health.peer_verdicts import ProberConsensus, Sight, prober_consensus
from smg_node.fleet.health.probe_counters import ProbeCounter

DOUBT_S: Final = 0.25
"""A worker that looked bad is looked at this soon again: every request it gets meanwhile fails."""
DEFY_S: Final = 5.0
"""A worker that all probers call down is looked at from here this often at most."""
NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Seconds between looks, and how many in a row count."""

    interval_s: float
    down_after: int
    up_after: int


class ProbeSchedule:
    """Schedule of this node's probes of one worker. Time is monotonic seconds."""

    def __init__(self, me: str, options: ProbeOptions, *, now_s: float, rng: Rng) -> None:
        self.tally = ProbeCounter(options.down_after, options.up_after)
        self.due_s = now_s
        """When to look next; `NEVER` while there is no reason to."""
        self.on_duty = False
        self.said = ProberConsensus.NOTHING
        self._me = me
        self._options = options
        self._rng = rng
        self._defied_s = -NEVER
        self._ever = False
        self._own = False
        """Whether this node has looked since the probers last changed their minds."""

    @property
    def up(self) -> bool:
        """Whether work may be sent there."""
        if self.said is ProberConsensus.DOWN and not self.on_duty:
            return self._own and self.tally.up
        return self.tally.up

    @property
    def waits(self) -> bool:
        """Whether an attempt is of no use: the probers say it is down, and nothing says
        otherwise.
        """
        return self.said is ProberConsensus.DOWN and not self.on_duty and self.due_s == NEVER

    def hear(self, sights: Sequence[Sight], probers: Sequence[str], now_s: float) -> None:
        """Take in the present probers and their common verdict."""
        on_duty, before = self._me in probers, self.said
        self.said = prober_consensus(sights, probers)
        if on_duty:
            if not self.on_duty:
                self.due_s = now_s
        elif self.on_duty or self.said is not before:
            self._own = False
            self._relieve(now_s)
        self.on_duty = on_duty

    def _relieve(self, now_s: float) -> None:
        """Set the next look of a node that is not in charge, after a change."""
        match self.said:
            case ProberConsensus.UP:
                # One that looked bad from here is looked at until it looks good.
                self.due_s = NEVER if self.tally.steady else now_s
            case ProberConsensus.DOWN:
                self.tally.restart()
                # One that is new here is looked at once whatever others say.
                self.due_s = NEVER if self._ever else now_s
            case ProberConsensus.SPLIT | ProberConsensus.NOTHING:
                self.due_s = now_s

    def doubt(self, now_s: float) -> None:
        """Take in a reason to probe: a call could not connect, or no other worker can be called."""
        if self.said is ProberConsensus.DOWN and not self.on_duty:
            if now_s < self._defied_s + DEFY_S:
                return
            self._defied_s = now_s
        self.due_s = min(self.due_s, now_s)

    def looked(self, now_s: float, *, good: bool) -> bool:
        """Take in a probe's outcome; return whether it turned the worker up or down."""
        self._ever = self._own = True
        turned = self.tally.good() if good else self.tally.bad()
        self.due_s = now_s + self._pause_s(good=good)
        return turned

    def _pause_s(self, *, good: bool) -> float:
        if not self.on_duty:
            if self.said is ProberConsensus.DOWN and not (good and self.tally.up):
                return NEVER
            if self.said is ProberConsensus.UP and good and self.tally.steady:
                return NEVER
        interval_s = self._options.interval_s if good else min(self._options.interval_s, DOUBT_S)
        return interval_s * (0.8 + 0.4 * self._rng.random())

    def retune(self, options: ProbeOptions, now_s: float) -> None:
        """Take new options."""
        self._options = options
        self.tally.down_after, self.tally.up_after = options.down_after, options.up_after
        if self.due_s != NEVER:
            self.due_s = min(self.due_s, now_s + options.interval_s)
