"""One worker for one call, or for its half of one: chosen by a policy, counted in, and told to the journey."""

from smg_node.core.journey import Chosen, Ratings
from smg_node.core.ports import Clock, Rng
from smg_node.fleet.worker import Worker
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.stage import Choosable, Stage
from smg_node.pipeline.wish import Beginnings, Look, Part
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
        one: Look,
        part: Part,
        choosable: Choosable,
        stage: Stage,
        now_s: float,
        beginning: Beginning | None = None,
    ) -> Hold:
        """Let the policy of `part` choose; with `beginning`, that is the prompt before the prefix index."""
        wish, pool = one.wish, choosable.pool
        beginnings = self._beginnings
        if beginnings is not None and beginning is None:
            beginning = beginnings.of(one.model, wish.ids, wish.adapter, now_s)
        rated = Ratings() if wish.journey is not None else None
        asked = Asked(
            part.name,
            wish.key,
            wish.caller,
            wish.client,
            wish.ids,
            wish.text,
            now_s,
            beginning,
            rated,
            part.tokens,
        )
        policy = self._policies.named(part.policy)
        at = policy.choose(asked, pool, self._rng)
        return self.take(
            one,
            part,
            choosable.workers[at],
            stage,
            now_s,
            of=len(choosable.workers),
            rated=rated,
            keyed=bool(wish.key) and isinstance(policy, Sticky | Manual | ConsistentHashing),
            beginning=beginning,
            overlap=0.0
            if beginning is None or not beginning.blocks
            else beginning.overlaps(pool)[at],
        )

    def take(
        self,
        one: Look,
        part: Part,
        worker: Worker,
        stage: Stage,
        now_s: float,
        *,
        of: int = 1,
        rated: Ratings | None = None,
        keyed: bool = False,
        beginning: Beginning | None = None,
        overlap: float = 0.0,
    ) -> Hold:
        """Count the call in, and tell its journey."""
        wish, engine, card = one.wish, worker.engine, worker.card
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
        if wish.journey is not None:
            wish.journey.add(
                Chosen(
                    at_ms=self._clock.now_ms(),
                    choice=wish.choice,
                    why=wish.why,
                    worker=worker.id,
                    policy=part.policy,
                    of=of,
                    rated=() if rated is None else rated,
                    dropped=stage.dropped,
                    waited_ms=round((now_s - one.began_s) * 1000),
                    key=keyed,
                    prompt_tokens=prompt,
                    role=part.role,
                    rank=rank,
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
