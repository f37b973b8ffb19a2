"""Workload: chats of many turns under shared system prompts, as pools of large models get them.

    session    begins under one of 24 system prompts (popular ones more often: Zipf), 1 to 20 turns, 6 on average
    system     200 to 6,000 tokens, 1,500 on average
    turn       a message of 20 to 2,000 tokens (200 on average), one in ten with a document of 1,500 to 4,000 more;
               the prompt is everything so far
    answer     16 to 1,000 tokens, 250 on average; part of the next prompt, token by token
    thinking   15 s on average between two turns, on top of a nominal 8 s for the answer

Everything follows from the seed and the session's number, never from how it was served, so all
policies see the same requests at the same times; only a turn whose last answer is not there yet
waits for it.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import log
from random import Random
from typing import Final

from smg_chaos.routing.model.engine import keys_of
from smg_chaos.routing.model.engine_sizes import EngineSize

SYSTEMS: Final = 24
TURNS_MEAN: Final = 6
_TURNS_MAX: Final = 20
_ANSWER_S: Final = 8.0
_THINK_S: Final = 15.0
_DOCUMENT_SHARE: Final = 0.1
_SIGMA: Final = 0.8


@dataclass(frozen=True, slots=True)
class Turn:
    """One request: `ids` are its prompt (the first `prompt`) and the answer it will get; `keys` those of its blocks."""

    session: int
    number: int
    due_s: float
    ids: "array[int]"
    prompt: int
    keys: list[int]


class Workload:
    """Sessions that begin `per_s` times a second, by chance, for so many seconds."""

    def __init__(self, seed: int, sessions_per_s: float, seconds: float, size: EngineSize) -> None:
        self._seed = seed
        self._size = size
        rng = Random(f"{seed}/systems")
        self._systems = [_ids(rng, _length(rng, 200, 6_000, mean=1_500)) for _ in range(SYSTEMS)]
        self._shares = list(accumulate(1 / (rank + 1) for rank in range(SYSTEMS)))
        self.begins_s: list[float] = []
        at_s = rng.expovariate(sessions_per_s)
        while at_s < seconds:
            self.begins_s.append(at_s)
            at_s += rng.expovariate(sessions_per_s)

    def session(self, number: int) -> Iterator[Turn]:
        """Yield the turns of a session."""
        rng = Random(f"{self._seed}/session/{number}")
        (system,) = rng.choices(self._systems, cum_weights=self._shares)
        said = system[:]
        due_s = self.begins_s[number]
        keys: list[int] = []
        for turn in range(_turns(rng)):
            said += _ids(rng, _length(rng, 20, 2_000, mean=200))
            if rng.random() < _DOCUMENT_SHARE:
                said += _ids(rng, rng.randint(1_500, 4_000))
            prompt = len(said)
            said += _ids(rng, _length(rng, 16, 1_000, mean=250))
            keys = keys_of(said, self._size)
            yield Turn(number, turn, due_s, said[:], prompt, keys)
            due_s += _ANSWER_S + rng.expovariate(1 / _THINK_S)


def _ids(rng: Random, count: int) -> "array[int]":
    return array("I", rng.randbytes(4 * count))


def _length(rng: Random, least: int, most: int, *, mean: float) -> int:
    """Return a length from a lognormal distribution with this mean, cut at both ends."""
    drawn = rng.lognormvariate(log(mean) - _SIGMA * _SIGMA / 2, _SIGMA)
    return round(min(max(drawn, least), most))


def _turns(rng: Random) -> int:
    """Return how many turns a session has: each is the last one with the same chance."""
    turns = 1
    while turns < _TURNS_MAX and rng.random() >= 1 / TURNS_MEAN:
        turns += 1
    return turns
