"""How much is under way on one worker, by this node and by all nodes together, and what that costs a request. Pure.

    wait = (prompt tokens not worked off yet, of all nodes  +  what others than the nodes brought there) / prefill rate
         + (open requests over the capacity) / capacity x seconds of a request
    pressure = weight x k / (1 - k)  +  weight x open / capacity              k: share of KV memory in use

Own numbers count at once, those of peers when they are heard. What the engine says of itself is compared with
these counts at the moment it comes: only what it has *beyond* them (calls of somebody else) is added, and that
is worked off at the prefill rate until the engine speaks again. So a call that begins between two samples is
seen at once, none is counted twice, and a sample older than 15 s is none.

Everything is computed when something changes, about 1 us, so that a decision only reads attributes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from smg_node.engines.engine import Load

PREFILL_RATE: Final = 8_000.0
"""Prompt tokens a second, where nothing was measured yet."""
PREFILL_RATE_MIN: Final = 500.0
PREFILL_RATE_MAX: Final = 200_000.0
CAPACITY: Final = 64
"""Requests at once, where the engine does not say."""
REQUEST_S: Final = 10.0
"""Seconds of a request, where none has ended yet."""
NEVER: Final = float("-inf")
SAMPLE_MAX_AGE_S: Final = 15.0
FRESH_S: Final = 60.0
"""A worker that begins with an empty cache is called fresh for so long."""
RATE_HALF_LIFE_S: Final = 60.0
RATE_TOKENS_MIN: Final = 256
"""Fewer tokens measure the step of an engine and the way to it, not how fast it works prompts off."""
MEAN_PROMPT_TOKENS: Final = 1_024
"""What a request that waits at an engine is taken for, where the engine does not count its tokens."""
STUCK_S: Final = 3.0
"""An engine that reports steps may be silent for so long beyond the prefill of what it was given."""
_PRIOR_S: Final = 0.5
"""The rate that is assumed at first weighs as much as half a second of measured work."""
_OUTLIER: Final = 4.0
"""One measurement counts as this many times faster or slower than those before it at most."""
_ENDED_SHARE: Final = 1 / 16
_KV_MAX: Final = 0.99
_KV_RELIEF: Final = 0.1


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What numbers are taken for; see the knobs of `routing`.

    `pressure_weight_s` and `busy_weight_s` are what a worker costs with half of its KV memory in use, and with
    all its slots taken. It is overloaded from `waiting_max` waiting requests a rank or `kv_max` of its memory
    on, and full with `backlog_max` requests more than it runs at once.
    """

    prefill_rate: float = PREFILL_RATE
    pressure_weight_s: float = 0.15
    busy_weight_s: float = 1.0
    waiting_max: int = 8
    kv_max: float = 0.8
    backlog_max: int = 8


DEFAULT: Final = LoadOptions()


