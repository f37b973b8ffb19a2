"""Answers of a simulated engine: ids by position, and they never run out."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

_ANSWERS_KEPT: Final = 256
_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: odd, and its bits look like chance."""
_LOOK_MAX: Final = 4096
"""How far somebody looks for an id in an answer that has no end."""


@dataclass(slots=True)
class Answer:
    """Ids that never run out: `head`, then `loop` again and again.

    `heads` is a cache for the encoder of the answer, one entry a position.
    """

    head: tuple[int, ...]
    loop: tuple[int, ...]
    tool: bool = False
    heads: list[bytes] = field(default_factory=list)
    _ends: dict[frozenset[int], int | None] = field(default_factory=dict)
    _known: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self._known = frozenset(self.head + self.loop)

    def token(self, at: int) -> int:
        """Return the id at position `at`."""
        if at < len(self.head):
            return self.head[at]
        return self.loop[(at - len(self.head)) % len(self.loop)]

    def slice(self, start: int, stop: int) -> tuple[int, ...]:
        """Return the ids from `start` to before `stop`."""
        if stop <= len(self.head):
            return self.head[start:stop]
        return tuple(self.token(at) for at in range(start, stop))

    def first_of(self, ids: frozenset[int]) -> int | None:
        """Return the first position whose id is in `ids`, or None if there is none."""
        if ids not in self._ends:
            if len(self._ends) >= _ANSWERS_KEPT:
                self._ends.clear()
            said = chain(self.head, self.loop)
            self._ends[ids] = next((at for at, token in enumerate(said) if token in ids), None)
        return self._ends[ids]

    def after(self, prompt: Sequence[int]) -> "Answer":
        """Return the rest of the answer where the prompt ends with the beginning of this very
        answer.

        That is how a gateway asks for the continuation of another engine's answer. The longest such
        beginning counts.
        """
        known = self._known
        if not prompt or prompt[-1] not in known:
            return self
        first = self.token(0)
        for at, token in enumerate(prompt):
            if token == first and prompt[-1] == self.token(len(prompt) - 1 - at):
                said = len(prompt) - at
                if self.slice(0, said) == tuple(prompt[at:]):
                    return self._rest(said)
        return self

    def _rest(self, said: int) -> "Answer":
        turned = max(0, said - len(self.head)) % len(self.loop)
        loop = self.loop[turned:] + self.loop[:turned]
        return Answer(self.head[said:], loop, self.tool)

    def never(self, ids: frozenset[int]) -> "Answer":
        """Return the answer of a model that may not print these ids."""
        head = tuple(token for token in self.head if token not in ids)
        loop = tuple(token for token in self.loop if token not in ids)
        return Answer(head, loop or self.loop, self.tool)


class Following(Answer):
    """Ids each of which follows from all before it, those of the prompt too; made when they are
    asked for.

    The state is a sum over all ids, `s' = (s + id + 1) * step mod 2^64`, so it does not matter
    which of them were prompt. Bytes of characters may come alone: a model need not print whole
    ones.
    """

    __slots__ = ("_allowed", "_made", "_prompt", "_state")

    def __init__(self, prompt: Sequence[int], allowed: tuple[int, ...]) -> None:
        assert allowed
        super().__init__((), allowed)
        self._prompt = prompt
        self._allowed = allowed
        self._made = array("I")
        state = 0
        for token in prompt:
            state = (state + token + 1) * _STEP & _MASK
        self._state = state

    def _make(self, count: int) -> None:
        allowed, made, state = self._allowed, self._made, self._state
        while len(made) < count:
            # The low bits of a product depend on few bits of its factors; the high ones on all.
            token = allowed[(state >> 33) % len(allowed)]
            made.append(token)
            state = (state + token + 1) * _STEP & _MASK
        self._state = state

    def token(self, at: int) -> int:
        """Return the id at position `at`."""
        self._make(at + 1)
        return self._made[at]

    def slice(self, start: int, stop: int) -> tuple[int, ...]:
        """Return the ids from `start` to before `stop`."""
        self._make(stop)
        return tuple(self._made[start:stop])

    def first_of(self, ids: frozenset[int]) -> int | None:
        """Return the first position whose id is in `ids`, or None if there is none for very long."""
        if ids.isdisjoint(self._allowed):
            return None
        self._make(_LOOK_MAX)
        return next((at for at, token in enumerate(self._made) if token in ids), None)

    def never(self, ids: frozenset[int]) -> Answer:
        """Return the answer of a model that may not print these ids."""
        left = tuple(token for token in self._allowed if token not in ids)
        return Following(self._prompt, left or self._allowed)
