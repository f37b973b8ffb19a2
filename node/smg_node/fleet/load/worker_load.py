"""Worker load: open work on one worker, of all nodes, and what it costs a request. Pure.

    wait = (prompt tokens not worked off yet, of all nodes  +  what others than the nodes brought there) / prefill rate
         + (open requests over the capacity) / capacity x seconds of a request
    pressure = weight x k / (1 - k)  +  weight x open / capacity              k: share of KV memory in use

Own numbers count at once, those of peers when they are heard. What the engine says of itself is compared with these
counts when it comes: only what it has *beyond* them (calls of other clients) is added, and that is worked off at the
prefill rate until it speaks again. So a call that begins between two samples is seen at once, none is counted twice,
and a sample older than 15 s is none.

All is computed when something changes, so that a decision only reads attributes. What follows from the counts alone
changes thrice a call: where the owner sees to it (`moved`), it is weighed once, before a decision.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from smg_node.engines.load import Load
from smg_node.fleet.load.load_options import CAPACITY, DEFAULT, REQUEST_S
from smg_node.fleet.load.load_options import PREFILL_RATE as PREFILL_RATE
from smg_node.fleet.load.load_options import LoadOptions as LoadOptions
from smg_node.fleet.load.load_samples import Summed
from smg_node.fleet.load.prefill_rate import Measured
from smg_node.fleet.load.rank_load import Pace, Ranks, rank_of
from smg_node.fleet.load.target_figures import TargetFigures

PREFILL_RATE_MIN: Final = 500.0
PREFILL_RATE_MAX: Final = 200_000.0
NEVER: Final = float("-inf")
SAMPLE_MAX_AGE_S: Final = 15.0
FRESH_S: Final = 60.0
"""A worker that begins with an empty cache is called fresh for so long."""
RATE_TOKENS_MIN: Final = 256
"""Fewer tokens measure the step of an engine and the way to it, not how fast it works prompts off."""
_ENDED_SHARE: Final = 1 / 16
_KV_RELIEF: Final = 0.1


@dataclass(slots=True, eq=False)
class WorkerLoad:
    """Open calls and the tokens of their prompts that are not worked off; what policies look at.

    `inflight` and `tokens` are kept as sums, because they are read for every request and change less often.
    `began` is called when this node's first call there begins, `changed` when `overloaded`, `full` or `stuck`
    turns. All times are monotonic seconds. It fills a cache that began empty until `fresh_until_s`; its requests take
    about `request_s`. `figures` are of a vendor, which says nothing of itself.
    """

    worker: str
    weight: float = 1.0
    inflight: int = 0
    tokens: int = 0
    own_inflight: int = 0
    own_tokens: int = 0
    began: Callable[[], None] | None = None
    wait_s: float = 0.0
    base_s: float = 0.0
    prefill_rate: float = PREFILL_RATE
    prefill_s: float = 1 / PREFILL_RATE
    capacity: int = CAPACITY
    changed: Callable[[], None] | None = None
    moved: "list[WorkerLoad] | None" = None
    """Where it says that it is to be weighed (`weigh`) before somebody looks; None: it always has been."""
    options: LoadOptions = DEFAULT
    overloaded: bool = False
    """Others are better off while they are not: much waits there, or its memory is nearly full."""
    full: bool = False
    """It has more requests than it runs at once, and a queue besides: another one would only wait."""
    stuck: bool = False
    """The engine was silent for longer than its work can take."""
    sampled_s: float = NEVER
    """As of when the engine last said how busy it is; NEVER if that is too old or never was."""
    fresh_until_s: float = NEVER
    request_s: float = REQUEST_S
    figures: TargetFigures | None = None
    _ranks: dict[int, tuple[Load, float]] = field(default_factory=dict)
    _ranks_said: int | None = None
    """Capacity by the card of its model, for engines that never send samples."""
    _foreign_requests: int = 0
    _foreign_tokens: float = 0.0
    _foreign_s: float = NEVER
    _waiting: float = 0.0
    _kv: float = 0.0
    measured: Measured = field(default_factory=Measured)
    _usual_rate: float = PREFILL_RATE
    _ended: int = 0
    _silent: bool = False
    _quiet: bool = False
    _easy: int = 0
    """With fewer calls of nodes nothing is to be judged: it has room and was found well; 0 if not, or not since it changed."""
    _calm: int = 0
    """As `_easy` while it stands in `moved`, else 0: with fewer calls another one that comes or goes changes nothing."""
    _by_rank: Ranks | None = None
    """Of an engine with several ranks, or one that had calls for a rank."""
    _per_s: float = PREFILL_RATE
    """Prompt tokens that all its ranks together work off a second; what full memory, and each open call, costs a request."""
    _kv_s: float = 0.0
    _slot_s: float = DEFAULT.busy_weight_s / CAPACITY

    # ── Calls ────────────────────────────────────────────────────────────────

    def begin(self, tokens: int, rank: int | None = None) -> int:
        """Count one of this node's calls in: the next decision sees it already. `tokens` are those to be computed.

        Return how many tokens are before it there, on its `rank` if it is for one; -1 if it must wait for a slot.
        """
        own, inflight, before = self.own_inflight, self.inflight, self.tokens
        if not own and self.began is not None:
            self.began()
        easy = inflight < self._easy
        ahead = before if easy or inflight + self._foreign_requests < self.capacity else -1
        if rank is not None:
            ranks = self._of_ranks()
            ahead = ranks.ahead(rank, self._pace(ranks.count))
            ranks.begin(rank, tokens)
            self._refigure()
        elif ahead > 0 and self._by_rank is not None:
            # The engine spreads what is for no rank, so no rank has it all before this call.
            ahead //= self._by_rank.count
        self.own_inflight = own + 1
        self.own_tokens += tokens
        self.inflight = inflight = inflight + 1
        self.tokens = before + tokens
        if inflight >= self._calm:
            self._move()
        return ahead

    def prefilled(self, tokens: int, rank: int | None = None) -> None:
        """Note that the first token of a call came: the `tokens` it was counted in with are worked off."""
        self.own_tokens = own = self.own_tokens - tokens
        self.tokens -= tokens
        assert own >= 0
        if rank is not None:
            self._of_ranks().prefilled(rank, tokens)
        if self.inflight >= self._calm:
            self._move()

    def end(
        self,
        tokens: int,
        rank: int | None = None,
        *,
        prefilled: bool = False,
        seconds: float | None = None,
    ) -> None:
        """Count one of this node's calls out; `prefilled` if its tokens were noted as worked off before.

        `seconds` is how long it was open, if it ended well. `rank` is the one it was counted in with.
        """
        self.own_inflight = own = self.own_inflight - 1
        self.inflight = inflight = self.inflight - 1
        assert own >= 0
        if not prefilled:
            self.own_tokens = own = self.own_tokens - tokens
            self.tokens -= tokens
            assert own >= 0
        if rank is not None:
            self._of_ranks().end(rank, 0 if prefilled else tokens)
        if seconds is not None:
            self._ended = ended = self._ended + 1
            share = _ENDED_SHARE if ended * _ENDED_SHARE > 1 else 1 / ended
            self.request_s += share * (seconds - self.request_s)
        if inflight >= self._calm:
            self._move()

    def hear(self, requests: int, tokens: int) -> None:
        """Take the open calls of all other nodes together, as they last told."""
        self.inflight = self.own_inflight + requests
        self.tokens = self.own_tokens + tokens
        self._weigh()

    # ── Ranks ────────────────────────────────────────────────────────────────

    def ranked(self, count: int, *, first: int = 0) -> None:
        """Take how many data-parallel ranks it has by the card of its model; the turn begins at `first`."""
        if self._by_rank is not None:
            self._by_rank.resize(count)
        elif count > 1:
            self._by_rank = Ranks(count, first=first)
        self._refigure()

    def choose_rank(
        self,
        overlaps: Mapping[int, float],
        tokens: int,
        key: str,
        *,
        first: bytes = b"",
        now_s: float | None = None,
    ) -> int | None:
        """Return the rank for a call with `tokens` prompt tokens; None where there is only one.

        `overlaps` is how many of them each rank need not compute. `key` is the routing key that decided for this
        worker, "" if none did: it decides for the rank as well, the same one on all nodes. `first`: see
        `Ranks.choose`. Without `now_s` what ranks work off by themselves is as of the last `tick`.
        """
        ranks = self._by_rank
        if ranks is None or ranks.count == 1:
            return None
        if key:
            return rank_of(key, ranks.count)
        if now_s is not None:
            ranks.work_off(self.prefill_rate, now_s)
        return ranks.choose(overlaps, tokens, self._pace(ranks.count), first)

    def _of_ranks(self) -> Ranks:
        if self._by_rank is None:
            self._by_rank = Ranks()
        return self._by_rank

    def _pace(self, count: int) -> Pace:
        options = self.options
        return Pace(
            self.prefill_rate,
            self.request_s,
            max(1, self.capacity // count),
            options.pressure_weight_s,
            options.busy_weight_s,
            self.tokens - self.own_tokens,
            self.inflight - self.own_inflight,
        )

    # ── What the engine says ─────────────────────────────────────────────────

    def sample(self, load: Load, now_s: float) -> None:
        """Take what one rank of the engine says of itself; sent `load.age_ms` after it was so."""
        self._ranks[load.rank] = (load, now_s - load.age_ms / 1000)
        if self._by_rank is not None:
            self._by_rank.sample(load, now_s)
        self._take_samples(now_s)

    def tick(self, now_s: float, usual_rate: float | None = None) -> None:
        """Let time pass, about once a second: old samples go, what others brought there is worked off.

        `usual_rate` is what its like work off a second by now; None: as before.
        """
        if usual_rate is not None:
            self._usual_rate = usual_rate
            self.measured.age(now_s)
            self._follow_rate()
        ranks = self._by_rank
        if ranks is not None:
            ranks.work_off(self.prefill_rate, now_s)
        if self._ranks:
            oldest_s = now_s - SAMPLE_MAX_AGE_S
            old = [rank for rank, (_, at_s) in self._ranks.items() if at_s < oldest_s]
            for rank in old:
                del self._ranks[rank]
                if ranks is not None:
                    ranks.forget(rank)
            if old:
                self._take_samples(now_s)
                return
        if self._foreign_tokens:
            self._foreign_tokens -= self._per_s * (now_s - self._foreign_s)
            self._foreign_tokens = max(self._foreign_tokens, 0.0)
            self._foreign_s = now_s
            self._refigure()

    def stick(self, *, stuck: bool) -> None:
        """Note that its stream has fallen quiet while it has work, or speaks again."""
        if stuck is not self._quiet:
            self._quiet, self._easy = stuck, 0
            self._refigure()

    def sized(self, running_max: int | None) -> None:
        """Take how many requests it runs at once by the card of its model; None if that does not say."""
        self._ranks_said = running_max
        self._size()
        self._refigure()

    def renewed(self, now_s: float) -> None:
        """Begin anew with another or a restarted engine: old measurements are void."""
        self._ranks.clear()
        if self._by_rank is not None:
            self._by_rank.forget_all()
        self._quiet = False
        self.measured = Measured()
        self.prefill_rate = self._usual_rate = self.options.prefill_rate
        self.request_s, self._ended = REQUEST_S, 0
        self.fresh_until_s = now_s + FRESH_S
        self._take_samples(now_s)

    def settled(self) -> None:
        """Note that its cache holds enough: it is not fresh any more."""
        self.fresh_until_s = NEVER

    def retune(self, options: LoadOptions) -> None:
        """Take new options."""
        self.options, self._easy = options, 0
        if not self.measured.seconds:
            self.prefill_rate = self._usual_rate = options.prefill_rate
        self._refigure()

    # ── What was measured ────────────────────────────────────────────────────

    def rate(self, tokens: int, seconds: float, *, now_s: float) -> None:
        """Take that the first token of a call came `seconds` after it was counted in, and `tokens` were computed
        till then: its own uncached ones, and those `begin` found ahead of it.

        The rate follows from all measured work and from what is usual, see `fleet.prefill_rate`.
        """
        if tokens < RATE_TOKENS_MIN or seconds <= 0:
            return
        self.measured.add(tokens, seconds, known=self.prefill_rate, now_s=now_s)
        self._follow_rate()

    # ── What follows ─────────────────────────────────────────────────────────

    def _follow_rate(self) -> None:
        rate = self.measured.rate(self._usual_rate)
        self.prefill_rate = min(max(rate, PREFILL_RATE_MIN), PREFILL_RATE_MAX)
        self._refigure()

    def _take_samples(self, now_s: float) -> None:
        """Work out what the engine has beyond what the nodes know of, and how full it is."""
        loads = [load for load, _ in self._ranks.values()]
        self.sampled_s = max((at_s for _, at_s in self._ranks.values()), default=NEVER)
        self._size()
        said = Summed(loads, self.prefill_rate)
        self._foreign_requests = max(0, said.requests - self.inflight)
        self._foreign_tokens = float(max(0, said.tokens - self.tokens))
        self._foreign_s = now_s
        self._waiting, self._kv, self._silent = said.waiting, said.kv, said.silent
        self._refigure()

    def _size(self) -> None:
        said = sum([load.running_max or 0 for load, _ in self._ranks.values()]) or self._ranks_said
        self.capacity = max(1, said) if said else CAPACITY
        self._easy = 0

    def _refigure(self) -> None:
        """Make everything that decisions read follow from what the engine said, and from the counts."""
        k, ranks = self._kv, self._by_rank
        self._per_s = self.prefill_rate * max(len(self._ranks), 1, ranks.count if ranks else 1)
        self._kv_s = self.options.pressure_weight_s * k / (1 - k)
        self._slot_s = self.options.busy_weight_s / self.capacity
        self.prefill_s = 1 / self.prefill_rate
        self._weigh()

    def weighed(self) -> "WorkerLoad":
        """Return it, with what decisions read as it is by now."""
        if self._calm:
            self._weigh()
        return self

    def _move(self) -> None:
        """Note that the counts changed: weigh at once where needed, else join `moved`."""
        if self.moved is None or self.inflight >= self._easy:
            self._weigh()
        else:
            if not self._calm:
                self.moved.append(self)
            self._calm = self._easy

    def _weigh(self) -> None:
        """Make everything that decisions read follow from the counts; nothing else changed."""
        open_ = self.inflight + self._foreign_requests
        self.wait_s = wait_s = (self.tokens + self._foreign_tokens) / self._per_s
        self.base_s = wait_s + (self._kv_s + self._slot_s * open_)
        # Calls that come and go change nothing about a worker that has room and is well, and they are the most.
        if self.inflight >= self._easy:
            backlog = open_ - self.capacity
            if backlog >= 0:
                # It waits for a slot besides.
                self.wait_s += (backlog + 1) / self.capacity * self.request_s
                self.base_s = self.wait_s + self.pressure_s
            self._judge(backlog)

    @property
    def pressure_s(self) -> float:
        """Seconds that its full memory and its busy slots are expected to cost a request."""
        return self._kv_s + self._slot_s * (self.inflight + self._foreign_requests)

    def _judge(self, backlog: int) -> None:
        """Say whether it can take more. What turned on turns off only when there is some room again."""
        options, waiting, kv = self.options, self._waiting, self._kv
        full = backlog >= max(1, options.backlog_max * (0.5 if self.full else 1.0))
        # Not either-or: half of a limit of 0 is no less than it, and every look would turn it over.
        overloaded = waiting >= options.waiting_max or kv >= options.kv_max
        if self.overloaded and not overloaded:
            overloaded = waiting > options.waiting_max / 2
            overloaded = overloaded or kv > options.kv_max - min(_KV_RELIEF, options.kv_max / 2)
        overloaded, stuck = overloaded or full, self._silent or self._quiet
        self._easy = 0 if overloaded or stuck else self.capacity - self._foreign_requests
        self._calm = min(self._calm, self._easy)
        if (full, overloaded, stuck) != (self.full, self.overloaded, self.stuck):
            self.full, self.overloaded, self.stuck = full, overloaded, stuck
            if self.changed is not None:
                self.changed()


def weigh(moved: list[WorkerLoad]) -> None:
    """Weigh all that moved since the last time; nothing is left in the list."""
    for one in moved:
        one._calm = 0
        one._weigh()
    moved.clear()
