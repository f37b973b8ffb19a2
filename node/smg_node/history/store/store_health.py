"""Store health: circuit breaker of the history store, with its state, last failure and latency.

After five failures in a row the store is not called for five seconds, because each call would wait
for its timeout; then one call is let through, and all others when that succeeds. Only a missing
answer is a failure: a conflict is an answer.
"""

from collections.abc import Callable
from typing import Final

from smg_node.core.ports import Rng
from smg_node.core.sliding_window import Window
from smg_node.fleet.health.circuit_breaker import Breaker, BreakerOptions, State
from smg_storage.errors import OldTablesError, StoreError, StoreErrorKind

_BREAKER: Final = BreakerOptions(
    window_s=30.0,
    samples_min=20,
    failure_ratio=0.5,
    connect_failures=5,
    open_s=5.0,
    open_max_s=5.0,
    close_after=1,
)
WINDOW_S: Final = 60.0
SLOW_MIN: Final = 3
"""So few slow answers say nothing yet."""
SLOW_SHARE: Final = 0.01


class StoreHealth:
    """State of the store. Time is monotonic seconds; `changed` is called when it becomes available
    or not.
    """

    def __init__(
        self,
        *,
        now_s: Callable[[], float],
        rng: Rng,
        slow_s: float,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.started = False
        self.trouble = ""
        """What went wrong last, "" while nothing does."""
        self._old_tables = False
        self._now_s: Final = now_s
        self._failed_s = now_s()
        self._slow_s: Final = slow_s
        self._breaker: Final = Breaker(_BREAKER, rng, changed=changed)
        self._all: Final = Window(WINDOW_S)
        self._slow: Final = Window(WINDOW_S)

    # ── What may be asked ────────────────────────────────────────────────────

    @property
    def away(self) -> bool:
        """Whether it does not answer, as far as is known."""
        return not self.started or self._breaker.state(self._now_s()) is not State.CLOSED

    @property
    def failed_s(self) -> float:
        """Time of the last failure: now while it is unavailable, this node's start if it always
        answered.

        The time before that start is unknown, so the store counts as unavailable then.
        """
        return self._now_s() if self.away else self._failed_s

    def enter(self) -> int:
        """Admit one call; return a token to give back with its result. UNAVAILABLE while the
        breaker is open.
        """
        now_s = self._now_s()
        state = self._breaker.state(now_s)
        free = state is State.CLOSED or (
            state is State.HALF_OPEN and self._breaker.probe_free(now_s)
        )
        if not self.started or not free:
            raise StoreError(StoreErrorKind.UNAVAILABLE, self.trouble or "the store is not open")
        return self._breaker.take_probe(now_s)

    def next_look_s(self) -> float:
        """Return in how many seconds to probe it; infinity while it answers."""
        now_s = self._now_s()
        return max(self._breaker.look_s(now_s) - now_s, 0.0)

    # ── What became of it ────────────────────────────────────────────────────

    def answered(self, token: int, took_s: float) -> None:
        """Record that there was an answer, success or error."""
        now_s = self._now_s()
        if self.away:
            self._failed_s = now_s
        self._all.add(now_s)
        if took_s > self._slow_s:
            self._slow.add(now_s)
        self._breaker.success(now_s, token)
        if not self.away:
            self.trouble = ""

    def failed(self, token: int, error: StoreError) -> None:
        """Record that there was no answer."""
        self.trouble = error.message
        self._failed_s = self._now_s()
        self._breaker.failure(self._now_s(), connect=True, probe=token)

    def abandoned(self, token: int) -> None:
        """Record that the caller was cancelled."""
        self._breaker.abandoned(self._now_s(), token)

    def opened(self) -> None:
        """Record that the store is open."""
        self.started, self._old_tables, self.trouble = True, False, ""
        self._failed_s = self._now_s()

    def not_opened(self, error: StoreError) -> None:
        """Record that the store could not be opened."""
        self._old_tables = isinstance(error, OldTablesError)
        self.trouble = error.message

    # ── In words ─────────────────────────────────────────────────────────────

    @property
    def old_tables(self) -> str:
        """Instruction for tables that are too old; "" if they are not."""
        return self.trouble if self._old_tables and not self.started else ""

    def words(self) -> tuple[str, ...]:
        """Return what is degraded, except for old tables."""
        if self.away:
            return (f"store_away: {self.trouble or 'it is being opened'}",)
        now_s = self._now_s()
        slow = self._slow.total(now_s)
        if slow >= SLOW_MIN and slow > SLOW_SHARE * self._all.total(now_s):
            return (f"store_slow: {slow} answers took over {self._slow_s:g} s within a minute",)
        return ()
