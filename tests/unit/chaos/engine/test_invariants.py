"""Whatever happens in whatever order: slots and blocks are free once nobody uses them."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.engines.simulated_engine import FLAVOURS, Simulation

STEP = st.one_of(
    st.tuples(
        st.just("start"),
        st.integers(0, 5),  # which id
        st.integers(1, 90),  # prompt tokens
        st.integers(1, 60),  # tokens wanted
        st.integers(1, 3),  # choices
        st.booleans(),  # streamed
    ),
    st.tuples(st.just("advance"), st.floats(0, 0.2)),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.just("abort"), st.integers(0, 5)),
    st.tuples(st.just("flush")),
)


def live(simulation: Simulation, steps: list[tuple[Any, ...]]) -> list[Any]:
    calls = []
    for what, *rest in steps:
        if what == "start":
            name, prompt, wanted, choices, stream = rest
            fields: dict[str, Any] = (
                {}
                if simulation.engine.contract.name == "mlx"
                else {"n": choices, "temperature": 1.0}
            )
            calls.append(
                simulation.start(
                    [40 + (at * prompt) % 7 for at in range(prompt)],
                    request_id=f"id-{name}",
                    max_tokens=wanted,
                    stream=stream or None,
                    **fields,
                )
            )
        elif what == "advance":
            simulation.face.advance(rest[0])
        elif what == "cancel" and calls:
            simulation.face.cancel(calls[rest[0] % len(calls)])
        elif what == "abort":
            simulation.engine.abort(f"id-{rest[0]}", simulation.face.now_s)
        elif what == "flush":
            simulation.engine.flush(simulation.face.now_s)
        simulation.engine.check()
    return calls


@pytest.mark.parametrize(("contract", "servicer"), FLAVOURS)
@given(steps=st.lists(STEP, max_size=25), pace=st.sampled_from(["lockstep", "each"]))
@example(
    # Aborted between the common prompt and the choices: they must not queue up any more.
    steps=[
        ("start", 0, 81, 1, 3, False),
        ("abort", 0),
        ("start", 0, 38, 25, 1, False),
        ("advance", 0.125),
    ],
    pace="lockstep",
)
@settings(max_examples=40, deadline=None)
def test_an_engine_comes_to_rest_with_everything_free(
    contract: str, servicer: str, steps: list[tuple[Any, ...]], pace: str
) -> None:
    # Few slots and little memory: requests wait, evict each other's cache, and are preempted.
    simulation = Simulation(
        contract, servicer, slots=4, blocks=16, block_size=8, context=128, pace=pace
    )
    calls = live(simulation, steps)
    simulation.face.advance(120.0)
    simulation.engine.check()
    assert simulation.engine.idle
    assert simulation.engine.table.used == 0
    tally = simulation.engine.tally
    # An aborted stream of SGLang, and the first of two under one id there, stay open.
    open_calls = [call for call in calls if call.end is None]
    assert not open_calls or contract == "sglang"
    if contract != "sglang":
        assert tally.requests == tally.finished + tally.aborted + tally.cancelled + tally.refused


def test_requests_that_need_more_memory_than_there_is_take_turns() -> None:
    simulation = Simulation("vllm", slots=8, blocks=16, block_size=8, context=128)
    asked = {"max_tokens": 60, "ignore_eos": True}
    calls = [simulation.start([40 + at] * 20, request_id=str(at), **asked) for at in range(8)]
    simulation.face.advance(60.0)
    assert simulation.engine.scheduler.preemptions > 0
    counted = [sum(len(one["token_ids"]) for one in simulation.chunks(call)) for call in calls]
    assert counted == [60] * 8


@pytest.mark.parametrize("pace", ["lockstep", "each"])
def test_one_seed_is_one_history(pace: str) -> None:
    def history() -> list[bytes]:
        simulation = Simulation(
            "vllm",
            script="random",
            seed=7,
            jitter=0.5,
            growth=0.1,
            pace=pace,
            faults=["stall:chance=0.3"],
        )
        calls = [simulation.start(request_id=str(at), max_tokens=9) for at in range(12)]
        simulation.face.advance(3.0)
        return [raw for call in calls for raw in call.messages]

    assert history() == history()


def test_time_is_paid_for_prefill_first_token_and_steps() -> None:
    simulation = Simulation("vllm", step_s=0.02, first_token_s=0.05, prefill_tokens_per_s=1000.0)
    call = simulation.start(max_tokens=4)
    moments = []
    while call.end is None:
        due_s = simulation.engine.due_s()
        assert due_s is not None
        simulation.face.advance(due_s - simulation.face.now_s)
        moments.append(round(simulation.face.now_s, 6))
    assert moments == [0.12, 0.14, 0.16, 0.18]
    # The second time two blocks are cached: six tokens of prefill instead of seventy.
    begun_s = simulation.face.now_s
    again = simulation.start(max_tokens=1)
    simulation.run(again)
    assert round(simulation.face.now_s - begun_s, 6) == 0.056


def test_requests_in_lockstep_step_together_and_otherwise_keep_their_own_time() -> None:
    for pace, moments in (("lockstep", 8), ("each", 14)):
        simulation = Simulation("vllm", step_s=0.02, prefill_tokens_per_s=0.0, pace=pace)
        simulation.start(request_id="a", max_tokens=8)
        simulation.face.advance(0.007)
        simulation.start(request_id="b", max_tokens=8)
        seen = set()
        while (due_s := simulation.engine.due_s()) is not None:
            simulation.face.advance(due_s - simulation.face.now_s)
            seen.add(round(simulation.face.now_s, 4))
        assert len(seen) == moments


def test_a_step_grows_with_the_batch() -> None:
    simulation = Simulation(
        "vllm", step_s=0.01, growth=1.0, prefill_tokens_per_s=0.0, first_token_s=0.001
    )
    for name in "abcd":
        simulation.start(request_id=name, max_tokens=2)
    simulation.face.advance(0.0409)
    assert simulation.engine.scheduler.running == 4
    simulation.face.advance(0.0002)
    assert simulation.engine.idle
