"""Data-parallel ranks: slots, blocks, events and loads of their own behind one address."""

import json
from typing import Any

import pytest
from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.protocol.rpc_call import Code
from smg_chaos.engine.servers.in_memory import MemoryCall
from support.engines.simulated_engine import PROMPT, Simulation
from support.engines.simulated_pair import SimulatedPair, ids_of

RANKED = ["vllm", "sglang", "tokenspeed"]


def subscribe(simulation: Simulation, start: int = 0) -> MemoryCall:
    request = common_pb2.SubscribeKvEventsRequest(start_sequence_number=start)
    return simulation.call("SubscribeKvEvents", request.SerializeToString())


def batches(call: MemoryCall) -> list[Any]:
    read = [common_pb2.KvEventBatch.FromString(raw) for raw in call.messages]
    return [batch for batch in read if batch.events]


def cached(simulation: Simulation, **fields: Any) -> int:
    complete = simulation.completes(simulation.generate(max_tokens=2, **fields))[0]
    count = complete.get("cached_tokens", 0)
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("contract", RANKED)
def test_each_rank_has_a_cache_of_its_own(contract: str) -> None:
    simulation = Simulation(contract, ranks=3)
    assert cached(simulation, rank=1) == 0
    assert cached(simulation, rank=2) == 0
    assert cached(simulation, rank=1) == 64
    assert cached(simulation, rank=0) == 0


@pytest.mark.parametrize("contract", RANKED)
def test_whoever_names_no_rank_gets_the_next_one(contract: str) -> None:
    simulation = Simulation(contract, ranks=3)
    calls = [simulation.start(request_id=f"r{at}", max_tokens=500) for at in range(6)]
    assert [rank.scheduler.running for rank in simulation.engine.ranks] == [2, 2, 2]
    assert {call.call.home.number for call in calls} == {0, 1, 2}  # type: ignore[attr-defined]  # a Generation


@pytest.mark.parametrize("contract", RANKED)
@pytest.mark.parametrize("rank", [3, -1, 1000])
def test_a_rank_that_is_not_there_is_refused(contract: str, rank: int) -> None:
    call = Simulation(contract, ranks=3).start(rank=rank)
    assert call.end is not None
    assert call.end.code is Code.INVALID_ARGUMENT
    assert Simulation(contract).start(rank=0).end is None


@pytest.mark.parametrize("contract", RANKED)
def test_events_of_each_rank_are_numbered_by_themselves(contract: str) -> None:
    simulation = Simulation(contract, ranks=2)
    call = subscribe(simulation)
    for rank in (1, 1, 0):
        simulation.generate([rank + 50, *PROMPT, rank], rank=rank, max_tokens=2)
        simulation.generate([rank + 90, *PROMPT, rank], rank=rank, max_tokens=2)
    told: dict[int, list[int]] = {}
    for batch in batches(call):
        assert batch.HasField("dp_rank")
        told.setdefault(batch.dp_rank, []).append(batch.sequence_number)
    assert sorted(told) == [0, 1]
    first = simulation.engine.manners.kv_first_sequence
    for numbers in told.values():
        assert numbers == list(range(first, first + len(numbers)))


def test_a_publisher_with_memory_replays_every_rank() -> None:
    simulation = Simulation("vllm", "rust", ranks=2)
    for rank in (0, 1):
        simulation.generate(rank=rank, max_tokens=2)
    told = [batch.dp_rank for batch in batches(subscribe(simulation))]
    assert sorted(set(told)) == [0, 1]


@pytest.mark.parametrize("contract", RANKED)
def test_loads_have_a_row_a_rank(contract: str) -> None:
    simulation = Simulation(contract, ranks=3, slots=1)
    for at in range(2):
        simulation.start(request_id=f"r{at}", rank=2, max_tokens=500)
    words = simulation.words
    answer = simulation.ask("GetLoads", words.GetLoadsRequest())
    assert answer.dp_rank_count == 3
    rows = {load.dp_rank: load for load in answer.loads}
    assert {rank: row.num_running_reqs for rank, row in rows.items()} == {0: 0, 1: 0, 2: 1}
    assert rows[2].num_waiting_reqs == 1
    only = simulation.ask("GetLoads", words.GetLoadsRequest(dp_rank=2))
    assert [load.dp_rank for load in only.loads] == [2]
    if contract != "vllm":
        assert answer.aggregate.total_running_reqs == 1


