"""Pacing of tokens: when which choice makes its next one, in common steps or each in its own
rhythm.

Real engines step: all running requests get a token together, and a request that becomes ready in
between joins at the next step (`Lockstep`). `Wheel` gives every request its own rhythm instead, on
one coarse timer wheel: tokens of many streams then arrive apart, which is harder on their reader.
"""

import heapq
import random
from typing import Final, Generic, Protocol, TypeVar

TICK_S: Final = 0.001


class Paced(Protocol):
    """A choice, as far as its pace is concerned."""

    due_s: float


PacedT = TypeVar("PacedT", bound=Paced)


class Pacer(Protocol[PacedT]):
    """Schedule of tokens."""

    def add(self, choice: PacedT, ready_s: float) -> None:
        """Schedule the first token of `choice` at `ready_s` or soon after."""
        ...

    def again(self, choice: PacedT, now_s: float) -> None:
        """Schedule another token of `choice`, which made one at `now_s`."""
        ...

    def drop(self, choice: PacedT) -> None:
        """Remove `choice`; harmless if unknown."""
        ...

    def due_s(self) -> float | None:
        """Return when something is due, or None."""
        ...

    def fire(self, now_s: float) -> list[PacedT]:
        """Return the choices that make a token now; `now_s` is at least what `due_s` said."""
        ...


class Step:
    """How long a step takes: `step_s`, jittered, growing with the number of choices in it."""

    def __init__(self, step_s: float, jitter: float, growth: float, rng: random.Random) -> None:
        self.step_s = step_s
        self._jitter = jitter
        self._growth = growth
        self._rng = rng

    def duration_s(self, running: int) -> float:
        """Return how long the next step of `running` choices takes."""
        duration = self.step_s * (1 + self._growth * max(0, running - 1))
        if self._jitter:
            duration *= 1 + self._jitter * (2 * self._rng.random() - 1)
        return duration

    @property
    def fixed(self) -> bool:
        """Whether it takes `step_s`, however many run."""
        return not (self._jitter or self._growth)


class Lockstep(Generic[PacedT]):
    """All running choices advance together."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._running: dict[PacedT, None] = {}
        self._coming: list[tuple[float, int, PacedT]] = []
        self._dropped: set[PacedT] = set()
        self._count = 0
        self._next_s = 0.0

    def add(self, choice: PacedT, ready_s: float) -> None:
        """Add it to the first step after `ready_s`."""
        self._count += 1
        self._dropped.discard(choice)
        heapq.heappush(self._coming, (ready_s, self._count, choice))

    def again(self, choice: PacedT, now_s: float) -> None:
        """Keep it running."""
        self._running[choice] = None

    def drop(self, choice: PacedT) -> None:
        """Take it out of the running ones, or out of those to come."""
        if choice in self._running:
            del self._running[choice]
        elif any(coming is choice for *_, coming in self._coming):
            self._dropped.add(choice)

    def _skip_dropped(self) -> None:
        while self._coming and self._coming[0][2] in self._dropped:
            self._dropped.discard(heapq.heappop(self._coming)[2])

    def due_s(self) -> float | None:
        """Return the time of the next step, or when the first choice is ready if none runs."""
        if self._running:
            return self._next_s
        self._skip_dropped()
        if not self._coming:
            return None
        return self._coming[0][0]

    def fire(self, now_s: float) -> list[PacedT]:
        """Step: all running and ready choices make a token; those that continue are added by
        `again`.
        """
        self._skip_dropped()
        batch = list(self._running)
        self._running.clear()
        while self._coming and self._coming[0][0] <= now_s:
            choice = heapq.heappop(self._coming)[2]
            if choice in self._dropped:
                self._dropped.discard(choice)
            else:
                batch.append(choice)
        self._next_s = now_s + self._step.duration_s(len(batch))
        return batch


class Wheel(Generic[PacedT]):
    """Every choice has its own rhythm, in ticks of a millisecond."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._fixed_s = step.step_s if step.fixed else None
        self._buckets: dict[int, dict[PacedT, None]] = {}
        self._ticks: list[int] = []
        self._count = 0

    def _put(self, choice: PacedT, at_s: float) -> None:
        choice.due_s = at_s
        tick = round(at_s / TICK_S)
        bucket = self._buckets.get(tick)
        if bucket is None:
            self._buckets[tick] = {choice: None}
            heapq.heappush(self._ticks, tick)
        else:
            bucket[choice] = None
        self._count += 1

    def add(self, choice: PacedT, ready_s: float) -> None:
        """Put it into the tick in which it is ready."""
        self._put(choice, ready_s)

    def again(self, choice: PacedT, now_s: float) -> None:
        """Put it one step further, counted from when it was due and not from when it was served."""
        step_s = self._fixed_s
        if step_s is None:
            step_s = self._step.duration_s(self._count + 1)
        self._put(choice, choice.due_s + step_s)

    def drop(self, choice: PacedT) -> None:
        """Remove it from the wheel."""
        bucket = self._buckets.get(round(choice.due_s / TICK_S))
        if bucket is not None and choice in bucket:
            del bucket[choice]
            self._count -= 1

    def due_s(self) -> float | None:
        """Return the time of the first tick that has a choice."""
        while self._ticks and not self._buckets[self._ticks[0]]:
            del self._buckets[heapq.heappop(self._ticks)]
        return self._ticks[0] * TICK_S if self._ticks else None

    def fire(self, now_s: float) -> list[PacedT]:
        """Return all choices of the first tick."""
        due_s = self.due_s()
        if due_s is None or due_s > now_s:
            return []
        batch = list(self._buckets.pop(heapq.heappop(self._ticks)))
        self._count -= len(batch)
        return batch
