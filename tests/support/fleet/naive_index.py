"""An index as slow and as plain as can be: what is known of every block by its kind, for tests of the real one."""

from collections.abc import Collection, Sequence

from smg_node.routing.kv_index.holder_sets import ASSUMED_WEIGHT

RANK_0, RANK_1 = ("device0", "host0", "far0"), ("device1", "host1", "far1")
CONFIRMED = (*RANK_0, *RANK_1)
ASSUMED = ("assumed", "assumed0", "assumed1")
BETTER = {
    "assumed": {*CONFIRMED, "told"},
    "assumed0": {*RANK_0},
    "assumed1": {*RANK_1},
    "told": {*CONFIRMED},
}
WORSE = {"assumed": "", "assumed0": "assumed", "assumed1": "assumed", "told": "assumed"}
"""What a kind of knowledge replaces."""


class NaiveIndex:
    """Kinds of knowledge by worker and hash; assumed ones with the time they end."""

    def __init__(self, *, exact: bool) -> None:
        self.known: dict[tuple[str, int], dict[str, float]] = {}
        self._exact = exact

    def guess(self, worker: str, hashes: Sequence[int], kind: str, until_s: float = 1e9) -> None:
        """Note what counts only where nothing better is known; an index that forgot the better may take it."""
        better, worse = BETTER[kind], WORSE[kind]
        for one in hashes:
            have = self.known.setdefault((worker, one), {})
            if not (self._exact and have.keys() & better):
                have[kind] = until_s
                if self._exact:
                    have.pop(worse, None)

    def put(self, worker: str, hashes: Sequence[int], kind: str, until_s: float = 1e9) -> None:
        for one in hashes:
            self.known.setdefault((worker, one), {})[kind] = until_s

    def drop(self, worker: str, hashes: Sequence[int], *kinds: str) -> None:
        for one in hashes:
            for kind in kinds:
                self.known.get((worker, one), {}).pop(kind, None)

    def drop_all(self, worker: str, *kinds: str) -> None:
        for (owner, _), have in self.known.items():
            if owner == worker:
                for kind in [one for one in have if one in kinds]:
                    del have[kind]

    def doubt(self, worker: str, kinds: Collection[str], until_s: float) -> None:
        """Only assume from now on what is known in one of these ways."""
        for (owner, _), have in self.known.items():
            if owner == worker and not have.keys().isdisjoint(kinds):
                for kind in [one for one in have if one in kinds]:
                    del have[kind]
                have["assumed"] = until_s

    def weight(self, worker: str, rank: int, one: int, now_s: float, *, whole: bool) -> float:
        weights = {
            f"device{rank}": 1.0,
            "told": 1.0,
            f"host{rank}": 0.6,
            f"far{rank}": 0.3,
            "assumed": ASSUMED_WEIGHT,
            f"assumed{rank}": ASSUMED_WEIGHT,
        }
        if not whole:
            weights = {kind: one for kind, one in weights.items() if kind[-1].isdigit()}
        have = self.known.get((worker, one), {})
        return max(
            (weights.get(kind, 0.0) for kind, end_s in have.items() if end_s > now_s), default=0.0
        )

    def score(self, worker: str, hashes: Sequence[int], now_s: float) -> float:
        return max(self.by_rank(worker, hashes, now_s, whole=True).values(), default=0.0)

    def by_rank(
        self, worker: str, hashes: Sequence[int], now_s: float, *, whole: bool
    ) -> dict[int, float]:
        """Return the score of each rank that has one; `whole`: with what is known of the worker and of no rank."""
        scores: dict[int, float] = {}
        for rank in (0, 1):
            for one in hashes:
                weight = self.weight(worker, rank, one, now_s, whole=whole)
                if not weight:
                    break
                scores[rank] = scores.get(rank, 0.0) + weight
        return scores

    def confirmed(self, worker: str) -> set[int]:
        return {
            one
            for (owner, one), have in self.known.items()
            if owner == worker and any(kind in have for kind in CONFIRMED)
        }
