"""Truncation of a history to its model's context: leaves out the oldest groups of items. Pure.

System and developer messages stay, and so do the request's own input, everything in one group with
it, and the newest group. How many tokens a selection has is known only once it was rendered and
encoded, so the largest one that fits is searched for: bytes predict tokens well, which makes it
about five renderings for any length of history, none of them much longer than what fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import SmgError
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_groups import groups_of

_RESERVE_TOKENS: Final = 1_024
_RESERVE_PART: Final = 4
"""What is left for an answer of which nobody said how long it may be: a quarter of the context, at most 1,024 tokens."""
_BYTES_A_TOKEN: Final = 8.0
"""Of a document, JSON included, as a first guess that is rather too high: too much is found out sooner than too little."""


def budget_of(context: int, answer_tokens: int | None) -> int:
    """Return the maximum tokens of a prompt that leaves room for its answer."""
    reserve = min(_RESERVE_TOKENS, context // _RESERVE_PART)
    return context - (reserve if answer_tokens is None else answer_tokens)


@dataclass(frozen=True, slots=True)
class Layout:
    """Indexes of items: those that stay, and groups that may be left out, newest first."""

    stay: tuple[int, ...]
    may_go: tuple[tuple[int, ...], ...]

    def places(self, count: int) -> tuple[int, ...]:
        """Return the indexes of the items that stay and of the `groups` newest groups, in order."""
        kept = [place for group in self.may_go[:count] for place in group]
        return tuple(sorted([*self.stay, *kept]))


def layout_of(items: Sequence[ItemDoc], *, new_from: int) -> Layout:
    """Return which items may be left out; items from `new_from` on are the request's own input."""
    groups = groups_of(items)
    newest = next((group for group in reversed(groups) if not group.pinned), None)
    stay: list[int] = []
    may_go: list[tuple[int, ...]] = []
    for group in groups:
        if group.pinned or group is newest or group.places[-1] >= new_from:
            stay.extend(group.places)
        else:
            may_go.append(group.places)
    return Layout(tuple(sorted(stay)), tuple(reversed(may_go)))


class Search:
    """Search for the largest number of groups whose prompt has at most `budget` tokens.

    Measure the number `wanted`, report it with `measured`, until `wanted` is None; `best` is the
    number then, None if the prompt is too long even without any of them. `sizes` are bytes: of what
    stays, then of each group from the newest on.
    """

    def __init__(self, sizes: Sequence[int], budget: int) -> None:
        assert sizes, "what stays has a size, if only zero"
        self._bytes = list(accumulate(sizes))
        self._budget = budget
        self._low, self._high = -1, len(sizes)
        self._rate = 1.0 / _BYTES_A_TOKEN
        self._asked = 0
        self.shortest: int | None = None
        """The length of the shortest prompt that was measured."""

    @property
    def best(self) -> int | None:
        """The largest number of groups that is known to fit."""
        return self._low if self._low >= 0 else None

    @property
    def wanted(self) -> int | None:
        """Return which number of groups to measure next; None when the search is over."""
        low, high = self._low, self._high
        if high - low <= 1:
            return None
        # Every third step halves what is left, so that odd sizes cannot make it long.
        if self._asked % 3 == 2:
            return (low + high) // 2
        return min(max(self._guess(), low + 1), high - 1)

    def measured(self, count: int, tokens: int) -> None:
        """Record how many tokens the prompt with so many groups has."""
        assert self._low < count < self._high, "this was known already"
        self._asked += 1
        self.shortest = tokens if self.shortest is None else min(tokens, self.shortest)
        self._rate = max(tokens, 1) / max(self._bytes[count], 1)
        if tokens <= self._budget:
            self._low = count
        else:
            self._high = count

    def _guess(self) -> int:
        """Return the number whose bytes come nearest to the budget, by the ratio of bytes to tokens
        seen so far.
        """
        affordable = self._budget / self._rate
        return sum(size <= affordable for size in self._bytes) - 1


def too_long(tokens: int, budget: int, context: int) -> SmgError:
    """Return the error for a prompt that is too long with nothing left to leave out."""
    return prompt_too_long(tokens, budget, "input", context=context)
