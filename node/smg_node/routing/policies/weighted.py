"""Weighted rendezvous: each key goes to one of a route's targets, in proportion to their weights. Pure.

Every target gets a score from the key and its own id, the lowest wins (weighted rendezvous hashing, Schindelhauer and
Schomaker, "Weighted Distributed Hash Tables", 2005):

    score = -ln(u) / weight,    u = hash(key, target) in (0, 1)

-ln(u) / weight is an exponential draw of rate `weight`, and the least of several is that of target i with probability
weight(i) / sum of weights. So shares are exact but for the chance of the keys themselves, every node says the same,
and a target that comes, goes or changes its weight moves only keys to or from itself.

A target with more open calls than its share of all (times `load_factor`) passes keys to the next one by score.

The key is the routing key of the client, else the beginning of the conversation with its caller's credential, else
the credential, else the address. Without any it is chance.
"""

from collections.abc import Sequence
from math import log
from typing import Final

from xxhash import xxh3_64_intdigest

from smg_node.core.ports import Rng
from smg_node.routing.hash_ring import Known
from smg_node.routing.policies.consistent_hashing import FLOOR
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Candidate, Pool
from smg_node.routing.routing_keys import key_digest

SEEDS_MAX: Final = 4_096
"""Ids of targets whose hashes are kept."""
_SPAN: Final = float(2**64)


class Weighted:
    """Shares by weight; a key stays where it is."""

    def __init__(self, parts: PolicyParts) -> None:
        self._load_factor = parts.options.load_factor
        self._seeds: dict[str, int] = {}

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the first by score that is not full."""
        what, digest = digest_of(asked)
        if digest is None:
            at = drawn(pool.candidates, rng)
        else:
            scores = self._scores(digest, [(one.worker, one.weight) for one in pool.candidates])
            at = scores.index(min(scores))
            if pool.candidates[at].inflight >= FLOOR:
                order = sorted(pool.places, key=scores.__getitem__)
                at = _first_free(order, pool, self._load_factor)
        if asked.rated is not None:
            asked.rated.note = self._note(what, digest, pool, at)
        return at

    def among(self, asked: Asked, pool: Pool, places: Sequence[int], rng: Rng) -> int:
        """Return the one of some candidates that the request's key belongs to; drawn where it has none."""
        if len(places) == 1:
            return places[0]
        some = [pool.candidates[at] for at in places]
        _, digest = digest_of(asked)
        if digest is None:
            return places[drawn(some, rng)]
        scores = self._scores(digest, [(one.worker, one.weight) for one in some])
        return places[scores.index(min(scores))]

    def _scores(self, digest: bytes, known: Known) -> list[float]:
        """Return the score of each target for a key."""
        seeds, found = self._seeds, []
        for worker, weight in known:
            seed = seeds.get(worker)
            if seed is None:
                seed = self._seed(worker)
            found.append(-log((xxh3_64_intdigest(digest, seed) + 0.5) / _SPAN) / weight)
        return found

    def _note(self, what: str, digest: bytes | None, pool: Pool, at: int) -> str:
        """Return by what it was chosen, and whom the key has passed by on its way there."""
        if digest is None:
            return "nothing to keep together: drawn by weight"
        found = f"kept together by {what}"
        scores = self._scores(digest, pool.known)
        chosen = pool.workers[at]
        own = next(
            score for score, (worker, _) in zip(scores, pool.known, strict=True) if worker == chosen
        )
        passed = sorted(
            (score, worker)
            for score, (worker, _) in zip(scores, pool.known, strict=True)
            if score < own
        )
        for _, worker in passed:
            why = "left out" if pool.place(worker) < 0 else "has more than its share of open calls"
            found += f"; not {worker}, its place: {why}"
        return found

    def _seed(self, worker: str) -> int:
        if len(self._seeds) >= SEEDS_MAX:
            self._seeds.clear()
        seed = self._seeds[worker] = xxh3_64_intdigest(worker.encode())
        return seed


def digest_of(asked: Asked) -> tuple[str, bytes | None]:
    """Return what stays together, in words, and its digest; None where a request has nothing that others could share."""
    if asked.key:
        return "routing key", key_digest(asked.key, model=asked.model)
    if asked.conversation:
        talk = key_digest(asked.conversation, model=asked.model, tenant=f"talk {asked.caller}")
        return "conversation", talk
    if asked.caller:
        return "caller", key_digest(asked.caller, model=asked.model, tenant="caller")
    if asked.client:
        return "address", key_digest(asked.client, model=asked.model, tenant="client")
    return "", None


def drawn(candidates: Sequence[Candidate], rng: Rng) -> int:
    """Return a candidate by chance, each as often as its weight says."""
    left = rng.random() * sum(one.weight for one in candidates)
    for at, one in enumerate(candidates):
        left -= one.weight
        if left < 0:
            return at
    return len(candidates) - 1


def _first_free(order: list[int], pool: Pool, load_factor: float) -> int:
    """Return the first of `order` that is not full; see `Pool.nearest_free`."""
    candidates = pool.candidates
    share = load_factor * (sum([one.inflight for one in candidates]) + 1) / pool.weight
    for at in order:
        one = candidates[at]
        if one.inflight < FLOOR or one.inflight < int(share * one.weight):
            return at
    return min(order, key=lambda at: candidates[at].inflight)
