"""What must never be seen of leases and rosters, watched over all nodes of a simulated world."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

from smg_mesh.escrow.limit_model import Life
from smg_mesh.escrow.messages.messages import LeaseAsk

AMOUNT = 10_000


class Books:
    """What all owners used, all voters promised, and what stood with all names; an assertion fails at once."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.islands = False
        self._parts: dict[int, dict[str, int]] = {}
        self._intervals: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
        self._terms: dict[tuple[int, int], Life] = {}
        self._promises: dict[tuple[str, int], tuple[Life, int]] = {}

    def owned(self, slot: int, term: int, life: Life) -> None:
        """No term of a slot is ever held by two lives."""
        assert self._terms.setdefault((slot, term), life) == life

    def used(self, key: str, window: int, term: int, life: Life, base: int, top: int) -> None:
        """What an owner may give of a window lies above what any other one may have given."""
        assert 0 <= base <= top <= AMOUNT
        terms = self._intervals.setdefault((key, window), {})
        assert term not in terms or terms[term][0] == base
        terms[term] = (base, max(top, terms.get(term, (base, base))[1]))
        spans = sorted(terms.values())
        for (_, before), (begin, _) in pairwise(spans):
            assert before <= begin, f"{key} {window} minted twice: {terms} at {self.now_ms}"

    def stands(self, name: str, window: int, divisor: int) -> None:
        """What stands with all names in one window is never more than the whole."""
        if divisor and not self.islands:
            parts = self._parts.setdefault(window, {})
            assert name not in parts
            parts[name] = divisor
            total = sum(Fraction(1, divisor) for divisor in parts.values())
            assert total <= 1, f"{parts} stand in {window} at {self.now_ms}"

    def promised(self, name: str, ask: LeaseAsk) -> None:
        """No promise is broken, whatever the voter has forgotten."""
        life = Life(ask.name, ask.boot)
        before = self._promises.get((name, ask.slot))
        if before is not None and before[0] != life:
            assert self.now_ms - before[1] >= 985, f"{name} broke its promise to {before[0]}"
        self._promises[name, ask.slot] = (life, self.now_ms)

    def released(self, name: str, ask: LeaseAsk) -> None:
        """Take note of a promise that was given back: it binds nobody."""
        before = self._promises.get((name, ask.slot))
        if before is not None and before[0] == Life(ask.name, ask.boot):
            del self._promises[name, ask.slot]

    def minted(self) -> Mapping[tuple[str, int], int]:
        """Return how much was used of each window, by all owners it had."""
        return {
            place: sum(top - base for base, top in terms.values())
            for place, terms in self._intervals.items()
        }
