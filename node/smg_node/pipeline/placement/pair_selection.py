"""Pair selection: chooses a prefill and a decode worker that can hand over to each other."""

from typing import Final

from smg_node.core.ports import Clock, Rng
from smg_node.fleet.workers.pair_eligibility import group_of
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.pairs.engine_pair import Partners
from smg_node.pipeline.pairs.pair_reservation import PairReservation
from smg_node.pipeline.placement.candidates import ZONE_LABEL, Candidates, ChoiceSet
from smg_node.pipeline.placement.eligibility import probe_of
from smg_node.pipeline.placement.picker import Picker
from smg_node.pipeline.placement.placement_request import PROBE, TARGET, Part, PlacementAttempt
from smg_node.pipeline.placement.role_candidates import Pairs
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.pair_bans import PairBans, room_number


class PairSelector:
    """Selects pairs for this node's calls."""

    def __init__(self, picker: Picker, *, clock: Clock, rng: Rng) -> None:
        self.bans: Final = PairBans()
        self._picker = picker
        self._clock = clock
        self._rng = rng

    def choose(self, one: PlacementAttempt, pairs: Pairs, now_s: float) -> Reservation:
        """Choose the prefill worker, then the decode worker."""
        stages, spill = one.stages, one.rule.zone_spill
        assert stages.prefill is not None
        part = Part("prefill", f"{one.model.name}/prefill", one.rule.prefill)
        choosable, dropped = pairs.choosable(spill), stages.prefill.dropped
        first = self._picker.choose(
            one.model, one.wish, part, choosable, dropped, one.began_s, now_s
        )
        try:
            return self._joined(one, pairs, first, now_s)
        except BaseException:
            # Not a decision: whatever went wrong, nobody would count the first half out.
            first.release(now_s)
            raise

    def _joined(
        self, one: PlacementAttempt, pairs: Pairs, first: Reservation, now_s: float
    ) -> Reservation:
        """Choose the decode worker for the prefill worker `first`."""
        stages, rule = one.stages, one.rule
        assert stages.decode is not None
        group = group_of(first.worker)
        assert group is not None
        partners = pairs.partners[group]
        near = partners.for_zone(first.worker.labels.get(ZONE_LABEL, ""), rule.zone_spill)
        choosable = self._not_banned(first.worker, near, now_s)
        part = Part("decode", f"{one.model.name}/decode", rule.decode, 0)
        second = self._picker.choose(
            one.model,
            one.wish,
            part,
            choosable,
            stages.decode.dropped,
            one.began_s,
            now_s,
            first.beginning,
        )
        return self._pair_of(first, second)

    def _not_banned(self, first: Worker, choosable: ChoiceSet, now_s: float) -> ChoiceSet:
        """Return the workers to which hand-overs from `first` work; all if there are none."""
        able = [
            at
            for at, worker in enumerate(choosable.workers)
            if not self.bans.banned(first.id, worker.id, now_s)
        ]
        if not able or len(able) == len(choosable.workers):
            return choosable
        return ChoiceSet([choosable.workers[at] for at in able], choosable.pool.only(able))

    def probe(self, one: PlacementAttempt, now_s: float) -> Reservation | None:
        """Reserve a pair of which one or both halves are a breaker's probe; None if there is none."""
        first, second = one.stages.prefill, one.stages.decode
        if first is None or second is None:
            return None
        for prefill in _or_probe(first, now_s):
            for decode in _or_probe(second, now_s):
                if group_of(prefill) is not None and group_of(prefill) == group_of(decode):
                    return self._taken_pair(one, prefill, decode, PROBE, now_s)
        return None

    def with_worker(
        self, one: PlacementAttempt, worker: Worker, now_s: float
    ) -> Reservation | None:
        """Reserve a pair that has `worker` in it; None if no partner can be had."""
        stages, group = one.stages, group_of(worker)
        other = stages.decode if worker.role == "prefill" else stages.prefill
        if other is None:
            return None
        able = [one for one in other.sieved.candidates if group_of(one) == group]
        if not able:
            return None
        partner = min(
            able, key=lambda one: (one.load.weighed().wait_s + one.load.pressure_s, one.id)
        )
        prefill, decode = (worker, partner) if worker.role == "prefill" else (partner, worker)
        return self._taken_pair(one, prefill, decode, TARGET, now_s)

    def _taken_pair(
        self, one: PlacementAttempt, prefill: Worker, decode: Worker, policy: str, now_s: float
    ) -> Reservation:
        stages, name, wish, began_s = one.stages, one.model.name, one.wish, one.began_s
        assert stages.prefill is not None
        assert stages.decode is not None
        part, dropped = Part("prefill", name, policy), stages.prefill.dropped
        first = self._picker.take(wish, part, prefill, dropped, began_s, now_s)
        part, dropped = Part("decode", name, policy, 0), stages.decode.dropped
        second = self._picker.take(wish, part, decode, dropped, began_s, now_s)
        return self._pair_of(first, second)

    def _pair_of(self, first: Reservation, second: Reservation) -> Reservation:
        pairing = first.worker.pairing
        assert pairing is not None
        host, port = first.worker.meeting
        ranks = (max(1, first.card.ranks), max(1, second.card.ranks))
        number = room_number(
            self._rng,
            pairing.room_bits,
            rank=first.rank or 0,
            ranks=ranks[0],
            partner_rank=second.rank or 0,
            partner_ranks=ranks[1],
        )
        rank = second.rank
        if pairing.style == "room" and rank is not None and number % ranks[1] != rank:
            rank = None
        return PairReservation(
            second.worker,
            second.engine,
            second.card,
            second.prompt_tokens,
            second.tokens,
            second.began_s,
            second.ahead,
            second.probe,
            second.alone,
            first.beginning,
            second.rank,
            prefill=first,
            partners=Partners(
                first.engine,
                second.engine,
                pairing.style,
                host,
                port,
                number,
                pairing.engine_id if first.rank is None else f"{pairing.engine_id}_dp{first.rank}",
                first.rank,
                rank,
            ),
            bans=self.bans,
            clock=self._clock,
        )


def _or_probe(stage: Candidates, now_s: float) -> list[Worker]:
    """Return the workers that may be chosen, or the one that may be probed."""
    if stage.sieved.candidates:
        return list(stage.sieved.candidates)
    probe = probe_of(stage.sieved, now_s)
    return [] if probe is None else [probe]
