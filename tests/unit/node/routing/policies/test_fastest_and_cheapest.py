"""Routes that choose by speed or price: the best target, equals kept by conversation, what is not known, exploring."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.journey import Ratings
from smg_node.fleet.load.target_figures import TargetFigures
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.policies.cheapest import Cheapest
from smg_node.routing.policies.fastest import EXPLORED, Fastest
from smg_node.routing.policy import Asked, PolicyOptions, PolicyParts
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import FakeBeginning, load


def parts(dollar_seconds: float = 0.0) -> PolicyParts:
    return PolicyParts(OwnBindings(), PolicyOptions(dollar_seconds=dollar_seconds))


def measured(first_s: float, token_s: float, tokens: int = 101) -> TargetFigures:
    figures = TargetFigures()
    for _ in range(20):
        figures.streamed(first_s, token_s * (tokens - 1), tokens, 0.0)
    return figures


def per_million(
    *prices: tuple[float, ...] | None,
) -> Callable[[], Callable[[str, float, int], float]]:
    """Prices of w00, w01, …: of a million tokens of prompt and answer, and of cached ones if they cost less."""

    def dollars(worker: str, share: float, told: int) -> float:
        price = prices[int(worker[1:])]
        if price is None:
            return float("inf")
        read = price[2] if len(price) > 2 else price[0]
        return (1000 * (1 - share) * price[0] + 1000 * share * read + told * price[1]) / 1e6

    return lambda: dollars


def pool(*figures: TargetFigures | None) -> Pool:
    loads = list[WorkerLoad]()
    for at, one in enumerate(figures):
        loads.append(load(f"w{at:02}"))
        loads[-1].figures = one
    return Pool(loads)


def same(count: int) -> Pool:
    return pool(*(measured(0.5, 0.01) for _ in range(count)))


def asked(at: int = 0, **more: object) -> Asked:
    return Asked("m", conversation=f"{at:032x}", prompt_tokens=1000, **more)  # type: ignore[arg-type]  # its fields


def test_the_soonest_end_wins_and_now_and_then_any_is_tried() -> None:
    some, policy, rng = (
        pool(measured(2.0, 0.01), measured(0.2, 0.01)),
        Fastest(parts()),
        random.Random(1),
    )
    counted = Counter(policy.choose(asked(at), some, rng) for at in range(10_000))
    # Half of those that explore go to the slow one.
    assert abs(counted[0] / 10_000 - EXPLORED / 2) < 0.004


@pytest.mark.parametrize(("answer_max", "best"), [(5, 1), (None, 0), (5000, 0)])
def test_a_late_first_token_is_worth_it_for_a_long_answer(
    answer_max: int | None, best: int
) -> None:
    """The usual answer has 101 tokens here."""
    some, policy = pool(measured(1.0, 0.01), measured(0.2, 0.05)), Fastest(parts())
    one = asked(answer_max=answer_max, rated=Ratings())
    chosen = Counter(policy.choose(one, some, random.Random(seed)) for seed in range(50))
    assert chosen.most_common(1)[0][0] == best
    assert one.rated is not None
    assert one.rated[0].worker == f"w{best:02}"


def test_equals_are_shared_by_conversation_which_stays() -> None:
    some, policy = pool(measured(0.5, 0.01), measured(0.5, 0.01)), Fastest(parts())
    counted = Counter[int]()
    for at in range(2_000):
        chosen = Counter(policy.choose(asked(at), some, random.Random(seed)) for seed in range(3))
        counted[chosen.most_common(1)[0][0]] += 1
    assert abs(counted[0] / 2_000 - 0.5) < 0.05


def test_what_was_never_measured_is_tried_as_often_as_the_others() -> None:
    rng = random.Random(2)
    for other in (None, TargetFigures()):
        some, policy = pool(measured(0.5, 0.01), other), Fastest(parts())
        counted = Counter(policy.choose(asked(at), some, rng) for at in range(2_000))
        assert abs(counted[1] / 2_000 - 0.5) < 0.05
    counted = Counter(
        Fastest(parts()).choose(asked(at), pool(None, None), rng) for at in range(2_000)
    )
    assert abs(counted[0] / 2_000 - 0.5) < 0.05


def test_a_dollar_counts_as_so_many_seconds() -> None:
    quick, cheap = measured(0.2, 0.01), measured(0.6, 0.01)
    some = pool(quick, cheap)
    by_time, by_both = Fastest(parts()), Fastest(parts(dollar_seconds=100))
    one = asked(rated=Ratings(), pricing=per_million((10, 50), (1, 5)))
    assert by_time.choose(one, some, random.Random(1)) == 0
    assert one.rated is not None
    assert {rated.dollars for rated in one.rated} == {None}
    assert by_both.choose(one, some, random.Random(1)) == 1
    rows = {rated.worker: rated for rated in one.rated}
    answer = 2 * 256 / 42 + 40 * 101 / 42
    assert rows["w00"].dollars == pytest.approx((1000 * 10 + answer * 50) / 1e6, rel=0.01)
    seconds = 0.6 + answer * 0.01
    assert rows["w01"].cost_s == pytest.approx(seconds + 100 * (rows["w01"].dollars or 0), rel=0.01)


def test_the_cheapest_of_this_request_wins() -> None:
    """A dear answer with a cheap prompt, and the other way round."""
    some, policy, rng = same(2), Cheapest(parts()), random.Random(1)
    prices = per_million((1, 50), (5, 5))
    assert policy.choose(asked(answer_max=1, pricing=prices), some, rng) == 0
    assert policy.choose(asked(pricing=prices), some, rng) == 1


def test_what_is_cached_is_reckoned_with() -> None:
    some, policy, rng = same(2), Cheapest(parts()), random.Random(1)
    prices = per_million((3, 1, 0.3), (2.5, 1))
    assert policy.choose(asked(ids=(1,) * 500, pricing=prices), some, rng) == 1
    cached = FakeBeginning({"w00": 400.0})
    one = asked(ids=(1,) * 500, pricing=prices, beginning=cached, rated=Ratings(), answer_max=0)
    assert policy.choose(one, some, rng) == 0
    assert one.rated is not None
    assert [rated.dollars for rated in one.rated if rated.worker == "w00"] == [
        pytest.approx((200 * 3 + 800 * 0.3) / 1e6)
    ]


def test_targets_without_a_price_come_last_and_it_is_said_where_none_has_one() -> None:
    some, policy, rng = same(2), Cheapest(parts()), random.Random(1)
    one = asked(rated=Ratings(), pricing=per_million(None, (900, 900)))
    assert policy.choose(one, some, rng) == 1
    assert one.rated is not None
    told = {rated.worker: rated.dollars is None for rated in one.rated}
    assert told == {"w00": True, "w01": False}
    assert one.rated.note == ""
    for prices in (None, per_million(None, None)):
        bare = asked(rated=Ratings(), pricing=prices)
        assert policy.choose(bare, some, rng) in (0, 1)
        assert bare.rated is not None
        assert bare.rated.note == "no target has a known price"


def test_of_those_that_cost_the_same_the_soonest_is_taken() -> None:
    some = pool(measured(3.0, 0.01), measured(0.5, 0.01), measured(0.1, 0.01))
    policy, rng = Cheapest(parts()), random.Random(1)
    prices = per_million((1, 5), (1, 5), (2, 5))
    assert {policy.choose(asked(at, pricing=prices), some, rng) for at in range(50)} == {1}


@given(
    data=st.data(),
    word=st.sampled_from(("weighted", "cheapest", "fastest", "affinity")),
    count=st.integers(1, 12),
)
def test_somebody_is_always_chosen_and_one_seed_chooses_the_same(
    data: st.DataObject, word: str, count: int
) -> None:
    several: list[TargetFigures | None] = []
    for _ in range(count):
        kind = data.draw(st.sampled_from(("none", "empty", "measured")))
        figures = None if kind == "none" else TargetFigures()
        if figures is not None and kind != "empty":
            figures.streamed(data.draw(st.floats(0, 9)), data.draw(st.floats(0, 99)), 9, 0.0)
        several.append(figures)
    price = st.none() | st.tuples(st.floats(0, 99), st.floats(0, 99))
    prices = per_million(*data.draw(st.lists(price, min_size=count, max_size=count)))
    some = pool(*several)
    one = asked(data.draw(st.integers(0, 99)), rated=Ratings(), pricing=prices)
    chosen = [
        Policies(OwnBindings(), PolicyOptions(dollar_seconds=9.0))
        .named(f"choose={word}")
        .choose(one, some, random.Random(7))
        for _ in range(2)
    ]
    assert 0 <= chosen[0] < count
    assert chosen[0] == chosen[1]
