"""Ranks of an engine: counts add up in any order, and a choice is a cheapest rank of a formula worked out anew."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.load import Load
from smg_node.fleet.load.rank_load import TIE_S, TIE_SHARE, Pace, Ranks, rank_of
from smg_node.fleet.load.worker_load import WorkerLoad
from support.fleet.worker_loads import IDLE
from support.tools.example_counts import example_count

# ── Counts ───────────────────────────────────────────────────────────────────


class Open:
    """A worker's load, and which calls it has, kept beside it."""

    def __init__(self) -> None:
        self.load = WorkerLoad("w")
        self.count = 1
        self.now_s = 0.0
        self.waiting: list[tuple[int | None, int]] = []
        self.answering: list[tuple[int | None, int]] = []

    def begin(self, number: int, rank: int) -> None:
        had = {rank: float(number)}
        chosen = self.load.choose_rank(had, number, "", now_s=self.now_s)
        assert chosen is None if self.count == 1 else chosen in range(self.count)
        self._begin(number, chosen)

    def begin_anywhere(self, number: int, rank: int) -> None:
        self._begin(number, None)

    def _begin(self, tokens: int, rank: int | None) -> None:
        assert self.load.begin(tokens, rank) >= -1
        self.waiting.append((rank, tokens))

    def speak(self, number: int, rank: int) -> None:
        if self.waiting:
            call = self.waiting.pop(number % len(self.waiting))
            self.load.prefilled(call[1], call[0])
            self.answering.append(call)

    def end(self, number: int, rank: int) -> None:
        if self.answering:
            at, tokens = self.answering.pop(number % len(self.answering))
            self.load.end(tokens, prefilled=True, rank=at, seconds=1.0)

    def give_up(self, number: int, rank: int) -> None:
        if self.waiting:
            at, tokens = self.waiting.pop(number % len(self.waiting))
            self.load.end(tokens, rank=at)

    def hear(self, number: int, rank: int) -> None:
        self.load.hear(rank, number)

    def say(self, number: int, rank: int) -> None:
        said = replace(IDLE, rank=rank, waiting=rank, running=number % 9)
        self.load.sample(said, self.now_s)

    def change(self, number: int, rank: int) -> None:
        self.count = max(1, rank)
        self.load.ranked(self.count)

    def renew(self, number: int, rank: int) -> None:
        self.load.renewed(self.now_s)

    def tick(self, number: int, rank: int) -> None:
        self.load.tick(self.now_s)


STEPS = (
    Open.begin,
    Open.begin,
    Open.begin_anywhere,
    Open.speak,
    Open.end,
    Open.give_up,
    Open.hear,
    Open.say,
    Open.change,
    Open.renew,
    Open.tick,
)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 5000), st.integers(0, 7)), max_size=60
    )
)
def test_every_rank_has_what_is_open_there_whatever_happens_in_whatever_order(
    steps: list[tuple[Callable[[Open, int, int], None], int, int]],
) -> None:
    """Counts that were wrong would fall below nothing, which is asserted where they are kept."""
    it = Open()
    for step, number, rank in steps:
        it.now_s += number / 1000
        step(it, number, rank)
        assert it.load.own_inflight == len(it.waiting) + len(it.answering)
        assert it.load.own_tokens == sum(tokens for _, tokens in it.waiting)
    while it.answering:
        it.end(0, 0)
    while it.waiting:
        it.give_up(0, 0)
    assert (it.load.own_inflight, it.load.own_tokens) == (0, 0)


@dataclass
class NaiveRank:
    """What one rank has."""

    tokens: int = 0
    requests: int = 0
    kv: float = 0.0
    others: tuple[int, float] = (0, 0.0)
    """Requests and tokens of others."""

    def cost(self, pace: Pace) -> float:
        open_ = self.requests + self.others[0]
        queue = max(0, open_ - pace.slots + 1) / pace.slots * pace.request_s
        full = pace.pressure_weight_s * self.kv / (1 - self.kv)
        busy = pace.busy_weight_s * open_ / pace.slots
        return (self.tokens + self.others[1]) / pace.prefill_rate + queue + full + busy


