"""Circuit breaker per worker: admits calls by recent outcomes: closed, open, half open. Pure.

    closed ── too many failures ──▶ open ── its time is over ──▶ half open ── 2 successes ──▶ closed
                                     ▲                               │
                                     └────── 1 failure, longer ──────┘

*Closed*, every call goes there and is a sample; the window slides. *Open*, none does. *Half open*, one call at a
time does, the *probe*, and only its word counts: calls that began before it opened end late and say what is
known already. A health look goes before it: until there was a good one, a request is made the probe only where
no other worker can be had. So a broken worker costs one request a minute, and that one is tried elsewhere.

A worker that only says it is full is not broken: it stays closed, is passed over for a while
(`backpressure`), and then tried again with few calls, which are probes too.

What a peer says of a worker opens nothing; it only makes the first own failure enough. Where all workers of a model
are open, the one that opened first gets a probe before its time.

Nothing lasts for ever: an open breaker is half open after a minute or so, a half-open one without a look
is probed anyway, and a probe without an outcome is given up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from smg_node.core.ports import Rng
from smg_node.core.sliding_window import Window
from smg_node.fleet.health.backpressure import NEVER as NEVER
from smg_node.fleet.health.backpressure import Pressure, jittered

LOOK_PATIENCE_S: Final = 5.0
"""A look takes two seconds at most; whoever should look may be gone."""
PROBE_MAX_S: Final = 60.0
"""A probe that has not said a word by then is not waited for any more."""
EARLY_S: Final = 1.0
"""Where all workers are open, so long after one opened it may be probed: so often requests find out at most."""
_RELAPSES_MAX: Final = 16


class State(Enum):
    """Calls that a breaker lets through: all, none, or one at a time."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerOptions:
    """Conditions of a breaker's changes of state; see the knobs of `breaker`."""

    enabled: bool = True
    window_s: float = 30.0
    samples_min: int = 10
    failure_ratio: float = 0.5
    connect_failures: int = 5
    open_s: float = 5.0
    open_max_s: float = 60.0
    close_after: int = 2
    hint_s: float = 10.0


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker as an operator sees it.

    `why` is why its worker is passed over now, "" if it is not, and `again_s` when that may change by itself,
    None for never. It `opened` so often; `pressure` is how often the worker said that it is full.
    """

    state: str
    why: str
    samples: int
    failures: int
    opened: int
    pressure: int
    again_s: float | None


class Breaker:
    """The breaker of one worker on one node. Time is monotonic seconds.

    `changed` is called when a call of a method changed what `usable` or `probe_free` say, as the last thing it
    does; what time alone changes is told by `next_s`.
    """

    __slots__ = (
        "_changed", "_closed_s", "_early", "_failures", "_fine", "_first", "_good", "_hinted_s",
        "_last", "_options", "_out", "_relapses", "_rng", "_row", "_since_s", "_state",
        "_successes", "_tokens", "_until_s", "full", "opened", "opened_s", "troubled",
    )  # fmt: skip

    def __init__(
        self, options: BreakerOptions, rng: Rng, *, changed: Callable[[], None] | None = None
    ) -> None:
        self.opened = 0
        """How often it opened."""
        self.opened_s = -NEVER
        """When it opened last."""
        self.troubled = False
        """Whether anything but a good word may count: if not, it is closed, and no call is a probe."""
        self.full = Pressure(rng)
        """What it said about having no room."""
        self._options = options
        self._rng = rng
        self._changed = changed
        self._failures = Window(options.window_s)
        self._successes = Window(options.window_s)
        self._tokens = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._state = State.CLOSED
        self._failures.clear()
        self._successes.clear()
        self._row = 0
        """Connections that failed since the last word from there."""
        self._relapses = 0
        self._closed_s = self._hinted_s = self._until_s = -NEVER
        self._since_s = -NEVER
        """When it became half open."""
        self._early = False
        """Whether that was before its time."""
        self._fine = False
        """Whether a health look found it well since then."""
        self._good = 0
        """Probes that it answered since then."""
        self._out: dict[int, float] = {}
        """The probes that have not spoken, and when each is given up."""
        self._first: float = NEVER
        self._last: float = -NEVER
        """The tokens of all probes since it became half open last, until it closed."""
        self.full.clear()

    # ── Questions ────────────────────────────────────────────────────────────

    def state(self, now_s: float) -> State:
        """Return what it lets through now."""
        if self._state is State.OPEN and now_s >= self._until_s:
            self._half_open(self._until_s)
        return self._state

    def usable(self, now_s: float) -> bool:
        """Whether any call may be placed there now; placing one takes the probe, if it is one."""
        if now_s < self.full.until_s:
            return False
        match self.state(now_s):
            case State.CLOSED:
                return not self.full.wary(now_s) or self._has_room(now_s)
            case State.OPEN:
                return False
            case State.HALF_OPEN:
                looked = self._fine or now_s >= self._since_s + LOOK_PATIENCE_S
                return looked and self._has_room(now_s)

    def busy(self, now_s: float) -> bool:
        """Whether it is not broken, but said that it is full: requests for it may wait."""
        return self.state(now_s) is State.CLOSED and not self.usable(now_s)

    def probe_free(self, now_s: float, *, alone: bool = False) -> bool:
        """Whether a request that has no other worker may be the probe now.

        With `alone`, all workers are open, and this one opened first: it need not wait for the end of its time.
        """
        if now_s < self.full.until_s:
            return False
        match self.state(now_s):
            case State.CLOSED:
                return False
            case State.OPEN:
                return alone and now_s >= self.opened_s + EARLY_S
            case State.HALF_OPEN:
                return self._has_room(now_s)

    def why(self, now_s: float) -> str:
        """Return in words why it may not be used now; "" if it may."""
        if self.usable(now_s):
            return ""
        state = self.state(now_s)
        if state is not State.CLOSED:
            return f"breaker {state.value.replace('_', ' ')}"
        return "asked to be left alone" if now_s < self.full.until_s else "tried after pressure"

    def next_s(self, now_s: float) -> float:
        """Return when `usable` or `probe_free` may change by themselves, after now; infinity for never."""
        state = self.state(now_s)
        if state is State.CLOSED and not self.full.count and not self._out:
            return NEVER
        times = [self.full.until_s, self.full.calm_s, *self._out.values()]
        match state:
            case State.CLOSED:
                pass
            case State.OPEN:
                times += [self._until_s, self.opened_s + EARLY_S]
            case State.HALF_OPEN:
                times += [-NEVER if self._fine else self._since_s + LOOK_PATIENCE_S]
        return min([time_s for time_s in times if time_s > now_s], default=NEVER)

    def look_s(self, now_s: float) -> float:
        """Return when it wants a health look: now or later, infinity for never."""
        match self.state(now_s):
            case State.CLOSED:
                return NEVER
            case State.OPEN:
                return self._until_s
            case State.HALF_OPEN:
                return now_s if not self._fine and self._has_room(now_s) else NEVER

    def view(self, now_s: float) -> BreakerView:
        """Return what an operator sees of it."""
        failures, next_s = self._failures.total(now_s), self.next_s(now_s)
        return BreakerView(
            state=self.state(now_s).value,
            why=self.why(now_s),
            samples=failures + self._successes.total(now_s),
            failures=failures,
            opened=self.opened,
            pressure=self.full.count,
            again_s=None if next_s == NEVER else next_s - now_s,
        )

    # ── What becomes of calls ────────────────────────────────────────────────

    def take_probe(self, now_s: float) -> int:
        """Note that a call is placed there; return its token if it is a probe, 0 if it is one of many."""
        if self._state is State.CLOSED and not self.full.watched:
            return 0
        if self.state(now_s) is State.OPEN and self.probe_free(now_s, alone=True):
            self._half_open(now_s)
            self._early = True
        if self._state is State.CLOSED:
            wanted = self.full.wary(now_s)
        else:
            # A worker full while it was tried is left alone, also after a call placed regardless.
            wanted = self._state is State.HALF_OPEN and now_s >= self.full.until_s
        if not wanted or not self._has_room(now_s):
            return 0
        self._tokens += 1
        token = self._tokens
        self._out[token] = now_s + PROBE_MAX_S
        self._tell()
        return token

    def spoke(self, now_s: float, probe: int = 0) -> None:
        """Take in that a call got its first token: a probe need not wait for its end."""
        self._row = 0
        if self.full.count:
            self.full.spoke()
        elif self._state is State.CLOSED and not self._out:
            self.troubled = False
        if probe and self._is_probe(now_s, probe):
            self._probe_good(now_s, probe)

    def success(self, now_s: float, probe: int = 0) -> None:
        """Take in that a call ended as it should."""
        if not self.troubled or self.state(now_s) is State.CLOSED:
            self._successes.add(now_s)
        if self.troubled:
            self.spoke(now_s, probe)

    def failure(self, now_s: float, *, connect: bool, probe: int = 0) -> None:
        """Take in a failure by the worker's fault; `connect`: there was no connection."""
        if not self._options.enabled:
            return
        self.troubled = True
        state, freed = self.state(now_s), self._free(now_s, probe)
        if state is not State.OPEN and self._tried_it(now_s, probe):
            self._relapse(now_s)
        elif state is State.CLOSED:
            self._failures.add(now_s)
            self._row += connect
            if self._too_many(now_s):
                again = now_s < self._closed_s + self._options.window_s
                self._open(now_s, relapses=self._relapses + 1 if again else 0)
            elif freed:
                self._tell()

    def pressure(self, now_s: float, retry_after_s: float | None, probe: int = 0) -> None:
        """Take in that a worker had no room: pass it over for as long as it asks, or for 0.25 to 5 s."""
        if not self._options.enabled:
            return
        self.troubled = True
        freed = self._free(now_s, probe)
        if self.full.add(now_s, retry_after_s) or freed:
            self._tell()

    def abandoned(self, now_s: float, probe: int) -> None:
        """Take in that a probe ended without a word about the worker: the next call may be one."""
        if self._free(now_s, probe):
            self._tell()

    def looked(self, now_s: float, *, good: bool) -> None:
        """Take in a health look; it matters while half open."""
        if self.state(now_s) is not State.HALF_OPEN:
            return
        if not good:
            self._relapse(now_s)
        elif not self._fine:
            self._fine = True
            self._tell()

    def hint(self, now_s: float) -> None:
        """Take in that a peer's is open: for some seconds the first failure seen here is enough."""
        self._hinted_s = now_s + self._options.hint_s

    def reset(self) -> None:
        """Begin anew: another engine answers there."""
        used = self._state is not State.CLOSED or self.full.count > 0
        self._begin_anew()
        if used:
            self._tell()

    def retune(self, options: BreakerOptions) -> None:
        """Go by other numbers from now on; one that is open stays so for its time, unless it is switched off."""
        if options.window_s != self._options.window_s:
            self._failures = Window(options.window_s)
            self._successes = Window(options.window_s)
        self._options = options
        if not options.enabled:
            self.reset()

    # ── Its states ───────────────────────────────────────────────────────────

    def _too_many(self, now_s: float) -> bool:
        options = self._options
        if now_s < self._hinted_s or self._row >= options.connect_failures:
            return True
        failures = self._failures.total(now_s)
        samples = failures + self._successes.total(now_s)
        return samples >= options.samples_min and failures >= options.failure_ratio * samples

    def _open(self, now_s: float, *, relapses: int) -> None:
        options = self._options
        self._relapses = min(relapses, _RELAPSES_MAX)
        length_s = min(options.open_s * 2.0**self._relapses, options.open_max_s)
        self._state = State.OPEN
        self._until_s = now_s + jittered(length_s, self._rng)
        self._out.clear()
        self.opened_s = now_s
        self.opened += 1
        self._tell()

    def _relapse(self, now_s: float) -> None:
        # One that was probed before its time has not had the chance to get well.
        self._open(now_s, relapses=self._relapses + (not self._early))

    def _half_open(self, since_s: float) -> None:
        self._state, self._since_s = State.HALF_OPEN, since_s
        self._early = self._fine = False
        self._good = 0
        self._out.clear()
        self._first, self._last = self._tokens + 1, NEVER

    def _probe_good(self, now_s: float, probe: int) -> None:
        del self._out[probe]
        if self._state is State.CLOSED:
            self.full.answered()
        else:
            self._fine = True
            self._good += 1
            if self._good >= self._options.close_after:
                self._close(now_s)
        self._tell()

    def _close(self, now_s: float) -> None:
        self._state, self._closed_s, self._last = State.CLOSED, now_s, self._tokens
        self._hinted_s = -NEVER
        self._failures.clear()
        self._successes.clear()
        self._row = 0

    def _has_room(self, now_s: float) -> bool:
        out = self._out
        if out:
            for token in [token for token, until_s in out.items() if until_s <= now_s]:
                del out[token]
        return len(out) < (self.full.room if self._state is State.CLOSED else 1)

    def _tried_it(self, now_s: float, probe: int) -> bool:
        """Whether this call was a probe of late: its first token said that all is well, its end did not."""
        late = self._state is State.CLOSED and now_s >= self._closed_s + self._options.window_s
        return self._first <= probe <= self._last and not late

    def _is_probe(self, now_s: float, probe: int) -> bool:
        # One that became half open by time alone has no probes of before.
        return probe in self._out and self.state(now_s) is not State.OPEN

    def _free(self, now_s: float, probe: int) -> bool:
        """Let go of a probe; whether it was one."""
        if not self._is_probe(now_s, probe):
            return False
        del self._out[probe]
        return True

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed()