@dataclass(slots=True, eq=False)
class WorkerLoad:
    """Open calls and the tokens of their prompts that are not worked off; what policies look at.

    `inflight` and `tokens` are kept as sums, because they are read for every request and change less often.
    `began` is called when this node's first call there begins, `changed` when `overloaded`, `full` or `stuck`
    turns. All times are monotonic seconds.
    """

    worker: str
    weight: float = 1.0
    inflight: int = 0
    tokens: int = 0
    own_inflight: int = 0
    own_tokens: int = 0
    began: Callable[[], None] | None = None
    wait_s: float = 0.0
    pressure_s: float = 0.0
    prefill_rate: float = PREFILL_RATE
    capacity: int = CAPACITY
    changed: Callable[[], None] | None = None
    options: LoadOptions = DEFAULT
    overloaded: bool = False
    """Others are better off while they are not: much waits there, or its memory is nearly full."""
    full: bool = False
    """It has more requests than it runs at once, and a queue besides: another one would only wait."""
    stuck: bool = False
    """The engine has said nothing for longer than its work can take."""
    sampled_s: float = NEVER
    """As of when the engine last said how busy it is; NEVER if that is too old or never was."""
    fresh_until_s: float = NEVER
    """Until then it is filling a cache that began empty."""
    request_s: float = REQUEST_S
    """How long its requests take, about."""
    _ranks: dict[int, tuple[Load, float]] = field(default_factory=dict)
    _ranks_said: int | None = None
    """Capacity by the card of its model, for engines that never send samples."""
    _foreign_requests: int = 0
    _foreign_tokens: float = 0.0
    _foreign_s: float = NEVER
    _waiting: float = 0.0
    _kv: float = 0.0
    _measured_tokens: float = 0.0
    _measured_s: float = 0.0
    _measured_at_s: float = NEVER
    _ended: int = 0
    _silent: bool = False
    _quiet: bool = False

    # ── Calls ────────────────────────────────────────────────────────────────

    def begin(self, tokens: int) -> int:
        """Count one of this node's calls in: the next decision sees it already. `tokens` are those to be computed.

        Return how many tokens are before it there; -1 if it must wait for a slot, which is a matter of decoding.
        """
        if not self.own_inflight and self.began is not None:
            self.began()
        ahead = self.tokens if self.inflight + self._foreign_requests < self.capacity else -1
        self.own_inflight += 1
        self.own_tokens += tokens
        self.inflight += 1
        self.tokens += tokens
        self._weigh()
        return ahead

    def prefilled(self, tokens: int) -> None:
        """Note that the first token of a call came: the `tokens` it was counted in with are worked off."""
        self.own_tokens -= tokens
        self.tokens -= tokens
        assert self.own_tokens >= 0
        self._weigh()

    def end(self, tokens: int, *, prefilled: bool = False, seconds: float | None = None) -> None:
        """Count one of this node's calls out; `prefilled` if its tokens were noted as worked off before.

        `seconds` is how long it was open, if it ended well.
        """
        self.own_inflight -= 1
        self.inflight -= 1
        if not prefilled:
            self.own_tokens -= tokens
            self.tokens -= tokens
        assert self.own_inflight >= 0
        assert self.own_tokens >= 0
        if seconds is not None:
            self._ended += 1
            share = max(_ENDED_SHARE, 1 / self._ended)
            self.request_s += share * (seconds - self.request_s)
        self._weigh()

    def hear(self, requests: int, tokens: int) -> None:
        """Take what all other nodes together have open there, as they last said."""
        self.inflight = self.own_inflight + requests
        self.tokens = self.own_tokens + tokens
        self._weigh()

    # ── What the engine says ─────────────────────────────────────────────────

    def sample(self, load: Load, now_s: float) -> None:
        """Take what one rank of the engine says of itself; sent `load.age_ms` after it was so."""
        self._ranks[load.rank] = (load, now_s - load.age_ms / 1000)
        self._take_samples(now_s)

    def tick(self, now_s: float) -> None:
        """Let time pass, about once a second: old samples go, what others brought there is worked off."""
        if self._ranks:
            oldest_s = now_s - SAMPLE_MAX_AGE_S
            old = [rank for rank, (_, at_s) in self._ranks.items() if at_s < oldest_s]
            for rank in old:
                del self._ranks[rank]
            if old:
                self._take_samples(now_s)
                return
        if self._foreign_tokens:
            self._foreign_tokens -= self._worked_off_a_second() * (now_s - self._foreign_s)
            self._foreign_tokens = max(self._foreign_tokens, 0.0)
            self._foreign_s = now_s
            self._weigh()

    def stick(self, *, stuck: bool) -> None:
        """Note that its stream has fallen quiet while it has work, or speaks again."""
        if stuck is not self._quiet:
            self._quiet = stuck
            self._weigh()

    def sized(self, running_max: int | None) -> None:
        """Take how many requests it runs at once by the card of its model; None if that does not say."""
        self._ranks_said = running_max
        self._size()
        self._weigh()

    def renewed(self, now_s: float) -> None:
        """Begin anew with another engine, or the same one restarted: what was measured and said is void."""
        self._ranks.clear()
        self._quiet = False
        self._measured_at_s = NEVER
        self.prefill_rate = self.options.prefill_rate
        self.request_s, self._ended = REQUEST_S, 0
        self.fresh_until_s = now_s + FRESH_S
        self._take_samples(now_s)

    def settled(self) -> None:
        """Note that its cache holds enough: it is not fresh any more."""
        self.fresh_until_s = NEVER

    def retune(self, options: LoadOptions) -> None:
        """Go by other numbers from now on."""
        self.options = options
        if self._measured_at_s == NEVER:
            self.prefill_rate = options.prefill_rate
        self._weigh()

    # ── What was measured ────────────────────────────────────────────────────

    def rate(self, tokens: int, seconds: float, *, now_s: float) -> None:
        """Take that the first token of a call came `seconds` after it was counted in, and `tokens` were computed
        till then: its own uncached ones, and those `begin` found ahead of it.

        The rate is that of all measured work, of which what lies 60 s back counts half.
        """
        if tokens < RATE_TOKENS_MIN or seconds <= 0:
            return
        known = self.prefill_rate
        if self._measured_at_s == NEVER:
            self._measured_tokens, self._measured_s = known * _PRIOR_S, _PRIOR_S
            self._measured_at_s = now_s
        usual_s = tokens / known
        seconds = min(max(seconds, usual_s / _OUTLIER), usual_s * _OUTLIER)
        kept = 0.5 ** (max(0.0, now_s - self._measured_at_s) / RATE_HALF_LIFE_S)
        self._measured_at_s = now_s
        self._measured_tokens = self._measured_tokens * kept + tokens
        self._measured_s = self._measured_s * kept + seconds
        rate = self._measured_tokens / self._measured_s
        self.prefill_rate = min(max(rate, PREFILL_RATE_MIN), PREFILL_RATE_MAX)
        self._weigh()

    # ── What follows ─────────────────────────────────────────────────────────

    def _take_samples(self, now_s: float) -> None:
        """Work out what the engine has beyond what the nodes know of, and how full it is."""
        loads = [load for load, _ in self._ranks.values()]
        count = len(loads)
        self.sampled_s = max((at_s for _, at_s in self._ranks.values()), default=NEVER)
        self._size()
        running = sum(load.running for load in loads)
        waiting = sum(load.waiting for load in loads)
        tokens = sum(_waiting_tokens(load) for load in loads)
        self._foreign_requests = max(0, running + waiting - self.inflight)
        self._foreign_tokens = float(max(0, tokens - self.tokens))
        self._foreign_s = now_s
        self._waiting = waiting / count if count else 0.0
        # Memory that only holds what may be forgotten, on an engine without work, is no pressure.
        used = sum(load.kv_usage or 0.0 for load in loads) if running + waiting else 0.0
        self._kv = min(used / count, _KV_MAX) if count else 0.0
        self._silent = any(self._is_silent(load) for load in loads)
        self._weigh()

    def _is_silent(self, load: Load) -> bool:
        if not load.reports_steps or load.silence_ms is None:
            return False
        due_s = (load.prefill_pending_tokens or 0) / self.prefill_rate + STUCK_S
        return load.silence_ms / 1000 > due_s

    def _size(self) -> None:
        by_ranks = [load.running_max for load, _ in self._ranks.values() if load.running_max]
        said = sum(by_ranks) if by_ranks else self._ranks_said
        self.capacity = max(1, said) if said else CAPACITY

    def _worked_off_a_second(self) -> float:
        return self.prefill_rate * max(1, len(self._ranks))

    def _weigh(self) -> None:
        """Make everything that decisions read follow from the counts."""
        options, capacity = self.options, self.capacity
        open_ = self.inflight + self._foreign_requests
        wait_s = (self.tokens + self._foreign_tokens) / self._worked_off_a_second()
        if open_ >= capacity:
            wait_s += (open_ - capacity + 1) / capacity * self.request_s
        self.wait_s = wait_s
        k = self._kv
        self.pressure_s = (
            options.pressure_weight_s * k / (1 - k) + options.busy_weight_s * open_ / capacity
        )
        self._judge(open_ - capacity)

    def _judge(self, backlog: int) -> None:
        """Say whether it can take more. What turned on turns off only when there is some room again."""
        options = self.options
        share = 0.5 if self.full else 1.0
        full = backlog >= max(1, options.backlog_max * share)
        if self.overloaded:
            overloaded = (
                self._waiting > options.waiting_max / 2 or self._kv > options.kv_max - _KV_RELIEF
            )
        else:
            overloaded = self._waiting >= options.waiting_max or self._kv >= options.kv_max
        overloaded, stuck = overloaded or full, self._silent or self._quiet
        if (full, overloaded, stuck) != (self.full, self.overloaded, self.stuck):
            self.full, self.overloaded, self.stuck = full, overloaded, stuck
            if self.changed is not None:
                self.changed()


def _waiting_tokens(load: Load) -> int:
    """Return how many prompt tokens it has not worked off yet, as far as it says."""
    pending, uncached = load.prefill_pending_tokens, load.waiting_uncached_tokens
    if pending is None and uncached is None:
        return load.waiting * MEAN_PROMPT_TOKENS
    return max(pending or 0, uncached or 0)
