"""Bucket: sends prompts of like length to like workers, so that a short one never waits behind a
long one. Pure.

Every worker has a class of lengths. The borders are quantiles of the last prompts, so that all classes get
equally many; until there were enough, classes of equal width. When open calls differ too much, it is the
least loaded worker that gets the prompt, whatever its length. Meant for prefill, where length is work.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.costs import prompt_tokens
from smg_node.routing.policies.least_load import LeastLoad
from smg_node.routing.policies.threshold import balanced
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool

PROMPTS_MAX: Final = 1_024
PROMPTS_PER_CLASS: Final = 8
"""With fewer a quantile is one prompt's accident."""


class _Lengths:
    """The lengths of one model's last prompts, and the borders that followed from them."""

    def __init__(self) -> None:
        self.last: deque[int] = deque(maxlen=PROMPTS_MAX)
        self.borders: Sequence[float] = ()
        self.due_s = float("-inf")


class Bucket:
    """One class per candidate, in order of their ids."""

    def __init__(self, parts: PolicyParts) -> None:
        self._options = parts.options
        self._otherwise = LeastLoad(parts)
        self._lengths: dict[str, _Lengths] = {}

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the candidate of the prompt's class; the least loaded one while they are out of balance."""
        tokens, count = prompt_tokens(asked), len(pool.candidates)
        lengths = self._lengths.setdefault(asked.model, _Lengths())
        lengths.last.append(tokens)
        if len(lengths.borders) != count - 1 or asked.now_s >= lengths.due_s:
            lengths.due_s = asked.now_s + self._options.bucket_adjust_s
            lengths.borders = self._borders(lengths.last, count)
        if not balanced(pool, self._options.balance_abs, self._options.balance_rel):
            return self._otherwise.choose(asked, pool, rng)
        return bisect_right(lengths.borders, tokens)

    def _borders(self, last: Sequence[int], count: int) -> Sequence[float]:
        """Return the `count - 1` lengths at which a class ends and the next begins."""
        if len(last) < PROMPTS_PER_CLASS * count:
            most = self._options.bucket_tokens_max
            return [most * at / count for at in range(1, count)]
        ranked = sorted(last)
        return [ranked[len(ranked) * at // count] for at in range(1, count)]
