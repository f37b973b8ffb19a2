"""Rights between ledgers and treasuries: whatever happens, everything adds up and no limit is exceeded."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import Limit
from smg_mesh.escrow.owning.max_min_fairness import split_fairly
from support.rights.rights_world import World, rate

SECOND = "model=m#requests/1000"
MINUTE = "tenant=t#tokens/60000"
TEN = "#requests/10000"

name = st.sampled_from("abc")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.integers(50, 1_500), st.sampled_from([20, 200, 2_000])),
        st.tuples(st.just("run"), st.integers(50, 700), st.just(200)),
        st.tuples(st.just("skew"), st.integers(50, 1_500), name),
        st.tuples(st.just("own"), st.sampled_from(["a", "b", "c", ""])),
        st.tuples(st.just("restart"), name),
        st.tuples(st.just("pause"), name, st.booleans()),
        st.tuples(st.just("clock"), name, st.integers(-100, 100)),
        st.tuples(st.just("jump"), name, st.sampled_from([-30_000, -3_000, 2_500, 40_000])),
        st.tuples(st.just("weather"), st.sampled_from([0.0, 0.1, 0.3]), st.integers(0, 60)),
        st.tuples(st.just("cut"), name, st.booleans()),
        st.tuples(st.just("idle"), st.integers(1_000, 9_000)),
    ),
    max_size=14,
)


def limits(mode: str) -> list[Limit]:
    return [
        Limit(SECOND, "requests", 200, 1_000, mode=mode),  # type: ignore[arg-type]  # the mode is drawn by the test
        Limit(TEN, "requests", 900, 10_000, mode=mode),  # type: ignore[arg-type]  # the mode is drawn by the test
        Limit(MINUTE, "tokens", 3_001, 60_000, mode=mode),  # type: ignore[arg-type]  # the mode is drawn by the test
    ]


def do(world: World, what: str, *rest: Any) -> None:
    world.check()
    if what == "run":
        each = rest[1] / 3
        world.run(rest[0], rate(a=each, b=each, c=each), audits=True)
    elif what == "skew":
        world.run(rest[0], rate(**{rest[1]: 500.0}), audits=True)
    elif what == "own":
        world.hand_over(rest[0])
    elif what == "restart":
        world.restart(rest[0])
    elif what == "pause":
        world.nodes[rest[0]].paused = rest[1]
    elif what == "cut":
        world.cut(rest[0], off=rest[1])
    elif what == "clock":
        world.nodes[rest[0]].offset_ms = rest[1]
    elif what == "jump":
        world.nodes[rest[0]].offset_ms += rest[1]
    elif what == "weather":
        world.loss, world.repeat, world.jitter_ms = rest[0], rest[0], rest[1]
    else:
        world.run(rest[0], audits=True)


@settings(max_examples=40, deadline=None)
@given(steps, st.integers(0, 1 << 32), st.integers(0, 59_999))
def test_nothing_is_ever_spent_that_was_not_there(
    steps: list[tuple[Any, ...]], seed: int, begins_ms: int
) -> None:
    world = World(*limits("strict"), names="abc", seed=seed)
    world.run(1)
    world.now_ms += begins_ms
    for one in steps:
        do(world, *one)
    world.check()
    amounts = {limit.key: limit.amount for limit in limits("strict")}
    assert all(got <= amounts[key] for (key, _), got in world.got.items())


@given(st.integers(0, 1_000), st.lists(st.integers(0, 300), max_size=12))
def test_a_split_is_max_min_fair(amount: int, needs: list[int]) -> None:
    gets = split_fairly(amount, needs)
    assert sum(gets) == min(amount, sum(needs))
    assert all(0 <= got <= need for got, need in zip(gets, needs, strict=True))
    hungry = [got for got, need in zip(gets, needs, strict=True) if got < need]
    if hungry:
        assert max(gets) <= min(hungry) + 1