def poured(costs: list[float], seconds: float) -> list[float]:
    """Return the costs with so much poured onto them, found by halving."""
    low, high = min(costs), max(costs) + seconds
    for _ in range(100):
        level = (low + high) / 2
        if sum(max(0.0, level - cost) for cost in costs) < seconds:
            low = level
        else:
            high = level
    return [max(cost, low) for cost in costs]


RANKS = st.lists(
    st.builds(
        NaiveRank,
        st.integers(0, 20_000),
        st.integers(0, 12),
        st.sampled_from([0.0, 0.3, 0.9]),
        st.tuples(st.integers(0, 12), st.integers(0, 20_000).map(float)),
    ),
    min_size=2,
    max_size=9,
)


def ranks_of(naive: list[NaiveRank]) -> Ranks:
    made = Ranks(len(naive))
    for at, one in enumerate(naive):
        for number in range(one.requests):
            made.begin(at, one.tokens if number == 0 else 0)
        if not one.requests:
            one.tokens = 0
        if one.requests + one.others[0] == 0:
            one.kv = 0.0
        requests, tokens = one.others
        said = replace(
            IDLE,
            rank=at,
            running=one.requests + requests,
            running_max=None,
            kv_usage=one.kv,
            waiting_uncached_tokens=one.tokens + int(tokens),
        )
        made.sample(said, 1.0)
    return made


@settings(max_examples=example_count(300), deadline=None)
@given(
    RANKS,
    st.dictionaries(st.integers(0, 8), st.floats(0, 5000), max_size=4),
    st.integers(0, 5000),
    st.integers(0, 400_000),
    st.integers(0, 120),
)
def test_the_chosen_rank_costs_no_more_than_a_tie_above_the_cheapest(
    naive: list[NaiveRank],
    overlaps: dict[int, float],
    tokens: int,
    peer_tokens: int,
    peer_requests: int,
) -> None:
    pace = Pace(8000.0, 10.0, 8, 0.15, 1.0, peer_tokens, peer_requests)
    made = ranks_of(naive)
    chosen = made.choose(overlaps, tokens, pace)
    placed_tokens = sum(one.others[1] for one in naive)
    placed_requests = sum(one.others[0] for one in naive)
    unplaced_s = max(0.0, peer_tokens - placed_tokens) / 8000.0
    unplaced_s += max(0, peer_requests - placed_requests) / 8
    waits = poured([one.cost(pace) for one in naive], unplaced_s)
    costs = [
        wait + (tokens - min(overlaps.get(at, 0.0), tokens)) / 8000.0
        for at, wait in enumerate(waits)
    ]
    slack = max(TIE_S, TIE_SHARE * max(waits))
    assert costs[chosen] <= min(costs) + slack + 1e-6
    assert made.choose(overlaps, tokens, pace) == chosen


@settings(deadline=None)
@given(RANKS, st.text(max_size=20), st.integers(0, 5000))
def test_nodes_that_see_different_things_agree_on_the_rank_of_a_key(
    naive: list[NaiveRank], key: str, tokens: int
) -> None:
    nodes = [WorkerLoad("w") for _ in range(3)]
    for at, node in enumerate(nodes):
        node.ranked(len(naive), first=at)
        for rank, one in enumerate(naive[at:]):
            node.begin(one.tokens, rank)
    chosen = {node.choose_rank({0: 100.0}, tokens, key or "k") for node in nodes}
    assert chosen == {rank_of(key or "k", len(naive))}


# ── Balance ──────────────────────────────────────────────────────────────────

Rule = Literal["ours", "random", "all-seeing"]
EVERY_S = {"hear": 0.25, "sample": 1.0, "tick": 1.0}


