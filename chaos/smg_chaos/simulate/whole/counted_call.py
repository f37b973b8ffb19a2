"""Counted call: load and breaker of one node's worker, for one engine call until its release."""

from dataclasses import dataclass

from smg_node.core.errors import SmgError
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE, Verdict, asked_pause_s, verdict
from smg_node.fleet.health.circuit_breaker import Breaker
from smg_node.fleet.load.worker_load import WorkerLoad


@dataclass(slots=True, eq=False)
class Post:
    """The record that a node keeps of one worker."""

    load: WorkerLoad
    breaker: Breaker


class Hold:
    """A call at a worker; times are monotonic seconds."""

    def __init__(self, post: Post, tokens: int, now_s: float) -> None:
        self.worker = post.load.worker
        self._post = post
        self._tokens = tokens
        self._spoke = False
        self._open = True
        self.since_s = now_s
        self.alone = post.load.own_inflight == 0
        self._probe = post.breaker.take_probe(now_s)
        post.load.begin(tokens)

    @property
    def has_spoken(self) -> bool:
        """Whether its first token came."""
        return self._spoke

    def spoke(self, now_s: float) -> None:
        """Note that its first token came."""
        if not self._spoke:
            self._spoke = True
            self._post.load.prefilled(self._tokens)
            self._post.breaker.spoke(now_s, self._probe)

    def whole(self, now_s: float) -> None:
        """Let go of a call that ended well."""
        self._post.breaker.success(now_s, self._probe)
        self._release(now_s - self.since_s)

    def broke(self, error: SmgError, now_s: float) -> None:
        """Let go of a call that broke; its breaker hears of it."""
        breaker = self._post.breaker
        match verdict(error):
            case Verdict.FAILURE:
                connect = error.code == UNREACHABLE_CODE and not self._spoke
                breaker.failure(now_s, connect=connect, probe=self._probe)
            case Verdict.PRESSURE:
                breaker.pressure(now_s, asked_pause_s(error), self._probe)
            case Verdict.NEITHER:
                breaker.abandoned(now_s, self._probe)
        self._release(None)

    def dropped(self, now_s: float) -> None:
        """Let go of a call whose answer is not wanted any more."""
        self._post.breaker.abandoned(now_s, self._probe)
        self._release(None)

    def _release(self, seconds: float | None) -> None:
        assert self._open, "a hold is let go of once"
        self._open = False
        self._post.load.end(self._tokens, prefilled=self._spoke, seconds=seconds)
