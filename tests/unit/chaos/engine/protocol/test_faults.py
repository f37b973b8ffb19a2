"""Faults on purpose: their grammar, what they do, and that every hit is counted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.engine.protocol.faults import FAULTS, fault_table, parse_fault
from smg_chaos.engine.protocol.rpc_call import Code, How
from support.engines.simulated_engine import PROMPT, Simulation, bundle

ENDLESS: dict[str, Any] = {"max_tokens": 1500, "ignore_eos": True}


def ended(call: Any) -> tuple[Code, How] | None:
    return (call.end.code, call.end.how) if call.end is not None else None


def test_a_fault_is_read_with_its_values_and_defaults() -> None:
    fault = parse_fault("error:status=UNAVAILABLE,after=2,every=10,worker=3")
    assert (fault.name, fault.status(), fault.number("after")) == ("error", Code.UNAVAILABLE, 2)
    assert (fault.number("every"), fault.worker) == (10, 3)
    assert parse_fault("slow-start").seconds() == 3.0
    assert parse_fault(" die:after=5 ").number("code") == 1


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("stal", "did you mean 'stall'?"),
        ("", "known: "),
        ("stall:afte=3", "did you mean 'after'?"),
        ("stall:after", "after needs a value"),
        ("stall:after=x", "after='x' is not a int"),
        ("stall:after=-1", "must not be negative"),
        ("delay:seconds=nan", "must not be negative or infinite"),
        ("error:status=GONE", "no status is called 'GONE'"),
        ("error:every=0", "counts from 1"),
        ("slow-start:every=2", "no value is called 'every'"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_with_the_nearest_that_can(spec: str, says: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_fault(spec)
    assert says in str(refused.value)


@given(st.text(max_size=30) | st.from_regex(r"[a-z-]{2,12}:[a-z]{1,8}=[0-9a-z.]{0,5}"))
def test_any_text_is_a_fault_or_a_value_error(spec: str) -> None:
    try:
        assert parse_fault(spec).name in FAULTS
    except ValueError:
        return


def test_the_table_for_help_names_every_fault_with_its_defaults() -> None:
    table = fault_table()
    for name, kind in FAULTS.items():
        assert f"\n\n{name}" in "\n\n" + table
        parse_fault(name + ":" + ",".join(f"{key}={value}" for key, value in kind.defaults.items()))


# ── Before the first chunk ──────────────────────────────────────────────────


def test_a_request_can_be_refused_with_any_status() -> None:
    for code in Code:
        if code is not Code.OK:
            simulation = Simulation(faults=[f"refuse:status={code.name}"])
            assert ended(simulation.generate()) == (code, How.STATUS)


def test_a_request_can_hang_and_keeps_its_slot_until_its_caller_goes() -> None:
    simulation = Simulation(faults=["hang:request=1"])
    call = simulation.run(simulation.start(), patience_s=1000)
    assert (ended(call), call.messages) == (None, [])
    assert simulation.engine.scheduler.running == 1
    simulation.face.cancel(call)
    assert simulation.engine.idle
    assert ended(simulation.generate()) == (Code.OK, How.STATUS)


def test_a_request_can_start_late() -> None:
    simulation = Simulation(faults=["delay:seconds=2.5"], prefill_tokens_per_s=0.0)
    simulation.generate(max_tokens=1)
    assert simulation.face.now_s == pytest.approx(2.5)


def test_a_request_that_starts_late_may_be_gone_by_then() -> None:
    simulation = Simulation(faults=["delay:seconds=2.5"])
    call = simulation.start()
    simulation.face.cancel(call)
    simulation.face.advance(5.0)
    assert simulation.engine.idle
    assert call.messages == []


# ── In the stream ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spec", "end"),
    [
        ("stall:after=3", None),
        ("error:after=3,status=ABORTED", (Code.ABORTED, How.STATUS)),
        ("reset:after=3", (Code.INTERNAL, How.RESET)),
        ("close:after=3", (Code.UNAVAILABLE, How.CLOSE)),
    ],
)
@pytest.mark.parametrize("contract", ["mlx", "vllm", "sglang"])
def test_a_stream_breaks_off_after_so_many_tokens(
    contract: str, spec: str, end: tuple[Code, How] | None
) -> None:
    simulation = Simulation(contract, faults=[spec])
    call = simulation.run(simulation.start(**ENDLESS), patience_s=100)
    assert len(simulation.chunks(call)) == 3
    assert not simulation.completes(call)
    assert ended(call) == end
    assert simulation.engine.scheduler.running == (1 if end is None else 0)
    assert sum(simulation.engine.tally.faults.values()) == 1


def test_a_fault_after_the_end_hits_nobody() -> None:
    simulation = Simulation(faults=["error:after=5"])
    assert ended(simulation.generate(max_tokens=5)) == (Code.OK, How.STATUS)
    assert simulation.engine.tally.faults == {}


def test_an_answer_that_is_not_streamed_breaks_off_without_a_message() -> None:
    simulation = Simulation(faults=["error:after=5"])
    call = simulation.generate(stream=None)
    assert (call.messages, ended(call)) == ([], (Code.INTERNAL, How.STATUS))


def test_a_stream_can_end_well_without_a_complete_or_with_two() -> None:
    for spec, completes in (("no-complete", 0), ("double-complete", 2)):
        simulation = Simulation(faults=[spec])
        call = simulation.generate(max_tokens=3)
        assert ended(call) == (Code.OK, How.STATUS)
        assert len(simulation.completes(call)) == completes


def test_counts_can_be_wrong_and_ids_beyond_the_vocabulary() -> None:
    simulation = Simulation("mlx", faults=["wrong-counts:by=7"])
    call = simulation.generate(max_tokens=2)
    assert [one["completion_tokens"] for one in simulation.chunks(call)] == [8, 9]
    assert simulation.completes(call)[0]["completion_tokens"] == 9
    simulation = Simulation(faults=["bad-ids:after=1"])
    ids = [one["token_ids"][0] for one in simulation.chunks(simulation.generate(max_tokens=3))]
    assert [token >= 4160 for token in ids] == [False, True, True]


# ── Who is hit ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("selector", "hit"),
    [
        ("", [1, 2, 3, 4, 5, 6]),
        (",request=2", [2]),
        (",every=3", [3, 6]),
        (",times=2", [1, 2]),
        (",every=2,times=2", [2, 4]),
        (",chance=0", []),
        (",chance=1", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_fault_hits_who_it_was_meant_for(selector: str, hit: list[int]) -> None:
    simulation = Simulation(faults=["refuse:status=UNAVAILABLE" + selector])
    met = [ended(simulation.generate(max_tokens=1)) for _ in range(6)]
    assert [at + 1 for at, end in enumerate(met) if end != (Code.OK, How.STATUS)] == hit
    tally = simulation.engine.tally
    assert tally.faults == ({"refuse": len(hit)} if hit else {})
    assert (tally.cut, tally.finished) == (len(hit), 6 - len(hit))


# ── The process ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spec", "messages"),
    [("die:after=4,code=9", 4), ("die:request=2,code=9", 0), ("die:id=77,code=9", 0)],
)
def test_an_engine_can_die_of_a_request(spec: str, messages: int) -> None:
    simulation = Simulation(faults=[spec])
    first = simulation.start(**ENDLESS, request_id="first")
    if "after" not in spec:
        simulation.face.advance(0.05)
        first = simulation.start([*PROMPT, 77], **ENDLESS, request_id="second")
    simulation.face.advance(1.0)
    assert len(first.messages) == messages
    assert ended(first) == (Code.UNAVAILABLE, How.CLOSE)
    assert simulation.deaths == [9]
    simulation.engine.check()
    assert ended(simulation.generate()) == (Code.UNAVAILABLE, How.CLOSE)
    assert ended(simulation.call("GetModelInfo")) == (Code.UNAVAILABLE, How.CLOSE)


def test_an_engine_can_die_at_a_time() -> None:
    simulation = Simulation(faults=["die:at=2"])
    call = simulation.start(**ENDLESS)
    simulation.face.advance(1.99)
    assert ended(call) is None
    simulation.face.advance(0.02)
    assert ended(call) == (Code.UNAVAILABLE, How.CLOSE)
    assert simulation.engine.due_s() is None or simulation.deaths == [1]


def serving(simulation: Simulation) -> bool:
    call = simulation.face.start("/grpc.health.v1.Health/Check", b"")
    return call.messages == [b"\x08\x01"]


def test_an_engine_can_start_slowly() -> None:
    simulation = Simulation(faults=["slow-start:seconds=3"])
    assert not serving(simulation)
    assert ended(simulation.generate()) == (Code.UNAVAILABLE, How.STATUS)
    simulation.face.advance(3.0)
    assert serving(simulation)
    assert ended(simulation.generate()) == (Code.OK, How.STATUS)


def test_an_engine_can_flap() -> None:
    simulation = Simulation(faults=["flap:at=1,seconds=2"])
    seen = []
    for _ in range(5):
        seen.append(serving(simulation))
        simulation.face.advance(0.9)
    assert seen == [True, True, False, False, True]


def test_an_engine_can_come_back_as_another_model() -> None:
    simulation = Simulation(faults=["restart:at=1,seconds=2,model=other,vocabulary=9000"])
    simulation.generate(max_tokens=1)
    running = simulation.start(**ENDLESS)
    simulation.face.advance(1.5)
    assert ended(running) == (Code.UNAVAILABLE, How.CLOSE)
    assert ended(simulation.call("HealthCheck")) == (Code.UNAVAILABLE, How.CLOSE)
    simulation.face.advance(2.0)
    told = simulation.ask("GetModelInfo")
    assert (told.served_model_name, told.vocab_size) == ("other", 9000)
    (complete,) = simulation.completes(simulation.generate(max_tokens=1))
    assert complete.get("cached_tokens", 0) == 0
    simulation.engine.check()


def test_every_request_is_accounted_for_among_faults() -> None:
    simulation = Simulation(
        faults=["error:after=2,every=3", "refuse:every=5", "no-complete:every=7"]
    )
    for _ in range(60):
        simulation.generate(max_tokens=4)
    tally = simulation.engine.tally
    assert tally.requests == 60 == tally.finished + tally.cut
    assert tally.cut == tally.faults["error"] + tally.faults["refuse"]
    assert tally.faults["no-complete"] > 0
    assert bundle().files  # the bundle is shared and untouched