def test_heartbeats_tell_the_load_of_every_rank() -> None:
    simulation = Simulation("vllm", "rust", ranks=2)
    request = common_pb2.SubscribeKvEventsRequest(load_records_before_first_batch=True)
    call = simulation.call("SubscribeKvEvents", request.SerializeToString())
    simulation.start(rank=1, max_tokens=500, ignore_eos=True)
    simulation.face.advance(1.5)
    loads = {}
    for raw in call.messages:
        batch = common_pb2.KvEventBatch.FromString(raw)
        loads[batch.dp_rank] = batch.load.running_requests
    assert loads == {0: 0, 1: 1}


@pytest.mark.parametrize(
    ("contract", "ranks", "says"),
    [("vllm", 4, 4), ("vllm", 1, 1), ("sglang", 4, 4), ("sglang", 1, 1), ("tokenspeed", 4, 4)],
)
def test_engines_say_how_many_ranks_they_have(contract: str, ranks: int, says: int) -> None:
    answer = Simulation(contract, ranks=ranks).ask("GetServerInfo")
    told = answer.data_parallel_size if contract == "vllm" else answer.server_args["dp_size"]
    assert told == says


def test_a_flush_empties_every_rank() -> None:
    simulation = Simulation("vllm", ranks=2)
    for rank in (0, 1):
        simulation.generate(rank=rank, max_tokens=2)
    assert simulation.engine.flush(simulation.face.now_s)
    assert not any(rank.table.live() for rank in simulation.engine.ranks)


# ── In pairs ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("contract", ["sglang", "tokenspeed"])
def test_a_room_has_its_rank(contract: str) -> None:
    pair = SimulatedPair(contract, ranks=4)
    for room in (9, 10, 11):
        calls = pair.both_in_room(room=room)
        assert pair.prefill.engine.ranks[room % 4].scheduler.busy
        pair.run(*calls)
        assert calls[1].end is not None
        assert calls[1].end.code is Code.OK


def test_a_rank_that_is_not_its_rooms_is_refused_by_one_contract_only() -> None:
    pair = SimulatedPair("sglang", ranks=4)
    call = pair.in_room(pair.prefill, room=9, rank=2)
    assert call.end is not None
    assert call.end.code is Code.INTERNAL
    assert pair.in_room(pair.prefill, room=10, rank=2).end is None
    other = SimulatedPair("tokenspeed", ranks=4)
    assert other.in_room(other.prefill, room=9, rank=2).end is None
    assert other.prefill.engine.ranks[2].scheduler.busy


def test_blocks_are_those_of_a_rank() -> None:
    pair = SimulatedPair("vllm", "nixl", ranks=2)
    give = {"do_remote_decode": True, "do_remote_prefill": False}
    told = pair.told(pair.worked_off(give, rank=1))
    assert told["remote_engine_id"].endswith("_dp1")
    call = pair.decode.start(transfer=json.dumps(told), rank=0, max_tokens=4)
    pair.run(call)
    assert len(ids_of(pair.decode, call)) == 4
    assert all(side.engine.idle for side in pair.sides)


def test_a_minted_name_is_that_of_a_rank() -> None:
    pair = SimulatedPair("vllm", "mooncake", ranks=2, pair_wait_s=2.0)
    name = pair.prefill.engine.pairs.engine_id
    for transfer, suffix, ends in (("a", "_dp1", "length"), ("b", "", "error")):
        pair.worked_off({"do_remote_decode": True, "transfer_id": transfer}, rank=1)
        where = {"remote_bootstrap_addr": "http://127.0.0.1:8998", "transfer_id": transfer}
        told = {"do_remote_prefill": True, "remote_engine_id": name + suffix, **where}
        call = pair.decode.start(transfer=json.dumps(told), max_tokens=4)
        pair.run(call)
        assert pair.decode.completes(call)[0]["finish_reason"] == ends
