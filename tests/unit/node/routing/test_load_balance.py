"""N nodes that tell each other what they have open balance nearly like one that sees everything."""

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.policy import Asked
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool

WORKERS = 16
OPEN_EACH = 10
ANSWER_S = 10.0
"""An answer takes so long on average, by an exponential law."""
RUN_S = 150.0
TELL_S = 0.25
"""A node says what it has open this often."""
TRAVEL_S = 0.15
"""And is heard that much later."""


@dataclass
class Node:
    """One placer: its own numbers at once, those of the others late."""

    name: str
    loads: list[WorkerLoad] = field(
        default_factory=lambda: [WorkerLoad(f"w{at:02}") for at in range(WORKERS)]
    )

    def __post_init__(self) -> None:
        self.pool = Pool(self.loads)
        self.policy = Policies(OwnBindings()).named("power_of_two")
        self.rng = random.Random(self.name)


def peak_to_mean(nodes: int, *, sharing: bool, seed: int) -> float:
    """Run requests at `nodes` nodes; return the mean of (busiest worker / mean worker) over time."""
    rng = random.Random(seed)
    placers = [Node(f"{seed}-{at}") for at in range(nodes)]
    truth = [0] * WORKERS
    ratios: list[float] = []
    events: list[tuple[float, int, str, tuple[int, ...]]] = [(0.0, 0, "arrive", ())]
    for at in range(nodes if sharing else 0):
        heapq.heappush(events, (TELL_S * (at + 1) / nodes, at + 1, "tell", (at,)))
    said: dict[int, Sequence[int]] = {}
    count = 1000
    while events:
        now_s, _, what, detail = heapq.heappop(events)
        if now_s > RUN_S:
            break
        count += 1
        match what:
            case "arrive":
                node = rng.randrange(nodes)
                placer = placers[node]
                worker = placer.policy.choose(Asked("m"), placer.pool, placer.rng)
                placer.loads[worker].begin(100)
                placer.loads[worker].prefilled(100)
                truth[worker] += 1
                takes_s = rng.expovariate(1 / ANSWER_S)
                heapq.heappush(events, (now_s + takes_s, count, "end", (node, worker)))
                again_s = now_s + rng.expovariate(WORKERS * OPEN_EACH / ANSWER_S)
                heapq.heappush(events, (again_s, -count, "arrive", ()))
                if now_s > 3 * ANSWER_S:
                    ratios.append(max(truth) / (sum(truth) / WORKERS))
            case "end":
                node, worker = detail
                placers[node].loads[worker].end(100, prefilled=True)
                truth[worker] -= 1
            case "tell":
                (node,) = detail
                open_there = tuple(one.own_inflight for one in placers[node].loads)
                heapq.heappush(events, (now_s + TRAVEL_S, count, "hear", (node, *open_there)))
                heapq.heappush(events, (now_s + TELL_S, -count, "tell", detail))
            case "hear":
                said[detail[0]] = detail[1:]
                for at, placer in enumerate(placers):
                    for worker in range(WORKERS):
                        others = sum(open_[worker] for who, open_ in said.items() if who != at)
                        placer.loads[worker].hear(others, 0)
            case _:
                raise AssertionError(what)
    return sum(ratios) / len(ratios)


@pytest.mark.parametrize("nodes", [3, 8])
def test_sharing_loads_balances_nearly_like_one_node(nodes: int) -> None:
    seeds = range(3)
    one = sum(peak_to_mean(1, sharing=False, seed=seed) for seed in seeds) / len(seeds)
    shared = sum(peak_to_mean(nodes, sharing=True, seed=seed) for seed in seeds) / len(seeds)
    alone = sum(peak_to_mean(nodes, sharing=False, seed=seed) for seed in seeds) / len(seeds)
    assert shared - 1 <= 1.35 * (one - 1)
    assert alone - 1 >= 1.35 * (shared - 1)
