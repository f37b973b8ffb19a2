"""One worker for one call, or for its half of one: chosen by a policy, counted in, and told to the journey."""

from collections.abc import Sequence

from smg_node.core.journey import Chosen, Rated, Ratings
from smg_node.core.ports import Clock, Rng
from smg_node.fleet.model import AnyModel
from smg_node.fleet.worker import Worker
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.stage import Choosable, Dropped
from smg_node.pipeline.wish import Beginnings, Part, Wish
from smg_node.routing.known import Policies
from smg_node.routing.policies.consistent_hashing import ConsistentHashing
from smg_node.routing.policies.manual import Manual
from smg_node.routing.policies.sticky import Sticky
from smg_node.routing.policy import Asked, Beginning


class Picker:
    """Picks workers by policy, for this node's calls."""

    def __init__(
        self, policies: Policies, *, clock: Clock, rng: Rng, beginnings: Beginnings | None
    ) -> None:
        self._policies = policies
        self._clock = clock
        self._rng = rng
        self._beginnings = beginnings

    def choose(
        self,
        model: AnyModel,
        wish: Wish,
        part: Part,
        choosable: Choosable,
        dropped: Dropped,
        began_s: float,
        now_s: float,
        beginning: Beginning | None = None,
    ) -> Hold:
        """Let the policy of `part` choose, for a call that waits since `began_s`; `dropped` could not be chosen.

        With `beginning`, that is the prompt before the prefix index.
        """
        ids, key, pool, beginnings = wish.ids, wish.key, choosable.pool, self._beginnings
        if beginnings is not None and beginning is None:
            beginning = beginnings.of(model, ids, wish.adapter, now_s)
        rated = None if wish.journey is None else Ratings()
        asked = Asked(
            part.name,
            key,
            wish.caller,
            wish.client,
            ids,
            wish.text,
            now_s,
            beginning,
            rated,
            part.tokens,
        )
        policy = self._policies.named(part.policy)
        at = policy.choose(asked, pool, self._rng)
        return self.take(
            wish,
            part,
            choosable.workers[at],
            dropped,
            began_s,
            now_s,
            len(pool.workers),
            () if rated is None else rated,
            isinstance(policy, Sticky | Manual | ConsistentHashing) if key else False,
            beginning,
            0.0 if beginning is None or not beginning.blocks else beginning.overlaps(pool)[at],
        )

    def take(
        self,
        wish: Wish,
        part: Part,
        worker: Worker,
        dropped: Dropped,
        began_s: float,
        now_s: float,
        of: int = 1,
        rated: Sequence[Rated] = (),
        keyed: bool = False,
        beginning: Beginning | None = None,
        overlap: float = 0.0,
    ) -> Hold:
        """Count the call in, and tell its journey."""
        engine, card, journey = worker.engine, worker.card, wish.journey
        assert engine is not None
        assert card is not None
        prompt = len(wish.ids) if wish.prompt_tokens is None else wish.prompt_tokens
        work = prompt if part.tokens is None else part.tokens
        rank: int | None = None
        if card.ranks > 1:
            known = beginning if work else None
            rank, overlap = _rank(worker, work, wish.key if keyed else "", known, now_s)
        tokens = max(0, work - int(overlap)) if overlap else work
        probe = worker.breaker.take_probe(now_s)
        ahead = worker.hold(tokens, rank)
        alone = worker.load.inflight == 1
        if journey is not None:
            journey.add(
                Chosen(
                    self._clock.now_ms(),
                    wish.choice,
                    wish.why,
                    worker.id,
                    part.policy,
                    of,
                    rated,
                    dropped,
                    0 if now_s is began_s else round((now_s - began_s) * 1000),
                    keyed,
                    prompt,
                    part.role,
                    rank,
                )
            )
        return Hold(
            worker,
            engine,
            card,
            work,
            tokens,
            now_s,
            ahead,
            probe,
            alone,
            beginning,
            rank,
        )


def _rank(
    worker: Worker, work: int, key: str, beginning: Beginning | None, now_s: float
) -> tuple[int | None, float]:
    """Return the rank that works `work` tokens off, and how many of them it has."""
    cached = beginning.by_rank(worker.id) if beginning is not None else {}
    first = beginning.first() if beginning is not None else b""
    rank = worker.load.choose_rank(cached, work, key, first=first, now_s=now_s)
    return rank, 0.0 if rank is None else cached.get(rank, 0.0)
