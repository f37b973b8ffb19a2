"""Rank load: load of each data-parallel rank of one engine, and the choice of a rank for a call.
Pure.

Ranks are engines behind one address: each has a queue and a cache of its own. The cheapest one gets the call:

    cost = (tokens there + tokens of the prompt that are not cached there) / prefill rate
         + wait for a slot of the rank + pressure of its memory and its slots

This node knows on which rank each of its own calls is. What the engine says of a rank beyond these,
at the moment it comes, belongs to other clients, and is worked off at the prefill rate until the
engine speaks again. What other nodes tell of their calls beyond that lies on some rank: as they
choose by the same rule, it is counted where the rule puts it, on the emptiest ones. Otherwise all
nodes would send all they have to the rank that was emptiest a second ago.

Of ranks that cost about the same the one with the fewest tokens of this node's calls gets it, then the one with the
fewest calls, then the next in turn; each node begins its turn somewhere else. Before that, a prompt of which no rank is
known to have anything goes to the rank that its first block names, unless that one costs much more: nodes that
see a new beginning at the same moment agree without talking, and so do those that only know that the engine has it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Final

from smg_node.engines.load import Load
from smg_node.fleet.load.load_samples import KV_MAX, waiting_tokens

RANKS_MAX: Final = 256
"""An engine that claims more must not fill memory; its other ranks get no work from here."""
TIE_S: Final = 0.005
"""Costs that differ by less are the same: a step of an engine takes longer."""
TIE_SHARE: Final = 0.05
"""So are those that differ by this share of the wait."""
COLD_TOKENS: Final = 64
"""A rank that has less of a prompt has nothing of it."""
OWNER_S: Final = 0.05
"""So much more may the rank cost that a beginning nobody has would go to."""


def rank_of(key: str, count: int) -> int:
    """Return the rank of a routing key: the same on every node, whatever is under way."""
    raw = key.encode("utf-8", "surrogatepass")
    digest = blake2b(raw, digest_size=8, person=b"smg-rank").digest()
    return int.from_bytes(digest, "big") % count


@dataclass(slots=True)
class Pace:
    """Figures that all ranks of an engine share; read-only, but made for every choice.

    `slots` is how many requests a rank runs at once where it does not say. `peer_tokens` and `peer_requests` are
    what all other nodes have open at the engine. The weights are those of `LoadOptions`.
    """

    prefill_rate: float
    request_s: float
    slots: int
    pressure_weight_s: float
    busy_weight_s: float
    peer_tokens: int = 0
    peer_requests: int = 0


@dataclass(slots=True)
class _Rank:
    """This node's calls there, and what the engine said of it beyond them."""

    tokens: int = 0
    requests: int = 0
    other_tokens: float = 0.0
    other_requests: int = 0
    kv: float = 0.0
    said_s: float = 0.0
    """As of when `other_tokens` are; monotonic seconds."""
    slots: int = 0
    """0 where the engine does not say."""

    def cost_s(self, pace: Pace, slots: int) -> float:
        """Return what it costs any request, in seconds."""
        rate, open_ = pace.prefill_rate, self.requests + self.other_requests
        wait_s = (self.tokens + self.other_tokens) / rate
        if open_ >= slots:
            wait_s += (open_ - slots + 1) / slots * pace.request_s
        k = self.kv
        return wait_s + pace.pressure_weight_s * k / (1 - k) + pace.busy_weight_s * open_ / slots


