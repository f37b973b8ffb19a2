"""Length estimate of answers per client and model: 95th percentile of the last 512, from a
histogram. Pure.

Lengths fall into buckets an eighth of their size apart, the last 512 are remembered by bucket, and where the
percentile lies is moved along with what comes and goes. So answers more cost the same whatever there was before,
and an estimate is looked up. It is the upper end of its bucket: at most an eighth too much.

Answers are put aside and counted together, once they are an eighth of those that are known: one by one it is three
times the work, and an estimate that knows eight of nine answers is as good as one that knows all.
"""

from array import array
from collections import Counter
from functools import lru_cache
from typing import Final

ANSWERS_KEPT: Final = 512
QUANTILE: Final = 0.95
AT_ONCE_MAX: Final = 64
"""So many answers are counted together, where as many are known as are kept."""
FIRST_TOKENS: Final = 256
"""For whom nobody has seen an answer of."""
BATCH_MAX: Final = 64
"""More than this at once was a stall, and no reason for other answers to end so much earlier."""
_BATCH_EASE: Final = 8
"""With every answer this part of the largest batch is forgotten; who still has such batches says so again."""
_STEPS: Final = 8
"""Buckets between a number and its double."""
_BUCKETS: Final = _STEPS * 41
"""Up to 2^40 tokens."""
_LENGTHS_CACHED: Final = 4_096
"""Of so many lengths the bucket is not worked out again: most answers are as long as others."""


class Answers:
    """The last answers of one client to one model."""

    __slots__ = ("_below", "_counts", "_due", "_late", "_place", "_recent", "batch", "expected")

    def __init__(self) -> None:
        self.expected = FIRST_TOKENS
        """So many tokens an answer has at most, nineteen times of twenty, as far as they were counted."""
        self.batch = 0
        """So many tokens came at once lately, at most."""
        self._late: list[int] = []
        """Lengths of answers that are to be counted."""
        self._due = 1
        """When there are so many."""
        self._recent = array("H")
        """The buckets of the last ones, the oldest first."""
        self._counts = array("H", bytes(2 * _BUCKETS))
        self._place = 0
        """The bucket that the percentile lies in."""
        self._below = 0
        """How many lie below it."""

    def __len__(self) -> int:
        """Return how many answers the estimate is made of."""
        return len(self._recent)

    def add(self, tokens: int) -> None:
        """Take note of an answer that came to its end."""
        if self.batch:
            self.batch -= self.batch // _BATCH_EASE
        late = self._late
        late.append(tokens)
        if len(late) >= self._due:
            self.count()

    def count(self) -> None:
        """Include the answers that were put aside in the estimate."""
        recent, counts = self._recent, self._counts
        come = array("H", map(_bucket_of, self._late))
        self._late.clear()
        recent.extend(come)
        gone = recent[:-ANSWERS_KEPT]
        del recent[:-ANSWERS_KEPT]
        for bucket, times in Counter(come).items():
            counts[bucket] += times
        for bucket, times in Counter(gone).items():
            counts[bucket] -= times
        self._below = sum(counts[: self._place])
        self._due = min(1 + len(recent) // 8, AT_ONCE_MAX)
        self._settle()

    def heard(self, tokens: int) -> None:
        """Take note of tokens that came at once, while an answer went on."""
        if tokens > self.batch:
            self.batch = min(tokens, BATCH_MAX)

    def _settle(self) -> None:
        """Move to the first bucket up to whose end there are enough."""
        counts, wanted = self._counts, QUANTILE * len(self._recent)
        while self._below + counts[self._place] < wanted:
            self._below += counts[self._place]
            self._place += 1
        while self._place and self._below >= wanted:
            self._place -= 1
            self._below -= counts[self._place]
        self.expected = _end_of(self._place)


class Estimates:
    """Estimates of all clients; those unused for longest are dropped first."""

    KEPT_MAX: Final = 4_096
    """Pairs of a client and a model, about 2 KiB each."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._answers: dict[tuple[str, str, str], Answers] = {}

    def of(self, tenant: str, key_id: str, model: str) -> Answers:
        """Return the estimate of these answers."""
        who = (tenant, key_id, model)
        answers = self._answers.pop(who, None)
        if answers is None:
            answers = Answers()
            while len(self._answers) >= self._kept_max:
                del self._answers[next(iter(self._answers))]
        self._answers[who] = answers
        return answers


@lru_cache(_LENGTHS_CACHED)
def _bucket_of(tokens: int) -> int:
    """Return the bucket of a length: 0 to 15 have their own, then eight to each power of two."""
    if tokens < 2 * _STEPS:
        return max(0, tokens)
    power = tokens.bit_length() - 4
    return min(_STEPS * power + (tokens >> power), _BUCKETS - 1)


def _end_of(bucket: int) -> int:
    """Return the largest length that falls into a bucket."""
    if bucket < 2 * _STEPS:
        return bucket
    power, step = divmod(bucket, _STEPS)
    return ((step + _STEPS + 1) << (power - 1)) - 1
