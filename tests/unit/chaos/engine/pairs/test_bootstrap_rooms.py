"""Pairs that meet in rooms: both are called at once, and nothing is said before the blocks are over there."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.protocol.rpc_call import Code
from smg_chaos.engine.servers.in_memory import MemoryCall
from support.engines.simulated_engine import PROMPT, Simulation
from support.engines.simulated_pair import ROOM, SimulatedPair, ids_of

ROOMS = ["sglang", "tokenspeed"]


def code(call: MemoryCall) -> Code | None:
    return call.end.code if call.end is not None else None


@pytest.mark.parametrize("contract", ROOMS)
@pytest.mark.parametrize("first", ["prefill", "decode"])
@pytest.mark.parametrize("script", ["fixed", "following"])
def test_a_pair_says_what_one_engine_says(contract: str, first: str, script: str) -> None:
    alone = Simulation(contract, script=script)
    said = ids_of(alone, alone.generate(max_tokens=40))
    pair = SimulatedPair(contract)
    for side in pair.sides:
        side.engine.script = alone.engine.script
    order = pair.sides if first == "prefill" else pair.sides[::-1]
    calls = {order[0]: pair.in_room(order[0], max_tokens=40)}
    pair.advance(0.5)
    assert not calls[order[0]].messages
    calls[order[1]] = pair.in_room(order[1], max_tokens=40)
    pair.run(*calls.values())
    assert ids_of(pair.decode, calls[pair.decode]) == said
    (worked,) = pair.prefill.completes(calls[pair.prefill])
    assert worked["finish_reason"] == "length"
    assert ids_of(pair.prefill, calls[pair.prefill]) == said[:1]
    assert pair.prefill.engine.tally.handed_over == pair.decode.engine.tally.taken_over == 1
    assert all(side.engine.idle for side in pair.sides)


@pytest.mark.parametrize("contract", ROOMS)
def test_an_answer_goes_on_where_a_prompt_leaves_off(contract: str) -> None:
    alone = Simulation(contract)
    said = ids_of(alone, alone.generate())
    pair = SimulatedPair(contract)
    calls = pair.both_in_room([*PROMPT, *said[:7]])
    pair.run(*calls)
    assert ids_of(pair.decode, calls[1]) == said[7:]


def test_nothing_is_said_by_the_first_engine_before_the_second_one_took_the_blocks() -> None:
    pair = SimulatedPair()
    first = pair.in_room(pair.prefill)
    pair.advance(5.0)
    assert not first.messages
    assert first.end is None
    assert pair.prefill.engine.table.used > 0, "the blocks are kept"
    assert not pair.prefill.engine.flush(pair.now_s)
    second = pair.in_room(pair.decode)
    pair.run(first, second)
    assert (code(first), code(second)) == (Code.OK, Code.OK)
    assert pair.prefill.engine.table.used == 0


def test_the_second_engine_is_silent_until_its_room_is_filled() -> None:
    pair = SimulatedPair(prefill={"prefill_tokens_per_s": 70.0})
    second = pair.in_room(pair.decode)
    first = pair.in_room(pair.prefill)
    pair.advance(0.9)
    assert not second.messages
    pair.run(first, second)
    assert second.messages


def test_the_second_engine_computes_nothing_of_the_prompt() -> None:
    pair = SimulatedPair(decode={"prefill_tokens_per_s": 1.0, "step_s": 0.0})
    calls = pair.both_in_room()
    pair.run(*calls, patience_s=5.0)
    assert code(calls[1]) is Code.OK


def test_cached_tokens_are_those_of_the_first_engine_and_only_it_keeps_a_cache() -> None:
    pair = SimulatedPair()
    for room, cached in ((5, 0), (6, 64)):
        calls = pair.both_in_room(room=room)
        pair.run(*calls)
        for side, call in zip(pair.sides, calls, strict=True):
            assert side.completes(call)[0].get("cached_tokens", 0) == cached
    assert pair.prefill.engine.table.live()
    assert not pair.decode.engine.table.live()
    meters = [side.engine.meters[0] for side in pair.sides]
    assert [meter.prompt_tokens for meter in meters] == [2 * len(PROMPT), 0]


def test_only_the_first_engine_tells_of_what_it_caches() -> None:
    pair = SimulatedPair()
    heard = [side.call("SubscribeKvEvents") for side in pair.sides]
    pair.run(*pair.both_in_room())
    batches = [[common_pb2.KvEventBatch.FromString(raw) for raw in call.messages] for call in heard]
    stored = [sum(len(batch.events) for batch in told) for told in batches]
    assert stored[0] > 0
    assert stored[1] == 0


def test_a_decode_engine_keeps_a_cache_if_it_is_told_to() -> None:
    pair = SimulatedPair(decode={"decode_cache": True})
    pair.run(*pair.both_in_room())
    assert pair.decode.engine.table.live()


@pytest.mark.parametrize("side", ["prefill", "decode"])
@pytest.mark.parametrize("contract", ROOMS)
def test_a_request_without_a_room_is_refused(contract: str, side: str) -> None:
    pair = SimulatedPair(contract)
    one = getattr(pair, side)
    call = one.start()
    assert code(call) is Code.INVALID_ARGUMENT
    assert call.end is not None
    assert "bootstrap room" in call.end.message
    assert code(pair.in_room(one, room=0)) is Code.INVALID_ARGUMENT


def test_a_regular_engine_takes_no_notice_of_a_room() -> None:
    simulation = Simulation("sglang")
    call = simulation.generate(room=5, room_host="h", room_port=1, max_tokens=3)
    assert code(call) is Code.OK


def test_a_room_takes_one_answer() -> None:
    pair = SimulatedPair()
    call = pair.in_room(pair.decode, n=2, temperature=1.0)
    assert code(call) is Code.INVALID_ARGUMENT


def test_a_room_in_use_takes_nobody_else() -> None:
    pair = SimulatedPair()
    first = pair.in_room(pair.prefill)
    again = pair.in_room(pair.prefill, request_id="again")
    assert code(again) is Code.INTERNAL
    second = pair.in_room(pair.decode)
    thief = pair.in_room(pair.decode, request_id="thief")
    pair.run(first, second, thief)
    assert (code(first), code(second)) == (Code.OK, Code.OK)
    assert code(thief) is Code.INTERNAL


# ── What goes wrong ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("alone", ["prefill", "decode"])
def test_who_waits_for_nobody_gives_up_in_time(alone: str) -> None:
    pair = SimulatedPair(pair_wait_s=2.0)
    side: Simulation = getattr(pair, alone)
    call = pair.in_room(side)
    pair.advance(1.5)
    assert call.end is None
    pair.run(call, patience_s=10.0)
    assert code(call) is Code.INTERNAL
    assert call.end is not None
    assert "did not come in time" in call.end.message
    assert side.engine.idle


def test_another_room_is_not_this_one() -> None:
    pair = SimulatedPair(pair_wait_s=2.0)
    calls = pair.in_room(pair.prefill, room=5), pair.in_room(pair.decode, room=6)
    pair.run(*calls, patience_s=10.0)
    assert [code(call) for call in calls] == [Code.INTERNAL, Code.INTERNAL]


def test_another_prompt_is_not_this_one() -> None:
    pair = SimulatedPair()
    calls = pair.in_room(pair.prefill), pair.in_room(pair.decode, PROMPT[1:])
    pair.run(*calls)
    assert [code(call) for call in calls] == [Code.INTERNAL, Code.INTERNAL]


def test_a_prefill_engine_that_is_not_there_yet_is_waited_for() -> None:
    pair = SimulatedPair()
    pair.prefill.engine.down = True
    second = pair.in_room(pair.decode)
    pair.advance(3.0)
    assert second.end is None
    pair.prefill.engine.down = False
    first = pair.in_room(pair.prefill)
    pair.run(first, second)
    assert (code(first), code(second)) == (Code.OK, Code.OK)


@pytest.mark.parametrize("when_s", [0.0, 0.5])
def test_the_death_of_the_first_engine_ends_the_second_call(when_s: float) -> None:
    pair = SimulatedPair(prefill={"prefill_tokens_per_s": 70.0})
    first, second = pair.both_in_room()
    pair.advance(when_s)
    pair.prefill.engine.die(1)
    pair.run(first, second)
    assert code(first) is Code.UNAVAILABLE
    assert code(second) is Code.INTERNAL
    assert pair.decode.engine.idle


def test_the_death_of_the_second_engine_ends_the_first_call() -> None:
    pair = SimulatedPair(prefill={"prefill_tokens_per_s": 70.0})
    first, _ = pair.both_in_room()
    pair.decode.engine.die(1)
    assert code(first) is Code.INTERNAL
    assert pair.prefill.engine.idle


@pytest.mark.parametrize("gone", ["prefill", "decode"])
@pytest.mark.parametrize("after_s", [0.0, 5.0])
def test_whoever_is_given_up_takes_the_other_one_along(gone: str, after_s: float) -> None:
    pair = SimulatedPair(prefill={"prefill_tokens_per_s": 70.0})
    first, second = pair.both_in_room()
    side, call, other = (
        (pair.prefill, first, second) if gone == "prefill" else (pair.decode, second, first)
    )
    side.face.cancel(call)
    pair.advance(after_s)
    assert code(other) is Code.INTERNAL
    assert all(one.engine.idle for one in pair.sides)
    pair.check()


def test_an_abort_frees_a_call_that_waits_for_its_partner() -> None:
    pair = SimulatedPair()
    pair.in_room(pair.decode)
    pair.in_room(pair.prefill, room=ROOM + 1)
    pair.advance(1.0)
    pair.decode.engine.abort(f"in-{ROOM}", pair.now_s)
    pair.prefill.engine.abort(f"in-{ROOM + 1}", pair.now_s)
    pair.advance(1.0)
    assert all(one.engine.idle and not one.engine.active for one in pair.sides)


def test_a_transfer_can_fail_on_purpose() -> None:
    pair = SimulatedPair(faults=["transfer-fails:every=2"])
    ends = []
    for room in range(1, 5):
        calls = pair.both_in_room(room=room)
        pair.run(*calls)
        ends.append([code(call) for call in calls])
        assert not (ends[-1][1] is Code.INTERNAL and calls[1].messages)
    fails, works = [Code.INTERNAL, Code.INTERNAL], [Code.OK, Code.OK]
    assert ends == [works, fails, works, fails]
    assert pair.decode.engine.tally.faults == {"transfer-fails": 2}


# ── Log probabilities ────────────────────────────────────────────────────────


@pytest.mark.parametrize("contract", ROOMS)
def test_each_side_has_its_own_log_probabilities(contract: str) -> None:
    alone = Simulation(contract)
    wanted: dict[str, Any] = {"logprobs": 2, "logprobs_from": 0, "max_tokens": 5}
    whole = alone.completes(alone.generate(**wanted, stream=None))[0]
    pair = SimulatedPair(contract)
    calls = pair.both_in_room(**wanted, stream=None)
    pair.run(*calls)
    first, second = pair.prefill.completes(calls[0])[0], pair.decode.completes(calls[1])[0]
    assert first.get("input_logprobs") == whole.get("input_logprobs")
    assert ("input_logprobs" in first) == (contract == "sglang"), "the other contract has none"
    assert second["output_logprobs"] == whole["output_logprobs"]
    assert "input_logprobs" not in second


# ── Whatever happens ─────────────────────────────────────────────────────────

STEP = st.one_of(
    st.tuples(st.sampled_from(["prefill", "decode"]), st.integers(1, 4), st.integers(1, 60)),
    st.tuples(st.just("advance"), st.floats(0, 1.0), st.just(0)),
    st.tuples(st.just("cancel"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("kill"), st.integers(0, 1), st.just(0)),
)


@given(steps=st.lists(STEP, max_size=25))
@settings(max_examples=60, deadline=None)
def test_a_pair_comes_to_rest_with_everything_free(steps: list[tuple[Any, ...]]) -> None:
    small: dict[str, Any] = {
        "slots": 2,
        "blocks": 16,
        "block_size": 8,
        "context": 128,
        "pair_wait_s": 3.0,
    }
    pair = SimulatedPair(**small)
    calls: list[tuple[Simulation, MemoryCall]] = []
    for number, (what, one, two) in enumerate(steps):
        if what in ("prefill", "decode"):
            side: Simulation = getattr(pair, what)
            ids = [40 + at % 9 for at in range(two)]
            fields = {"request_id": f"id-{number}", "max_tokens": 9}
            calls.append((side, pair.in_room(side, ids, room=one, **fields)))
        elif what == "advance":
            pair.advance(one)
        elif what == "cancel" and calls:
            whose, call = calls[one % len(calls)]
            whose.face.cancel(call)
        elif what == "kill":
            pair.sides[one].engine.kill(pair.now_s)
        pair.check()
    pair.advance(120.0)
    assert all(call.end is not None for _, call in calls)
    for side in pair.sides:
        assert side.engine.idle
        assert side.engine.table.used == 0
        assert not len(side.engine.pairs.shelf)