class Ranks:
    """The ranks of one engine. `count` of them can be chosen; `first` is where the turn begins.

    Calls are counted out of the rank they were counted into, also when the engine has fewer ranks by then.
    """

    def __init__(self, count: int = 1, *, first: int = 0) -> None:
        self.count = 1
        self._ranks: list[_Rank] = []
        self._next = first
        self._alike = 0
        """Slots that some rank said it has; 0 if none did."""
        self.resize(count)

    def resize(self, count: int) -> None:
        """Let so many ranks be chosen from now on."""
        self.count = min(max(count, 1), RANKS_MAX)
        self._at(self.count - 1)

    # ── Calls ────────────────────────────────────────────────────────────────

    def begin(self, rank: int, tokens: int) -> None:
        """Count a call of this node's in, with the tokens that are to be computed."""
        one = self._at(rank)
        one.requests += 1
        one.tokens += tokens
        self._next = rank + 1

    def prefilled(self, rank: int, tokens: int) -> None:
        """Note that the tokens a call was counted in with are worked off."""
        one = self._at(rank)
        one.tokens -= tokens
        assert one.tokens >= 0

    def end(self, rank: int, tokens: int) -> None:
        """Count a call out; `tokens` are those that were not noted as worked off."""
        one = self._at(rank)
        one.requests -= 1
        one.tokens -= tokens
        assert one.requests >= 0
        assert one.tokens >= 0

    def open(self, rank: int) -> tuple[int, int]:
        """Return how many calls this node has there, and their tokens that are not worked off."""
        one = self._at(rank)
        return one.requests, one.tokens

    # ── What the engine says ─────────────────────────────────────────────────

    def sample(self, load: Load, now_s: float) -> None:
        """Take what a rank says of itself."""
        if not 0 <= load.rank < RANKS_MAX:
            return
        one, requests = self._at(load.rank), load.running + load.waiting
        one.other_requests = max(0, requests - one.requests)
        one.other_tokens, one.said_s = float(max(0, waiting_tokens(load) - one.tokens)), now_s
        # Memory that only holds what may be forgotten, on a rank without work, is no pressure.
        one.kv = min(load.kv_usage or 0.0, KV_MAX) if requests else 0.0
        one.slots = load.running_max or 0
        self._alike = one.slots or self._alike

    def work_off(self, prefill_rate: float, now_s: float) -> None:
        """Let time pass: every rank works off what others brought there."""
        for one in self._ranks:
            if one.other_tokens:
                done = prefill_rate * max(0.0, now_s - one.said_s)
                one.other_tokens, one.said_s = max(0.0, one.other_tokens - done), now_s

    def forget(self, rank: int) -> None:
        """Drop what a rank said: it was too long ago."""
        if 0 <= rank < len(self._ranks):
            one = self._ranks[rank]
            one.other_tokens, one.other_requests, one.kv, one.slots = 0.0, 0, 0.0, 0

    def forget_all(self) -> None:
        """Drop what all ranks said: another engine is there now."""
        for rank in range(len(self._ranks)):
            self.forget(rank)
        self._alike = 0

    # ── What follows ─────────────────────────────────────────────────────────

    def choose(
        self, overlaps: Mapping[int, float], tokens: int, pace: Pace, first: bytes = b""
    ) -> int:
        """Return the rank for a prompt of so many tokens, of which each has `overlaps`, 0 if it is not named.

        `first` is what prompts with the same first block share, b"" if that is not to matter.
        """
        ranks = self._ranks[: self.count]
        slots = self._alike or pace.slots
        waits = [one.cost_s(pace, one.slots or slots) for one in ranks]
        unplaced_s = self._unplaced_tokens(pace) / pace.prefill_rate
        unplaced_s += self._unplaced_requests(pace) * pace.busy_weight_s / slots
        if unplaced_s:
            level = _level(waits, unplaced_s)
            waits = [max(wait, level) for wait in waits]
        # All of the prompt costs the same everywhere, so only what is saved is counted.
        found = waits[:]
        for rank, overlap in overlaps.items():
            if 0 <= rank < len(found):
                found[rank] -= min(overlap, tokens) / pace.prefill_rate
        best = min(found)
        if first and max(overlaps.values(), default=0.0) < COLD_TOKENS:
            owner = int.from_bytes(first, "big") % self.count
            if found[owner] <= best + OWNER_S:
                return owner
        # What a rank saves is about certain, and what is under way there is not.
        top = best + max(TIE_S, TIE_SHARE * waits[found.index(best)])
        return min(
            [rank for rank, cost in enumerate(found) if cost <= top],
            key=lambda rank: (
                ranks[rank].tokens,
                ranks[rank].requests,
                (rank - self._next) % self.count,
            ),
        )

    def ahead(self, rank: int, pace: Pace) -> int:
        """Return how many tokens are before the next call there, about; -1 if it must wait for a
        slot.
        """
        one = self._at(rank)
        if one.requests + one.other_requests >= (one.slots or self._alike or pace.slots):
            return -1
        unplaced = self._unplaced_tokens(pace) / self.count
        return round(one.tokens + one.other_tokens + unplaced)

    def _unplaced_tokens(self, pace: Pace) -> float:
        """Return what other nodes have open of which no rank said anything."""
        if not pace.peer_tokens:
            return 0.0
        return max(0.0, pace.peer_tokens - sum([one.other_tokens for one in self._ranks]))

    def _unplaced_requests(self, pace: Pace) -> int:
        if not pace.peer_requests:
            return 0
        return max(0, pace.peer_requests - sum([one.other_requests for one in self._ranks]))

    def _at(self, rank: int) -> _Rank:
        assert 0 <= rank < RANKS_MAX
        while rank >= len(self._ranks):
            self._ranks.append(_Rank())
        return self._ranks[rank]


def _level(found: Sequence[float], seconds: float) -> float:
    """Return how far the lowest rise when `seconds` are poured over all."""
    ordered = sorted(found)
    for count, (low, high) in enumerate(pairwise(ordered), start=1):
        room = (high - low) * count
        if room >= seconds:
            return low + seconds / count
        seconds -= room
    return ordered[-1] + seconds / len(ordered)
