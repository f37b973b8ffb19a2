"""Pair reservation: one call on two workers, prefill and decode, each counted and judged by itself.

The prefill worker is counted in with the tokens to be computed, until it is done, the decode worker
with none, until the answer is over. Each breaker hears of its own worker only, and of a failed
hand-over neither does.

A caller that does not use `call` passes the object with the fault to `take`, and calls `prefilled`
when the prefill worker is done.
"""

from dataclasses import replace
from typing import Protocol

from smg_node.core.errors import SmgError
from smg_node.core.ports import Clock
from smg_node.engines.chunk_stream import ChunkStream, PulledChunks
from smg_node.engines.engine import Abilities, EngineRequest, ModelCard, Prefilled
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.pairs.engine_pair import PairCall, Partners
from smg_node.pipeline.pairs.pair_calls import Fault, Leg
from smg_node.pipeline.reservation import Encodes, Reservation
from smg_node.routing.pair_bans import PairBans


class Shared(Protocol):
    """A call on two workers."""

    @property
    def fault(self) -> Fault | None:
        """Leg that caused the failure; None while there is none."""
        ...

    @property
    def broke(self) -> Leg | None:
        """Which of the two calls broke; None while none has."""
        ...

    @property
    def by_prefill(self) -> bool:
        """Whether the answer is the prefill worker's, and the decode worker had no part in it."""
        ...


class PairReservation(Reservation, eq=False, kw_only=True):
    """A reservation of the decode worker, with that of the prefill worker: `prefill`."""

    prefill: Reservation
    partners: Partners
    bans: PairBans
    clock: Clock
    _call: Shared | None = None
    _alone: bool = False

    @property
    def abilities(self) -> Abilities:
        """See `Reservation`: one answer a pair, and the prompt's log probabilities are those of the first worker."""
        first, second = self.prefill.engine.abilities, self.engine.abilities
        return replace(second, native_n=False, prompt_logprobs=first.prompt_logprobs)

    @property
    def seeing(self) -> ModelCard:
        """See `Reservation`."""
        card = self.card if self._alone else self.prefill.card
        return card if self.encodes is None else self.encodes.seen_by(card)

    @property
    def caching(self) -> tuple[Worker, int | None]:
        """See `Reservation`."""
        at: Reservation = self if self._alone else self.prefill
        return at.worker, at.rank

    @property
    def unheard(self) -> bool:
        """See `Reservation`: the first worker never sees the answer."""
        return False

    @property
    def culprit(self) -> Worker:
        """See `Reservation`. After a failed hand-over it is the worker whose call reported the
        error.
        """
        if self.at_encoder is not None:
            return self.at_encoder.worker
        at_first = self._call is not None and self._call.broke == "prefill"
        return self.prefill.worker if at_first else self.worker

    @property
    def lonely(self) -> bool:
        """See `Reservation`."""
        at = self.at_encoder or (self.prefill if self.culprit is self.prefill.worker else self)
        return at.alone and at.worker.load.inflight == 1

    def encoded_by(self, encodes: Encodes) -> None:
        """See `Reservation`: it is the prefill worker that waits for the pictures."""
        Reservation.encoded_by(self, encodes)
        self.prefill.ahead = -1

    def call(self, request: EngineRequest) -> ChunkStream:
        """See `Reservation`: both calls, as one, after those that encode its pictures."""
        if self.encodes is not None:
            return self.encodes.stream(request, self._begin)
        return self._begin(request)

    def _begin(self, request: EngineRequest) -> ChunkStream:
        call = PairCall(self.partners, self.prefilled)
        self.take(call)
        return PulledChunks(call.chunks(request))

    def take(self, call: Shared) -> None:
        """Use `call` as the call of this reservation."""
        self._call = call

    def part(self, now_s: float) -> None:
        """Release the prefill worker: the decode worker does everything itself."""
        self._alone = True
        self.prefill.release(now_s)

    def prefilled(self, found: Prefilled) -> None:
        """Record that the prefill worker is done: its slot is free."""
        now_s, first = self.clock.monotonic_s(), self.prefill
        self.shared = found.shared
        first.spoke(now_s, found.cached_tokens)
        first.ended(now_s)
        first.release(now_s)

    def ended(self, now_s: float) -> None:
        """See `Reservation`: the worker that answered is credited."""
        if self._call is not None and self._call.by_prefill:
            self.prefill.ended(now_s)
        else:
            Reservation.ended(self, now_s)

    def failed(self, error: SmgError, now_s: float) -> None:
        """See `Reservation`: the worker at fault is charged."""
        fault = self._call.fault if self._call is not None else None
        if fault == "prefill":
            self.prefill.failed(error, now_s)
        elif fault == "transfer" and self.encodes is not None:
            # It may have waited for a picture; whoever encoded it is looked at.
            return
        elif fault == "transfer":
            self.bans.failed(self.prefill.worker.id, self.worker.id, now_s)
        else:
            Reservation.failed(self, error, now_s)

    def release(self, now_s: float) -> None:
        """See `Reservation`."""
        self.prefill.release(now_s)
        Reservation.release(self, now_s)
