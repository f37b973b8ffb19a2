"""One of our calls on a worker: counted in, told of, counted out.

Whoever holds it says what becomes of the call, in this order: `spoke` with its first token, then `ended` or
`failed`, and `release` in any case. That is all that load and breaker ever hear of calls.
"""

from dataclasses import dataclass, field

from smg_node.core.errors import SmgError
from smg_node.engines.engine import Engine, ModelCard
from smg_node.engines.status import UNREACHABLE_CODE
from smg_node.fleet.worker import Worker
from smg_node.routing.policy import Beginning


@dataclass(slots=True, eq=False)
class Hold:
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
    _spoken: bool = field(default=False, init=False)
    _judged: bool = field(default=False, init=False)
    _took_s: float | None = field(default=None, init=False)
    _held: bool = field(default=True, init=False)

    def spoke(self, now_s: float, cached_tokens: int = -1) -> None:
        """Take in that the first token came: its prompt is worked off. `cached_tokens`: -1 if nobody says."""
        if self._spoken or not self._held:
            return
        self._spoken = True
        worker, load = self.worker, self.worker.load
        load.prefilled(self.tokens)
        if self.ahead >= 0 and cached_tokens >= 0:
            computed = max(0, self.prompt_tokens - cached_tokens) + self.ahead
            load.rate(computed, now_s - self.began_s, now_s=now_s)
        worker.breaker.spoke(now_s, self.probe)

    def ended(self, now_s: float) -> None:
        """Take in that the call ended as it should."""
        self._judged = True
        self._took_s = now_s - self.began_s
        self.worker.judge(None, now_s, probe=self.probe)

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
        self.worker.release(self.tokens, prefilled=self._spoken, seconds=self._took_s)
        if self.probe and not self._judged:
            self.worker.breaker.abandoned(now_s, self.probe)
