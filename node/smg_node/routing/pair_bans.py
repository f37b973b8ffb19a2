"""Pair bans: prefill/decode pairs whose hand-overs fail are kept apart for a while; numbers of
their rooms. Pure.

A pair whose hand-overs fail says nothing of either of its engines: the network between them, or
one's record of the other, may be at fault. So neither breaker hears of it; when it happens again
and again with the same two, these two are not put together for a while.
"""

from typing import Final

from smg_node.core.ports import Rng
from smg_node.engines.disaggregation import ROOM_BITS

FAILURES_MAX: Final = 3
"""So many hand-overs that fail..."""
WITHIN_S: Final = 30.0
"""... within so long ..."""
BANNED_S: Final = 60.0
"""... keep two engines apart for that long."""
PAIRS_MAX: Final = 4_096
"""Pairs that are remembered; those that failed longest ago go first."""


class PairBans:
    """Pairs that failed lately, for all models of a node. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], list[float]] = {}
        self._until: dict[tuple[str, str], float] = {}

    def failed(self, prefill: str, decode: str, now_s: float) -> bool:
        """Take in that a hand-over failed; return whether the two are kept apart from now on."""
        pair = (prefill, decode)
        recent = [at_s for at_s in self._failures.pop(pair, ()) if at_s > now_s - WITHIN_S]
        recent.append(now_s)
        if len(recent) >= FAILURES_MAX:
            self._until.pop(pair, None)
            self._until[pair] = now_s + BANNED_S
            _bound(self._until)
            return True
        self._failures[pair] = recent
        _bound(self._failures)
        return False

    def banned(self, prefill: str, decode: str, now_s: float) -> bool:
        """Whether the two are kept apart now."""
        if not self._until:
            return False
        until_s = self._until.get((prefill, decode))
        if until_s is None:
            return False
        if now_s < until_s:
            return True
        del self._until[prefill, decode]
        return False


def _bound(kept: dict[tuple[str, str], list[float]] | dict[tuple[str, str], float]) -> None:
    if len(kept) > PAIRS_MAX:
        del kept[next(iter(kept))]


def room_number(
    rng: Rng,
    bits: int = ROOM_BITS,
    *,
    rank: int = 0,
    ranks: int = 1,
    partner_rank: int = 0,
    partner_ranks: int = 1,
) -> int:
    """Return a bootstrap room's number, above 0: random, and such that both engines take it to the
    wanted ranks.

    Engines with data-parallel ranks give a pair's request to the rank `number modulo ranks`. Where both wishes
    cannot be met, that of the first engine is: its rank may hold the prompt.
    """
    assert 0 <= rank < ranks
    assert 0 <= partner_rank < partner_ranks
    steps = ranks * partner_ranks
    # Engines take 0 for no number.
    least = 1 + rng.getrandbits(bits) % ((1 << bits) - 1 - steps)
    least += (rank - least) % ranks
    # Each step keeps the rank; as many as the partner has ranks reach all that can be reached.
    for number in range(least, least + steps, ranks):
        if number % partner_ranks == partner_rank:
            return number
    return least
