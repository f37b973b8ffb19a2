"""How busy an engine is, pushed or asked for: unsaid is unsaid, and nonsense is nothing."""

from typing import Any

import pytest
from smg_grpc_proto.generated import common_pb2, tokenspeed_scheduler_pb2, vllm_engine_pb2

from smg_node.engines.contracts.load_reports import REQUESTS_MAX, pushed_load, scheduler_loads
from smg_node.engines.load import Load
from support.engines.simulated_engine import Simulation


def pushed(**said: Any) -> Load:
    found = pushed_load(common_pb2.EngineLoad(**said), 2)
    assert found is not None
    return found


def asked(**said: Any) -> Load:
    (found,) = scheduler_loads([vllm_engine_pb2.SchedulerLoad(**said)])
    return found


def test_a_pushed_load_without_anything_is_an_idle_engine_that_says_little() -> None:
    assert pushed() == Load(
        rank=2,
        running=0,
        waiting=0,
        running_max=None,
        waiting_uncached_tokens=None,
        kv_usage=0.0,
        tokens_per_s=0.0,
        cache_hit_rate=None,
    )


def test_all_of_a_pushed_load_is_read() -> None:
    found = pushed(
        running_requests=3,
        waiting_requests=2,
        waiting_uncached_tokens=0,
        token_usage=0.9,
        active_token_usage=0.25,
        gen_throughput=120.0,
        max_running_requests=32,
        age_ms=40,
        cache_hit_rate=0.5,
        engine_silence_ms=7,
        engine_reports_steps=True,
        prefill_pending_tokens=900,
    )
    assert found == Load(2, 3, 2, 32, 0, 0.25, 120.0, 0.5, 40, 7, True, 900)


def test_nothing_waiting_is_not_the_same_as_not_saying() -> None:
    assert pushed(waiting_requests=4).waiting_uncached_tokens is None
    assert pushed(waiting_requests=4, waiting_uncached_tokens=0).waiting_uncached_tokens == 0
    assert asked(num_waiting_reqs=4).waiting_uncached_tokens is None
    assert asked(num_waiting_reqs=0).waiting_uncached_tokens == 0


@pytest.mark.parametrize("speed", [float("inf"), float("nan"), -1.0, 0.0])
def test_a_speed_that_was_not_measured_is_none(speed: float) -> None:
    assert pushed(running_requests=1, gen_throughput=speed).tokens_per_s is None
    assert asked(num_running_reqs=1, gen_throughput=speed).tokens_per_s is None


@pytest.mark.parametrize("usage", [-0.1, 1.5, float("nan")])
def test_a_share_of_memory_that_cannot_be_is_none(usage: float) -> None:
    assert pushed(token_usage=usage).kv_usage is None
    assert asked(token_usage=usage).kv_usage is None


def test_more_requests_than_any_engine_runs_make_the_whole_row_worthless() -> None:
    assert pushed_load(common_pb2.EngineLoad(waiting_requests=REQUESTS_MAX + 1), 0) is None
    rows = [
        vllm_engine_pb2.SchedulerLoad(num_running_reqs=-1),
        vllm_engine_pb2.SchedulerLoad(num_waiting_reqs=REQUESTS_MAX + 1),
        vllm_engine_pb2.SchedulerLoad(num_running_reqs=1, dp_rank=1),
    ]
    assert [load.rank for load in scheduler_loads(rows)] == [1]


def test_memory_that_is_in_use_counts_and_not_what_is_only_kept() -> None:
    row = tokenspeed_scheduler_pb2.SchedulerLoad(token_usage=0.9, active_token_usage=0.0)
    assert scheduler_loads([row])[0].kv_usage == 0.0
    row.ClearField("active_token_usage")
    assert scheduler_loads([row])[0].kv_usage == 0.9


@pytest.mark.parametrize("contract", ["vllm", "sglang", "tokenspeed"])
def test_an_engine_that_talks_nonsense_is_not_listened_to(contract: str) -> None:
    simulation = Simulation(contract, loads="absurd")
    call = simulation.call("GetLoads")
    simulation.run(call)
    answer = simulation.words.GetLoadsResponse.FromString(call.messages[0])
    assert scheduler_loads(answer.loads) == ()
