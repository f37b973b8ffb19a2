"""KV events and the loads that travel with them."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.protocol.rpc_call import Code
from smg_chaos.engine.servers.in_memory import MemoryCall
from support.engines.simulated_engine import PROMPT, Simulation

WITH_EVENTS = [("vllm", "python"), ("vllm", "rust"), ("sglang", "python"), ("tokenspeed", "python")]


class Listener:
    """A subscriber that keeps what a gateway would keep."""

    def __init__(self, simulation: Simulation, start: int = 0, *, early: bool = False) -> None:
        request = common_pb2.SubscribeKvEventsRequest(
            start_sequence_number=start, load_records_before_first_batch=early
        )
        self.call: MemoryCall = simulation.call("SubscribeKvEvents", request.SerializeToString())

    @property
    def all(self) -> list[Any]:
        return [common_pb2.KvEventBatch.FromString(raw) for raw in self.call.messages]

    @property
    def batches(self) -> list[Any]:
        return [batch for batch in self.all if not batch.load.load_only]

    @property
    def loads(self) -> list[Any]:
        return [batch for batch in self.all if batch.load.load_only]

    def events(self) -> Iterator[Any]:
        for batch in self.batches:
            yield from batch.events


def keys(batches: Sequence[Any]) -> list[int]:
    """Return the blocks a reader of these batches believes in, copies counted."""
    live: list[int] = []
    for batch in batches:
        for event in batch.events:
            if event.HasField("cleared"):
                live.clear()
            elif event.HasField("stored"):
                live += [block.block_hash for block in event.stored.blocks]
            else:
                for key in event.removed.block_hashes:
                    live.remove(key)
    return sorted(live)


def believed(simulation: Simulation) -> list[int]:
    sign = 1 << 63
    table = simulation.engine.table.live()
    return sorted(one.key - (1 << 64) if one.key >= sign else one.key for one in table)


def test_mlx_has_no_such_method() -> None:
    call = Simulation("mlx").call("SubscribeKvEvents")
    assert call.end is not None
    assert call.end.code is Code.UNIMPLEMENTED


@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
def test_sequences_count_up_by_one_and_events_from_one(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    listener = Listener(simulation)
    for at in range(4):
        simulation.generate([40 + at, *PROMPT], max_tokens=40)
    numbers = [batch.sequence_number for batch in listener.batches]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    ids = [event.event_id for event in listener.events()]
    assert ids == list(range(1, len(ids) + 1))
    late = Listener(simulation)
    simulation.generate([99, *PROMPT], max_tokens=2)
    if servicer != "rust":
        assert next(event.event_id for event in late.events()) == 1


def test_the_first_sequence_seen_is_after_the_warm_up_of_vllm() -> None:
    simulation = Simulation("vllm")
    listener = Listener(simulation)
    simulation.generate(max_tokens=1)
    assert listener.batches[0].sequence_number == 119


def test_a_prompt_is_published_as_a_chain_of_full_blocks() -> None:
    simulation = Simulation("vllm")
    listener = Listener(simulation)
    simulation.generate(max_tokens=2)
    simulation.generate([*PROMPT[:64], *range(100, 140)], max_tokens=2)
    first, second = listener.events()
    assert not first.stored.HasField("parent_block_hash")
    assert [list(block.token_ids) for block in first.stored.blocks] == [PROMPT[:32], PROMPT[32:64]]
    assert [block.block_size for block in first.stored.blocks] == [32, 32]
    assert second.stored.parent_block_hash == first.stored.blocks[1].block_hash
    assert list(second.stored.blocks[0].token_ids) == list(range(100, 132))
    assert first.stored.tier == common_pb2.KV_CACHE_TIER_DEVICE
    assert (first.stored.medium, first.stored.kv_cache_spec_kind) == ("GPU", "full_attention")
    assert listener.batches[0].dp_rank == 0


def test_vllm_publishes_an_answers_blocks_as_they_fill_and_sglang_when_it_ends() -> None:
    batches = {}
    for contract in ("vllm", "sglang"):
        simulation = Simulation(contract, block_size=16, blocks=1024)
        listener = Listener(simulation)
        simulation.generate(max_tokens=70, ignore_eos=True)
        batches[contract] = [
            [len(event.stored.blocks) for event in batch.events] for batch in listener.batches
        ]
    # 70 tokens of prompt are 4 blocks; 139 computed tokens are 8 in all.
    assert batches == {"vllm": [[4], [1], [1], [1], [1]], "sglang": [[4], [4]]}


def test_a_prompt_of_whole_blocks_stores_its_last_block_twice_and_both_copies_are_removed() -> None:
    simulation = Simulation("vllm", blocks=8, block_size=32, context=256)
    listener = Listener(simulation)
    prompt = [40] * 64
    simulation.generate(prompt, max_tokens=1)
    simulation.generate(prompt, max_tokens=1)
    stored = [block.block_hash for event in listener.events() for block in event.stored.blocks]
    assert len(stored) == 3
    assert stored[1] == stored[2]
    for at in range(4):
        simulation.generate([50 + at] * 100, max_tokens=1)
    removed = [key for event in listener.events() for key in event.removed.block_hashes]
    assert removed.count(stored[1]) == 2
    assert keys(listener.batches) == believed(simulation)


def test_sglang_stores_a_block_that_is_computed_twice_only_once() -> None:
    simulation = Simulation("sglang")
    listener = Listener(simulation)
    for _ in range(2):
        simulation.generate([40] * 64, max_tokens=1)
    assert [len(event.stored.blocks) for event in listener.events()] == [4]


@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
def test_a_readers_view_is_the_engines_cache_whatever_was_evicted(
    contract: str, servicer: str
) -> None:
    simulation = Simulation(contract, servicer, blocks=20, block_size=16, context=256)
    listener = Listener(simulation)
    for at in range(30):
        simulation.generate([40 + at * at % 11] * (20 + 7 * at % 90), max_tokens=1 + at % 40)
        assert keys(listener.batches) == believed(simulation)
    assert any(event.HasField("removed") for event in listener.events())


@pytest.mark.parametrize("contract", ["vllm", "sglang", "tokenspeed"])
def test_a_flush_is_told_at_once_by_sglang_and_with_the_next_batch_elsewhere(contract: str) -> None:
    simulation = Simulation(contract)
    listener = Listener(simulation)
    simulation.generate(max_tokens=1)
    request = common_pb2.FlushCacheRequest()
    flushed = simulation.run(simulation.call("FlushCache", request.SerializeToString()))
    assert common_pb2.FlushCacheResponse.FromString(flushed.messages[0]).success
    cleared = [event.HasField("cleared") for event in listener.events()]
    assert cleared == ([False, True] if contract == "sglang" else [False])
    simulation.generate(max_tokens=1)
    kinds = [
        "cleared" if event.HasField("cleared") else "stored"
        for event in listener.batches[-1].events
    ]
    assert kinds == (["stored"] if contract == "sglang" else ["cleared", "stored"])


@pytest.mark.parametrize(
    ("contract", "waits_s"), [("vllm", 0.0), ("sglang", 0.0), ("tokenspeed", 2.0)]
)
def test_a_flush_is_refused_while_something_runs(contract: str, waits_s: float) -> None:
    simulation = Simulation(contract)
    simulation.start(max_tokens=1500, ignore_eos=True)
    begun_s = simulation.face.now_s
    call = simulation.run(simulation.call("FlushCache", b""))
    answer = common_pb2.FlushCacheResponse.FromString(call.messages[0])
    assert not answer.success
    assert simulation.face.now_s - begun_s == pytest.approx(waits_s)


def test_a_flush_waits_for_the_end_of_what_runs_if_it_may() -> None:
    simulation = Simulation("vllm")
    simulation.start(max_tokens=20)
    request = common_pb2.FlushCacheRequest(timeout_s=5.0)
    call = simulation.run(simulation.call("FlushCache", request.SerializeToString()))
    assert common_pb2.FlushCacheResponse.FromString(call.messages[0]).success
    assert simulation.face.now_s < 1.0


# ── Cursors and memory ──────────────────────────────────────────────────────


@pytest.mark.parametrize("contract", ["vllm", "sglang", "tokenspeed", "trtllm"])
def test_a_live_publisher_refuses_a_cursor_and_tells_no_past(contract: str) -> None:
    simulation = Simulation(contract)
    simulation.generate(max_tokens=1)
    refused = Listener(simulation, 3)
    assert refused.call.end is not None
    assert refused.call.end.code is Code.OUT_OF_RANGE
    assert Listener(simulation).batches == []


def test_a_publisher_with_memory_replays_all_or_from_a_cursor() -> None:
    simulation = Simulation("vllm", "rust")
    for at in range(4):
        simulation.generate([40 + at] * 40, max_tokens=1)
    assert [batch.sequence_number for batch in Listener(simulation).batches] == [0, 1, 2, 3]
    assert [batch.sequence_number for batch in Listener(simulation, 2).batches] == [2, 3]


def test_a_publisher_that_forgot_the_beginning_hands_out_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("smg_chaos.engine.cache.kv.HISTORY_BATCHES", 5)
    monkeypatch.setattr("smg_chaos.engine.cache.kv.SNAPSHOT_BLOCKS", 3)
    simulation = Simulation("vllm", "rust", blocks=64, block_size=32)
    for at in range(9):
        simulation.generate([40 + at] * 70, max_tokens=1)
    listener = Listener(simulation)
    chunks = listener.batches
    assert [chunk.snapshot.index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.snapshot.count for chunk in chunks} == {len(chunks)} == {6}
    assert chunks[-1].sequence_number == 8
    assert chunks[0].events[0].HasField("cleared")
    assert {event.event_id for event in listener.events()} == {0}
    assert keys(chunks) == believed(simulation)
    seen: set[int] = set()
    for event in listener.events():
        if event.HasField("stored"):
            parent = event.stored.parent_block_hash
            assert not event.stored.HasField("parent_block_hash") or parent in seen
            seen.update(block.block_hash for block in event.stored.blocks)
    simulation.generate([99] * 70, max_tokens=1)
    assert listener.batches[-1].sequence_number == 9
    assert Listener(simulation, 1).batches[0].sequence_number == 5


def test_events_can_be_switched_off_or_given_a_memory() -> None:
    off = Listener(Simulation("vllm", events="none"))
    assert off.call.end is not None
    assert off.call.end.code is Code.UNIMPLEMENTED
    simulation = Simulation("sglang", events="memory")
    simulation.generate(max_tokens=1)
    assert len(Listener(simulation).batches) == 1


# ── Faults ──────────────────────────────────────────────────────────────────


def test_a_gap_loses_every_nth_batch() -> None:
    simulation = Simulation("sglang", faults=["kv-gap:every=3"])
    listener = Listener(simulation)
    for at in range(6):
        simulation.generate([40 + at] * 20, max_tokens=1)
    assert [batch.sequence_number for batch in listener.batches] == [4, 5, 7, 8]
    assert simulation.engine.tally.faults == {"kv-gap": 2}


def test_a_publisher_that_restarts_ends_its_streams_with_data_loss() -> None:
    simulation = Simulation("vllm", faults=["kv-restart:after=2"])
    listener = Listener(simulation)
    for at in range(2):
        simulation.generate([40 + at] * 40, max_tokens=1)
    assert listener.call.end is not None
    assert listener.call.end.code is Code.DATA_LOSS
    again = Listener(simulation)
    simulation.generate([60] * 40, max_tokens=1)
    assert [batch.sequence_number for batch in again.batches] == [0]


def test_batches_can_be_late() -> None:
    simulation = Simulation("vllm", faults=["kv-late:seconds=2"])
    listener = Listener(simulation)
    simulation.generate(max_tokens=1)
    assert listener.batches == []
    simulation.face.advance(2.0)
    assert len(listener.batches) == 1


def test_a_subscriber_that_reads_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smg_chaos.engine.cache.kv._WAITING_MAX", 4)
    simulation = Simulation("vllm")
    listener = Listener(simulation)
    listener.call.call.bell = lambda _: None
    for at in range(6):
        simulation.generate([40 + at] * 40, max_tokens=1)
    assert listener.call.call.end is not None
    assert listener.call.call.end.code is Code.DATA_LOSS


def test_a_subscriber_that_leaves_is_forgotten() -> None:
    simulation = Simulation("vllm")
    listener = Listener(simulation)
    simulation.face.cancel(listener.call)
    simulation.generate(max_tokens=1)
    assert listener.batches == []


# ── Loads on the stream ─────────────────────────────────────────────────────


def test_loads_come_with_batches_and_heartbeats_repeat_the_last_sequence() -> None:
    simulation = Simulation("vllm")
    listener = Listener(simulation)
    simulation.face.advance(3.0)
    assert listener.all == []  # nothing before the first batch
    simulation.start(max_tokens=200, ignore_eos=True)
    simulation.face.advance(0.5)
    first = listener.batches[0].load
    assert (first.running_requests, first.max_running_requests, first.sample) == (1, 32, 1)
    assert first.HasField("waiting_uncached_tokens")
    assert first.HasField("num_used_tokens")  # the first record tells everything
    assert not listener.batches[1].load.HasField("num_used_tokens")
    samples = [batch.load.sample for batch in listener.all]
    assert samples == list(range(1, len(samples) + 1))
    simulation.face.advance(1.0)
    before = len(listener.loads)
    simulation.face.advance(20.0)
    idle = listener.loads[before:]
    assert {one.sequence_number for one in idle} == {listener.batches[-1].sequence_number}
    assert not any(one.events for one in idle)
    assert 4 <= len(idle) <= 40


def test_the_rust_servicer_tells_its_load_from_the_start_if_it_may() -> None:
    simulation = Simulation("vllm", "rust")
    eager, plain = Listener(simulation, early=True), Listener(simulation)
    simulation.face.advance(1.5)
    assert [one.sequence_number for one in eager.loads] == [0, 0]
    assert plain.all == []
    simulation.start(max_tokens=100, ignore_eos=True)
    simulation.face.advance(0.2)
    record = eager.all[-1].load
    assert record.engine_reports_steps
    assert record.HasField("engine_silence_ms")


def test_trtllm_sends_neither_loads_nor_times_and_one_event_a_batch() -> None:
    simulation = Simulation("trtllm", blocks=8, block_size=32, context=256)
    listener = Listener(simulation)
    for at in range(4):
        simulation.generate([40 + at] * 100, max_tokens=1)
    simulation.face.advance(5.0)
    assert all(len(batch.events) == 1 for batch in listener.all)
    assert not any(batch.HasField("load") or batch.timestamp for batch in listener.all)


def test_loads_can_be_kept_off_the_stream() -> None:
    simulation = Simulation("vllm", loads="polled")
    listener = Listener(simulation)
    simulation.generate(max_tokens=1)
    assert not listener.batches[0].HasField("load")
