"""One of our calls on a worker: counted in, told of, counted out.

Whoever holds it says what becomes of the call, in this order: `spoke` with its first token, then `ended` or
`failed`, and `release` in any case. That is all that load and breaker ever hear of calls.

A call may take two workers (`pair_hold`); whoever holds it need not know.
"""

import msgspec
from msgspec.structs import replace

from smg_node.core.errors import SmgError
from smg_node.engines.chunk_stream import ChunkStream
from smg_node.engines.engine import Abilities, Engine, EngineRequest, ModelCard
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.load.worker_load import RATE_TOKENS_MIN
from smg_node.fleet.workers.worker import Worker
from smg_node.routing.policy import Beginning


class Reservation(msgspec.Struct, eq=False):
    """A call whose prompt has `prompt_tokens`, of which `tokens` are to be computed as far as is known.

    It began at `began_s` on the monotonic clock. `ahead` tokens were before it there, -1 if it had to wait for a slot. `probe` is the breaker's token for a
    call that finds out how its worker is, 0 for any other. `alone`: nobody else had a call there.
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
    _spoken: bool = False
    _judged: bool = False
    _took_s: float | None = None
    _held: bool = True

    @property
    def abilities(self) -> Abilities:
        """What a request may ask of it."""
        return self.engine.abilities

    @property
    def caching(self) -> tuple[Worker, int | None]:
        """The worker whose cache holds the prompt from the first token on, and which rank's it is; None if it has one."""
        return self.worker, self.rank

    @property
    def unheard(self) -> bool:
        """Whether that worker will hold the answer too, and nobody says so unless we do."""
        return not self.worker.following

    @property
    def culprit(self) -> Worker:
        """The worker that is to be passed over if the call broke."""
        return self.worker

    @property
    def lonely(self) -> bool:
        """Whether the call is the only one of this node there, and was when it came."""
        return self.alone and self.worker.load.inflight == 1

    def call(self, request: EngineRequest) -> ChunkStream:
        """Begin the call; see `Engine.call`."""
        if self.rank is not None:
            request = replace(request, rank=self.rank)
        return self.engine.call(request)

    def spoke(self, now_s: float, cached_tokens: int = -1) -> None:
        """Take in that the first token came: its prompt is worked off. `cached_tokens`: -1 if nobody says."""
        if self._spoken or not self._held:
            return
        self._spoken = True
        load, breaker, ahead = self.worker.load, self.worker.breaker, self.ahead
        load.prefilled(self.tokens, self.rank)
        # Short prompts are most, and too short for that whatever is cached.
        if self.prompt_tokens + ahead >= RATE_TOKENS_MIN and ahead >= 0 and cached_tokens >= 0:
            computed = max(0, self.prompt_tokens - cached_tokens) + ahead
            if computed >= RATE_TOKENS_MIN:
                load.rate(computed, now_s - self.began_s, now_s=now_s)
        if breaker.troubled:
            breaker.spoke(now_s, self.probe)

    def ended(self, now_s: float) -> None:
        """Take in that the call ended as it should."""
        self._judged = True
        self._took_s = now_s - self.began_s
        self.worker.breaker.success(now_s, self.probe)

    def failed(self, error: SmgError, now_s: float) -> None:
        """Take in that the call broke; nobody at the other end means to look at once."""
        self._judged = True
        self.worker.judge(error, now_s, probe=self.probe)
        if error.code == UNREACHABLE_CODE:
            self.worker.suspect()

    def release(self, now_s: float) -> None:
        """Count the call out; harmless the second time."""
        if not self._held:
            return
        self._held = False
        self.worker.release(
            self.tokens, prefilled=self._spoken, seconds=self._took_s, rank=self.rank
        )
        if self.probe and not self._judged:
            self.worker.breaker.abandoned(now_s, self.probe)
