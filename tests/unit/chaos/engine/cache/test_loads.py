"""GetLoads, and engines that lie about their load."""

from typing import Any

import pytest

from support.engines.simulated_engine import PROMPT, Simulation

POLLED = ["vllm", "sglang", "tokenspeed"]


def load_of(simulation: Simulation, *include: str) -> Any:
    answer = simulation.ask("GetLoads", simulation.words.GetLoadsRequest(include=include))
    assert answer.dp_rank_count == 1
    return answer.loads[0]


@pytest.mark.parametrize("contract", POLLED)
def test_what_runs_and_waits_is_counted(contract: str) -> None:
    simulation = Simulation(contract, slots=2)
    for name in "abc":
        simulation.start(request_id=name, max_tokens=500, ignore_eos=True)
    load = load_of(simulation)
    assert (load.num_running_reqs, load.num_waiting_reqs, load.num_total_reqs) == (2, 1, 3)
    assert load.max_running_requests == 2
    assert 0 < load.token_usage < 1
    queued = load.num_waiting_uncached_tokens
    assert queued == (0 if contract == "tokenspeed" else len(PROMPT))


@pytest.mark.parametrize("contract", POLLED)
def test_an_idle_engine_has_zeros_except_maxima(contract: str) -> None:
    load = load_of(Simulation(contract))
    told = {field.name for field, _ in load.ListFields()}
    assert told - {"memory", "queues", "disaggregation"} - {"active_token_usage"} == {
        "max_total_num_tokens",
        "max_running_requests",
    }


def test_retained_cache_counts_as_usage_in_tokenspeed_only() -> None:
    usage = {}
    for contract in POLLED:
        simulation = Simulation(contract)
        simulation.generate(max_tokens=2)
        simulation.face.advance(5.0)
        usage[contract] = load_of(simulation).token_usage > 0
    assert usage == {"vllm": False, "sglang": False, "tokenspeed": True}
    simulation = Simulation("tokenspeed")
    simulation.generate(max_tokens=2)
    assert load_of(simulation).active_token_usage == 0


def test_vllm_measures_throughput_and_the_hit_rate() -> None:
    simulation = Simulation("vllm", step_s=0.01)
    simulation.generate(max_tokens=1)
    simulation.generate(max_tokens=100, ignore_eos=True)
    load = load_of(simulation)
    assert load.gen_throughput == pytest.approx(101 / 2.0)
    assert load.cache_hit_rate == pytest.approx(64 / 140)
    simulation.face.advance(3.0)
    assert load_of(simulation).gen_throughput == 0


def test_sglang_tells_its_sections_when_asked_for_all() -> None:
    simulation = Simulation("sglang")
    assert load_of(simulation).HasField("memory")
    assert load_of(simulation, "all").HasField("queues")
    assert not load_of(simulation, "core").HasField("memory")


@pytest.mark.parametrize("mode", ["stale", "frozen"])
def test_a_load_can_stand_still(mode: str) -> None:
    simulation = Simulation("vllm", loads=mode)
    assert load_of(simulation).num_running_reqs == 0
    simulation.start(max_tokens=500, ignore_eos=True)
    simulation.face.advance(1.0)
    assert load_of(simulation).num_running_reqs == 0
    age_ms = simulation.engine.gauge.load(0, simulation.face.now_s).age_ms
    assert age_ms == (1000 if mode == "stale" else 0)


def test_a_load_can_be_absurd() -> None:
    load = load_of(Simulation("vllm", loads="absurd"))
    assert load.num_running_reqs == 2**31 - 1
    assert load.cache_hit_rate < 0
    assert load.gen_throughput == float("inf")