@dataclass
class Engine:
    """Ranks that work prompts off one after the other, and nodes that send them there."""

    nodes: int
    ranks: int
    rule: Rule
    rng: random.Random
    now_s: float = 0.0
    delays: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loads = [WorkerLoad("w") for _ in range(self.nodes)]
        for one in self.loads:
            one.ranked(self.ranks, first=self.rng.getrandbits(16))
            one.sized(64 * self.ranks)
        self.free_s = [0.0] * self.ranks
        self.work = [0] * self.ranks
        self.queued: list[list[tuple[float, int]]] = [[] for _ in range(self.ranks)]
        self.agenda: list[tuple[float, int, str, WorkerLoad, int, int]] = []
        self.steps = 0

    def later(
        self, at_s: float, what: str, node: WorkerLoad, tokens: int = 0, rank: int = 0
    ) -> None:
        self.steps += 1
        heapq.heappush(self.agenda, (at_s, self.steps, what, node, tokens, rank))

    def run(self, seconds: float, busy: float) -> None:
        """Send prompts of 1,000 tokens on average, so that the ranks are busy for that share of the time."""
        apart_s = 1000 / 8000 / self.ranks / busy
        for what in EVERY_S:
            self.later(0.0, what, self.loads[0])
        self.later(0.0, "request", self.loads[0])
        while self.agenda:
            self.now_s, _, what, node, tokens, rank = heapq.heappop(self.agenda)
            if self.now_s > seconds:
                return
            if what == "request":
                self.send()
                self.later(self.now_s + self.rng.expovariate(1 / apart_s), what, node)
            elif what == "first":
                node.prefilled(tokens, rank)
                self.later(self.now_s + self.rng.expovariate(0.5), "end", node, tokens, rank)
            elif what == "end":
                node.end(tokens, prefilled=True, rank=rank, seconds=2.0)
            else:
                self.tell(what)
                self.later(self.now_s + EVERY_S[what], what, node)

    def send(self) -> None:
        node = self.loads[int(self.rng.random() * self.nodes)]
        tokens = 1 + int(self.rng.expovariate(1 / 1000))
        rank = self.choose(node, tokens)
        node.begin(tokens, rank)
        begins_s = max(self.free_s[rank], self.now_s)
        self.delays.append(begins_s - self.now_s)
        self.free_s[rank] = begins_s + tokens / 8000
        self.work[rank] += tokens
        self.queued[rank].append((self.free_s[rank], tokens))
        self.later(self.free_s[rank], "first", node, tokens, rank)

    def choose(self, node: WorkerLoad, tokens: int) -> int:
        if self.rule == "random":
            return int(self.rng.random() * self.ranks)
        if self.rule == "all-seeing":
            return min(range(self.ranks), key=lambda rank: max(self.free_s[rank], self.now_s))
        chosen = node.choose_rank({}, tokens, "", now_s=self.now_s)
        assert chosen is not None
        return chosen

    def tell(self, what: str) -> None:
        for one in self.loads:
            if what == "tick":
                one.tick(self.now_s)
            elif what == "hear":
                peers = [peer for peer in self.loads if peer is not one]
                one.hear(sum(p.own_inflight for p in peers), sum(p.own_tokens for p in peers))
            else:
                for rank in range(self.ranks):
                    one.sample(self.said(rank), self.now_s)

    def said(self, rank: int) -> Load:
        queued = self.queued[rank] = [one for one in self.queued[rank] if one[0] > self.now_s]
        tokens = sum(tokens for _, tokens in queued)
        return replace(IDLE, rank=rank, waiting=len(queued), waiting_uncached_tokens=tokens)


def mean_delay_s(nodes: int, rule: Rule) -> float:
    """Return how long a prompt waits on average until it is worked on, over some seeds."""
    delays: list[float] = []
    for seed in range(3):
        engine = Engine(nodes, 8, rule, random.Random(seed))
        engine.run(30.0, 0.7)
        if rule == "ours":
            assert max(engine.work) <= 1.2 * sum(engine.work) / 8
        delays += engine.delays
    return sum(delays) / len(delays)


def test_one_node_keeps_ranks_about_as_short_of_work_as_one_that_sees_all() -> None:
    assert mean_delay_s(1, "ours") <= 2 * mean_delay_s(1, "all-seeing")
    assert mean_delay_s(1, "ours") <= mean_delay_s(1, "random") / 5


@pytest.mark.parametrize("nodes", [2, 5])
def test_many_nodes_that_see_each_other_late_wait_much_less_than_by_chance(nodes: int) -> None:
    assert mean_delay_s(nodes, "ours") <= 0.65 * mean_delay_s(nodes, "random")
