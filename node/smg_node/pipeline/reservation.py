"""Reservation of a worker for one call: counts it in and out of its load, informs its breaker.

Its owner reports the call's progress, in this order: `spoke` with its first token, then `ended` or
`failed`, and `release` in any case. Load and breaker get no other news of calls.

A call may take two workers (`pairs/pair_reservation`); its owner need not know.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec.structs import replace

from smg_node.core.errors import SmgError
from smg_node.engines.chunk_stream import ChunkStream
from smg_node.engines.engine import Abilities, Engine, EngineRequest, ModelCard
from smg_node.engines.http.vendor_cache import CacheCall, Uncached
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.load.worker_load import RATE_TOKENS_MIN
from smg_node.fleet.workers.worker import Worker
from smg_node.routing.policy import Beginning

if TYPE_CHECKING:
    # Loaded with the first picture.
    from smg_node.pipeline.encoder_work import EncoderWork

NOT_CACHED: Final = Uncached()
"""Of a call that expects nothing of a vendor's prompt cache."""


class Encodes(Protocol):
    """The workers that encode the pictures of a call before it; see `encoding/encode_legs`."""

    @property
    def fault(self) -> "Reservation | None":
        """Reservation of the one that broke first; None while none has."""
        ...

    def seen_by(self, card: ModelCard) -> ModelCard:
        """Return the card of the engine that is handed the pictures, where `card` is that of the call's own."""
        ...

    def stream(
        self, request: EngineRequest, begin: Callable[[EngineRequest], ChunkStream]
    ) -> ChunkStream:
        """Return the stream of a call that `begin` begins once its pictures are encoded."""
        ...

    def release(self, now_s: float) -> None:
        """Count all of them out; harmless the second time."""
        ...


class Reservation(msgspec.Struct, eq=False):
    """A call whose prompt has `prompt_tokens`, of which `tokens` are to be computed as far as is
    known.

    It began at `began_s` on the monotonic clock. `ahead` tokens were before it there, -1 if it had
    to wait for a slot, or for its pictures. `probe` is the breaker's token for a probing call of a half-open breaker, 0
    for any other. `alone`: the worker had no other call of this node.
    """

    worker: Worker
    engine: Engine
    card: ModelCard
    prompt_tokens: int = 0
    tokens: int = 0
    began_s: float = 0.0
    ahead: int = -1
    probe: int = 0
    alone: bool = False
    beginning: Beginning | None = None
    """Its prompt before the prefix index, if one was asked."""
    rank: int | None = None
    """The data-parallel rank it is for; None: its worker has one."""
    cached: CacheCall = NOT_CACHED
    """Its use of a vendor's prompt cache."""
    encoder: "EncoderWork | None" = None
    """What the pictures of its prompt are for its worker, None if there are none."""
    encodes: Encodes | None = None
    """Who encodes its pictures first; None: its engine does."""
    shared: bool = False
    """Whether its tensors went through shared memory to a worker that did not answer it."""
    _spoken: bool = False
    _judged: bool = False
    _took_s: float | None = None
    _held: bool = True

    @property
    def abilities(self) -> Abilities:
        """Abilities that a request may use."""
        return self.engine.abilities

    @property
    def seeing(self) -> ModelCard:
        """Card of the worker that is handed the pictures: who encodes them, else who works the prompt off."""
        return self.card if self.encodes is None else self.encodes.seen_by(self.card)

    @property
    def caching(self) -> tuple[Worker, int | None]:
        """Worker and rank whose cache holds the prompt from the first token on; the rank is None if
        it has one only.
        """
        return self.worker, self.rank

    @property
    def unheard(self) -> bool:
        """Whether that worker will cache the answer too without publishing it, so that this node
        has to record it.
        """
        # Few engines name pictures when they tell of their caches.
        return not self.worker.following or self.encoder is not None

    @property
    def at_encoder(self) -> "Reservation | None":
        """Reservation of the worker that did not encode a picture; None while all have."""
        return None if self.encodes is None else self.encodes.fault

    @property
    def culprit(self) -> Worker:
        """Worker to be excluded from the retry if the call broke."""
        return self.worker if self.at_encoder is None else self.at_encoder.worker

    @property
    def lonely(self) -> bool:
        """Whether the call is the only one of this node at its culprit, and was when it came."""
        at = self if self.at_encoder is None else self.at_encoder
        return at.alone and at.worker.load.inflight == 1

    def encoded_by(self, encodes: Encodes) -> None:
        """Have others encode its pictures first: how long its prompt takes then is no measure of its worker."""
        self.encodes, self.ahead = encodes, -1

    def call(self, request: EngineRequest) -> ChunkStream:
        """Begin the call; see `Engine.call`."""
        if self.rank is not None:
            request = replace(request, rank=self.rank)
        if self.encodes is not None:
            return self.encodes.stream(request, self.engine.call)
        return self.engine.call(request)

    def spoke(self, now_s: float, cached_tokens: int = -1) -> None:
        """Record the first token: the prompt is computed. `cached_tokens`: -1 if unknown."""
        if self._spoken or not self._held:
            return
        self._spoken = True
        load, breaker, ahead = self.worker.load, self.worker.breaker, self.ahead
        load.prefilled(self.tokens, self.rank)
        # Short prompts are most, and too short for that whatever is cached.
        if self.prompt_tokens + ahead >= RATE_TOKENS_MIN and ahead >= 0 and cached_tokens >= 0:
            computed = max(0, self.prompt_tokens - cached_tokens) + ahead
            if self.encoder is not None:
                self.encoder.spoke(
                    self.worker, computed, cached_tokens, now_s - self.began_s, now_s
                )
            elif computed >= RATE_TOKENS_MIN:
                load.rate(computed, now_s - self.began_s, now_s=now_s)
        if breaker.troubled:
            breaker.spoke(now_s, self.probe)

    def ended(self, now_s: float) -> None:
        """Record that the call ended well."""
        self._judged = True
        self._took_s = now_s - self.began_s
        self.worker.breaker.success(now_s, self.probe)

    def failed(self, error: SmgError, now_s: float) -> None:
        """Record that the call broke, in the breaker; an unreachable worker is probed at once."""
        if self.at_encoder is not None:
            # It has been told, and nobody else had begun.
            return
        self._judged = True
        self.worker.judge(error, now_s, probe=self.probe)
        if error.code == UNREACHABLE_CODE:
            self.worker.suspect()

    def release(self, now_s: float) -> None:
        """Count the call out; harmless the second time."""
        if not self._held:
            return
        self._held = False
        if self.encodes is not None:
            self.encodes.release(now_s)
        self.worker.release(
            self.tokens, prefilled=self._spoken, seconds=self._took_s, rank=self.rank
        )
        if self.probe and not self._judged:
            self.worker.breaker.abandoned(now_s, self.probe)
