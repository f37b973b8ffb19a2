"""A worker that nobody measured, or that was slow once, is not passed over for ever while all are idle."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from smg_node.fleet.load.prefill_rate import UsualRates
from smg_node.fleet.load.worker_load import PREFILL_RATE, WorkerLoad
from smg_node.routing.policy import Asked
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import FakeBeginning

TOKENS = 3000
TOOK_S = 0.115
"""What such a prompt takes on every one of them: 26,000 tokens a second."""


def shares(measured: Sequence[Sequence[float]], prompts: int = 200) -> Counter[str]:
    """Place cold prompts a second apart, each ended by then, on workers whose first tokens came so late before."""
    loads = [WorkerLoad(f"w{at:02}") for at in range(len(measured))]
    rates, policy = UsualRates(), Policies(OwnBindings()).named("cache_aware")
    for one, times in zip(loads, measured, strict=True):
        for seconds in times:
            one.rate(TOKENS, seconds, now_s=0.0)
    pool, rng, got = Pool(loads), random.Random(1), Counter[str]()
    for at in range(prompts):
        now_s = 1.0 + at
        rates.take([("m", one.measured) for one in loads], first=PREFILL_RATE)
        for one in loads:
            one.tick(now_s, rates.of("m", first=PREFILL_RATE))
        beginning = FakeBeginning(block=random.Random(at).randbytes(8))
        asked = Asked("m", ids=range(TOKENS), now_s=now_s, beginning=beginning)
        chosen = loads[policy.choose(asked, pool, rng)]
        got[chosen.worker] += 1
        chosen.begin(TOKENS)
        chosen.rate(TOKENS, TOOK_S, now_s=now_s)
        chosen.prefilled(TOKENS)
        chosen.end(TOKENS, prefilled=True, seconds=0.2)
    return got


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param([[], []], id="nobody"),
        pytest.param([[TOOK_S] * 3, []], id="one"),
        pytest.param([[TOOK_S] * 100, []], id="one for long"),
        pytest.param([[TOOK_S], [1.15 * TOOK_S]], id="one a little slower"),
    ],
)
def test_equal_workers_get_equal_shares_of_cold_prompts(
    measured: Sequence[Sequence[float]],
) -> None:
    got = shares(measured)
    assert min(got["w00"], got["w01"]) >= 75, got


def test_a_worker_that_was_slow_once_is_given_another_chance() -> None:
    got = shares([[TOOK_S] * 3, [0.6]])
    assert min(got["w00"], got["w01"]) >= 40, got
