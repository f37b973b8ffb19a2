"""Picker: chooses one worker for a call, or for its half of one, by a policy, and counts it in."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.core.journey import Chosen, Rated, Ratings
from smg_node.core.ports import Clock, Rng
from smg_node.fleet.load.worker_load import WorkerLoad, weigh
from smg_node.fleet.models.served_model import AnyModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.candidates import ChoiceSet, Dropped
from smg_node.pipeline.placement.placement_request import (
    Beginnings,
    CachedPlacement,
    Part,
    PlacementRequest,
)
from smg_node.pipeline.reservation import NOT_CACHED, Reservation
from smg_node.routing.costs import COMPUTED, counted
from smg_node.routing.policies.consistent_hashing import ConsistentHashing
from smg_node.routing.policies.manual import Manual
from smg_node.routing.policies.sticky import Sticky
from smg_node.routing.policy import CHOICE, Asked, Beginning, PromptPictures
from smg_node.routing.policy_registry import Policies

if TYPE_CHECKING:
    # Loaded with the first picture.
    from smg_node.pipeline.encoder_work import EncoderWork

DECODE: Final = "decode"
"""The half of a pair that works on no pictures."""


class Picker:
    """Picks workers by policy, for this node's calls."""

    def __init__(
        self,
        policies: Policies,
        moved: list[WorkerLoad],
        *,
        clock: Clock,
        rng: Rng,
        beginnings: Beginnings | None,
    ) -> None:
        """Take the policies, and the list of workers whose weights are to be updated before a
        policy runs.
        """
        self._moved = moved
        self._policies = policies
        self._clock = clock
        self._rng = rng
        self._beginnings = beginnings

    def at_once(self, usual: CachedPlacement, wish: PlacementRequest, now_s: float) -> Reservation:
        """Choose as `choose` does, for a call that has not waited.

        A single candidate is taken without building the policy's input; the journey gets the same
        entry.
        """
        part, worker = usual.part, usual.only
        policy = None if worker is None else self._policies.unchosen.get(part.policy)
        if worker is None or policy is None:
            return self.choose(
                usual.model, wish, part, usual.choosable, usual.dropped, now_s, now_s
            )
        if self._moved:
            weigh(self._moved)
        beginning, overlap, beginnings = None, 0.0, self._beginnings
        ids, load = wish.ids, worker.load
        if beginnings is not None:
            beginning = beginnings.of(usual.model, ids, wish.adapter, now_s, wish.places)
            if beginning is not None and beginning.blocks:
                overlap = beginning.overlaps(usual.choosable.pool)[0]
        cost_s = policy.only(part.name, load, counted(ids, wish.text), overlap, now_s)
        if wish.pictures is not None:
            cost_s += COMPUTED * _extra_s(wish.pictures, (worker,), (overlap,), now_s)[0]
        rated = (Rated(worker.id, cost_s, load.wait_s, overlap),)
        dropped = usual.dropped
        return self.take(wish, part, worker, dropped, now_s, now_s, 1, rated, beginning, overlap)

    def choose(
        self,
        model: AnyModel,
        wish: PlacementRequest,
        part: Part,
        choosable: ChoiceSet,
        dropped: Dropped,
        began_s: float,
        now_s: float,
        beginning: Beginning | None = None,
    ) -> Reservation:
        """Let the policy of `part` choose, for a call that waits since `began_s`; `dropped` could
        not be chosen.

        `beginning` is the prompt's lookup in the prefix index, if it was made already.
        """
        ids, key, pool, beginnings = wish.ids, wish.key, choosable.pool, self._beginnings
        if self._moved:
            weigh(self._moved)
        if beginnings is not None and beginning is None:
            beginning = beginnings.of(model, ids, wish.adapter, now_s, wish.places)
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
        if part.policy.startswith(CHOICE):
            _tell_more(asked, wish)
        if wish.pictures is not None and part.role != DECODE:
            overlaps = pool.nothing if beginning is None else beginning.overlaps(pool)
            asked.pictures = wish.pictures
            asked.extra_s = _extra_s(wish.pictures, choosable.workers, overlaps, now_s)
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
            beginning,
            0.0 if beginning is None or not beginning.blocks else beginning.overlaps(pool)[at],
            keyed=isinstance(policy, Sticky | Manual | ConsistentHashing) if key else False,
        )

    def take(
        self,
        wish: PlacementRequest,
        part: Part,
        worker: Worker,
        dropped: Dropped,
        began_s: float,
        now_s: float,
        of: int = 1,
        rated: Sequence[Rated] = (),
        beginning: Beginning | None = None,
        overlap: float = 0.0,
        *,
        keyed: bool = False,
    ) -> Reservation:
        """Count the call in, and log it in its journey."""
        engine, card, journey = worker.engine, worker.card, wish.journey
        assert engine is not None
        assert card is not None
        prompt = len(wish.ids) if wish.prompt_tokens is None else wish.prompt_tokens
        work = prompt if part.tokens is None else part.tokens
        rank: int | None = None
        if card.ranks > 1:
            rank, overlap = _rank(worker, work, wish.key if keyed else "", beginning, now_s)
        tokens = max(0, work - int(overlap)) if overlap else work
        encoder = None
        if wish.pictures is not None and part.role != DECODE:
            encoder = _encoder_work(wish.pictures, worker, now_s)
            tokens += encoder.as_prompt(worker, overlap)
        probe = worker.breaker.take_probe(now_s) if worker.breaker.troubled else 0
        ahead = worker.hold(tokens, rank)
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
                    _note(wish.note, rated),
                )
            )
        cached = NOT_CACHED if wish.caches is None else wish.caches.call(worker.id)
        return Reservation(
            worker, engine, card, work, tokens, now_s, ahead, probe, worker.load.inflight == 1,
            beginning, rank, cached, encoder,
        )  # fmt: skip


def _extra_s(
    pictures: PromptPictures, workers: Sequence[Worker], overlaps: Sequence[float], now_s: float
) -> list[float]:
    """Return the seconds that pictures cost at each of these workers, `overlaps` ids being cached there."""
    from smg_node.pipeline.encoder_work import encoder_work, extra_s

    return extra_s(encoder_work(pictures, workers, now_s), overlaps)


def _encoder_work(pictures: PromptPictures, worker: Worker, now_s: float) -> "EncoderWork":
    from smg_node.pipeline.encoder_work import encoder_work

    return encoder_work(pictures, (worker,), now_s)[0]


def _tell_more(asked: Asked, wish: PlacementRequest) -> None:
    """Tell what only ways of routes ask for."""
    asked.conversation = "" if wish.opening is None else wish.opening()
    asked.prompt_tokens = len(wish.ids) if wish.prompt_tokens is None else wish.prompt_tokens
    asked.answer_max = wish.answer_max
    asked.caches = wish.caches
    asked.pricing = wish.pricing


def _note(said: str, rated: Sequence[Rated]) -> str:
    """Return what was said before the policy was asked, and what it said itself."""
    of_policy = rated.note if isinstance(rated, Ratings) else ""
    return f"{said}; {of_policy}" if said and of_policy else said or of_policy


def _rank(
    worker: Worker, work: int, key: str, beginning: Beginning | None, now_s: float
) -> tuple[int | None, float]:
    """Return the rank that computes `work` tokens, and how many of them it has cached."""
    known = beginning if work else None
    cached = known.by_rank(worker.id) if known is not None else {}
    first = known.first() if known is not None else b""
    rank = worker.load.choose_rank(cached, work, key, first=first, now_s=now_s)
    return rank, 0.0 if rank is None else cached.get(rank, 0.0)
