"""Pairs that a connector of vLLM's serves: the first engine is called, then the second one."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_chaos.engine.protocol.rpc_call import Code
from smg_chaos.engine.servers.in_memory import MemoryCall
from smg_chaos.engine.settings import EngineSettings
from support.engines.simulated_engine import PROMPT, Simulation
from support.engines.simulated_pair import PORT, SimulatedPair, ids_of

GIVE = {"do_remote_decode": True, "do_remote_prefill": False}
TAKE = {"do_remote_decode": False, "do_remote_prefill": True}


def nixl(**more: Any) -> SimulatedPair:
    return SimulatedPair("vllm", "nixl", **more)


def mooncake(**more: Any) -> SimulatedPair:
    return SimulatedPair("vllm", "mooncake", **more)


def minted(pair: SimulatedPair, name: str = "t-1") -> dict[str, Any]:
    address = f"http://127.0.0.1:{PORT}"
    engine = pair.prefill.engine.pairs.id_of(0)
    return {**TAKE, "transfer_id": name, "remote_engine_id": engine} | {
        "remote_bootstrap_addr": address
    }


def taken(pair: SimulatedPair, told: dict[str, Any], **fields: Any) -> MemoryCall:
    call = pair.decode.start(transfer=json.dumps(told), **fields)
    pair.run(call)
    return call


def finish(side: Simulation, call: MemoryCall) -> str:
    reasons = [complete["finish_reason"] for complete in side.completes(call)]
    assert len(reasons) == 1
    assert isinstance(reasons[0], str)
    return reasons[0]


# ── nixl ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("servicer", ["python", "rust"])
@pytest.mark.parametrize("script", ["fixed", "following"])
def test_the_second_engine_goes_on_with_what_the_first_one_says(servicer: str, script: str) -> None:
    alone = Simulation("vllm", servicer, script=script)
    said = ids_of(alone, alone.generate(max_tokens=40))
    pair = nixl(servicer=servicer)
    for side in pair.sides:
        side.engine.script = alone.engine.script
    told = pair.told(pair.worked_off(GIVE))
    assert told["do_remote_prefill"] is True
    assert told["do_remote_decode"] is False
    assert told["remote_block_ids"][0]
    assert (told["remote_host"], told["remote_port"]) == ("127.0.0.1", PORT)
    assert told["remote_num_tokens"] == len(PROMPT)
    call = taken(pair, told, max_tokens=40)
    assert ids_of(pair.decode, call) == said
    assert pair.decode.completes(call)[0]["cached_tokens"] == len(PROMPT) - 1
    assert pair.prefill.engine.table.used == pair.decode.engine.table.used == 0
    assert pair.prefill.engine.tally.handed_over == pair.decode.engine.tally.taken_over == 1


def test_the_first_engine_counts_what_was_cached_and_the_second_one_caches_too() -> None:
    pair = nixl()
    for cached in (0, 64):
        call = pair.worked_off(GIVE)
        assert pair.prefill.completes(call)[0].get("cached_tokens", 0) == cached
        taken(pair, pair.told(call), max_tokens=2)
    assert pair.decode.engine.table.live()


def test_blocks_are_kept_until_they_are_fetched_and_fetched_once() -> None:
    pair = nixl()
    told = pair.told(pair.worked_off(GIVE))
    assert pair.prefill.engine.table.used > 0
    assert finish(pair.decode, taken(pair, told, max_tokens=2)) == "length"
    assert pair.prefill.engine.table.used == 0
    assert finish(pair.decode, taken(pair, told, max_tokens=2)) == "error"


def test_blocks_are_kept_for_the_lease_only() -> None:
    pair = nixl(kv_lease_s=5.0)
    told = pair.told(pair.worked_off(GIVE))
    pair.advance(5.1)
    assert pair.prefill.engine.table.used == 0
    call = taken(pair, told)
    assert finish(pair.decode, call) == "error"
    assert ids_of(pair.decode, call) == []


def test_what_is_gone_can_be_computed_anew_instead() -> None:
    pair = nixl(kv_load_failure="recompute")
    told = pair.told(pair.worked_off(GIVE))
    first, again = taken(pair, told, max_tokens=9), taken(pair, told, max_tokens=9)
    assert ids_of(pair.decode, first) == ids_of(pair.decode, again)
    assert finish(pair.decode, again) == "length"


@pytest.mark.parametrize("stream", [True, None])
def test_a_dead_engine_has_no_blocks(stream: bool | None) -> None:
    pair = nixl()
    told = pair.told(pair.worked_off(GIVE))
    pair.prefill.engine.die(1)
    call = taken(pair, told, stream=stream)
    assert finish(pair.decode, call) == "error"
    assert pair.decode.engine.idle


def test_another_life_of_an_engine_has_other_blocks() -> None:
    pair = nixl()
    told = pair.told(pair.worked_off(GIVE))
    name = pair.prefill.engine.pairs.engine_id
    pair.advance(1.0)
    pair.prefill.engine.come_back(model="simulated", vocabulary=4160, now_s=pair.now_s)
    pair.prefill.engine.down, pair.prefill.engine.started_s = False, pair.now_s
    assert pair.prefill.engine.pairs.engine_id != name
    assert finish(pair.decode, taken(pair, told)) == "error"


def test_a_transfer_that_fails_leaves_the_blocks_where_they_are() -> None:
    pair = nixl(faults=["transfer-fails:request=1"])
    told = pair.told(pair.worked_off(GIVE))
    assert finish(pair.decode, taken(pair, told)) == "error"
    assert finish(pair.decode, taken(pair, told, max_tokens=3)) == "length"


def test_an_ordinary_request_is_an_ordinary_request_on_both_sides() -> None:
    pair = nixl()
    for side in pair.sides:
        call = side.generate(max_tokens=3)
        assert len(ids_of(side, call)) == 3
        assert "kv_transfer_params_json" not in side.completes(call)[0]


def test_what_was_aborted_is_not_handed_over() -> None:
    pair = nixl(prefill={"prefill_tokens_per_s": 70.0})
    call = pair.prefill.start(transfer=json.dumps(GIVE), max_tokens=1)
    pair.prefill.engine.abort("test", pair.now_s)
    pair.run(call)
    assert finish(pair.prefill, call) == "abort"
    assert "kv_transfer_params_json" not in pair.prefill.completes(call)[0]
    assert pair.prefill.engine.idle


def test_incomplete_parameters_wait_for_ever() -> None:
    pair = nixl()
    told = pair.told(pair.worked_off(GIVE))
    del told["remote_host"]
    call = pair.decode.start(transfer=json.dumps(told))
    pair.run(call, patience_s=3600.0)
    assert call.end is None
    pair.decode.face.cancel(call)
    assert pair.decode.engine.idle


def test_blocks_of_nobody_kill_the_engine() -> None:
    pair = nixl()
    call = pair.decode.start(transfer=json.dumps(TAKE))
    assert call.end is not None
    assert call.end.code is Code.INTERNAL
    assert pair.decode.engine.dead


@pytest.mark.parametrize("told", ["{", "[1]", '"x"', "7"])
def test_parameters_are_an_object(told: str) -> None:
    call = nixl().decode.start(transfer=told)
    assert call.end is not None
    assert call.end.code is Code.INVALID_ARGUMENT


def test_blocks_are_for_one_answer() -> None:
    call = nixl().prefill.start(transfer=json.dumps(GIVE), n=2, temperature=1.0)
    assert call.end is not None
    assert call.end.code is Code.INVALID_ARGUMENT


def test_another_prompt_does_not_fit() -> None:
    pair = nixl()
    told = pair.told(pair.worked_off(GIVE))
    call = pair.decode.start(PROMPT[1:], transfer=json.dumps(told))
    pair.run(call)
    assert finish(pair.decode, call) == "error"


def test_log_probabilities_of_the_prompt_make_the_second_engine_compute_it() -> None:
    pair = nixl(decode={"prefill_tokens_per_s": 70.0})
    told = pair.told(pair.worked_off(GIVE))
    call = pair.decode.start(transfer=json.dumps(told), prompt_logprobs=1, max_tokens=1)
    pair.advance(0.9)
    assert not call.messages
    pair.run(call)
    complete = pair.decode.completes(call)[0]
    assert len(complete["input_logprobs"]["token_ids"]) == len(PROMPT)


# ── mooncake ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", ["prefill", "decode"])
def test_blocks_go_by_a_name_that_both_were_told(first: str) -> None:
    pair = mooncake()
    give = {**GIVE, "transfer_id": "t-1"}
    if first == "decode":
        second = pair.decode.start(transfer=json.dumps(minted(pair)), max_tokens=5)
        pair.advance(1.0)
        assert not second.messages
        worked = pair.worked_off(give)
    else:
        worked = pair.worked_off(give)
        second = pair.decode.start(transfer=json.dumps(minted(pair)), max_tokens=5)
    pair.run(second)
    assert len(ids_of(pair.decode, second)) == 5
    assert "kv_transfer_params_json" not in pair.prefill.completes(worked)[0]
    assert pair.prefill.engine.idle


@pytest.mark.parametrize("wrong", ["transfer_id", "remote_engine_id", "remote_bootstrap_addr"])
def test_a_wrong_name_finds_nothing(wrong: str) -> None:
    pair = mooncake(pair_wait_s=3.0)
    pair.worked_off({**GIVE, "transfer_id": "t-1"})
    told = minted(pair) | {wrong: "http://127.0.0.1:1"}
    assert finish(pair.decode, taken(pair, told)) == "error"


def test_a_prompt_that_ends_by_itself_is_not_handed_over() -> None:
    pair = mooncake(pair_wait_s=3.0)
    said = ids_of(pair.decode, pair.decode.generate(max_tokens=200))
    ids = [*PROMPT, *said[:-1]]  # what follows is the end of text
    call = pair.prefill.start(ids, transfer=json.dumps({**GIVE, "transfer_id": "t-1"}))
    pair.run(call)
    assert finish(pair.prefill, call) == "stop"
    assert pair.prefill.engine.idle
    second = pair.decode.start(ids, transfer=json.dumps(minted(pair)))
    pair.run(second)
    assert finish(pair.decode, second) == "error"


@pytest.mark.parametrize(("side", "told"), [("prefill", TAKE), ("decode", GIVE)])
def test_the_wrong_side_dies_of_it(side: str, told: dict[str, Any]) -> None:
    pair = mooncake()
    one: Simulation = getattr(pair, side)
    call = one.start(transfer=json.dumps({**told, "transfer_id": "t-1"}))
    assert call.end is not None
    assert call.end.code is Code.INTERNAL
    assert one.engine.dead


def test_a_name_in_use_is_handed_over_once() -> None:
    pair = mooncake()
    for _ in range(2):
        pair.worked_off({**GIVE, "transfer_id": "t-1"})
    assert finish(pair.decode, taken(pair, minted(pair), max_tokens=2)) == "length"
    assert pair.prefill.engine.idle


# ── store ────────────────────────────────────────────────────────────────────


def test_a_store_knows_what_any_of_its_engines_worked_off() -> None:
    pair = SimulatedPair("vllm", "store")
    worked = pair.worked_off({"do_remote_decode": True})
    assert "kv_transfer_params_json" not in pair.prefill.completes(worked)[0]
    call = pair.decode.start(max_tokens=3)
    pair.run(call)
    assert pair.decode.completes(call)[0]["cached_tokens"] == 64
    assert finish(pair.decode, call) == "length"


# ── Whatever happens ─────────────────────────────────────────────────────────

STEP = st.one_of(
    st.tuples(st.just("give"), st.integers(1, 60)),
    st.tuples(st.just("take"), st.integers(0, 30)),
    st.tuples(st.just("advance"), st.integers(0, 8)),
    st.tuples(st.sampled_from(["cancel", "abort"]), st.integers(0, 30)),
)


@pytest.mark.parametrize("connector", ["nixl", "mooncake"])
@given(steps=st.lists(STEP, max_size=25), anew=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_pair_comes_to_rest_with_everything_free(
    connector: str, steps: list[tuple[str, int]], anew: bool
) -> None:
    small: dict[str, Any] = {"slots": 2, "blocks": 16, "block_size": 8, "context": 128}
    waits: dict[str, Any] = {"pair_wait_s": 3.0, "kv_lease_s": 2.0}
    failure = "recompute" if anew else "fail"
    pair = SimulatedPair("vllm", connector, kv_load_failure=failure, **small, **waits)
    calls: list[tuple[Simulation, MemoryCall, str]] = []
    told: list[tuple[list[int], dict[str, Any]]] = []

    def start(side: Simulation, ids: list[int], words: dict[str, Any], tokens: int) -> None:
        name = f"id-{len(calls)}"
        asked = {"request_id": name, "transfer": json.dumps(words), "max_tokens": tokens}
        calls.append((side, side.start(ids, **asked), name))

    for what, number in steps:
        if what == "give":
            ids = [40 + at % 9 for at in range(number)]
            start(pair.prefill, ids, {**GIVE, "transfer_id": f"t{len(told)}"}, 1)
            pair.run(calls[-1][1])
            nixl_words = pair.told(calls[-1][1]) if connector == "nixl" else {}
            told.append((ids, nixl_words or minted(pair, f"t{len(told)}")))
        elif what == "take" and told:
            start(pair.decode, *told[number % len(told)], 9)
        elif what == "advance":
            pair.advance(number / 4)
        elif calls:
            side, call, name = calls[number % len(calls)]
            if what == "cancel":
                side.face.cancel(call)
            else:
                side.engine.abort(name, pair.now_s)
        pair.check()
    pair.advance(120.0)
    assert all(call.end is not None for _, call, _ in calls)
    for side in pair.sides:
        assert side.engine.idle
        assert side.engine.table.used == 0
        assert not len(side.engine.pairs.shelf)


# ── What they say of themselves ──────────────────────────────────────────────


@pytest.mark.parametrize(
    ("connector", "says"),
    [("nixl", "NixlConnector"), ("mooncake", "MooncakeConnector"), ("store", "ExampleConnector")],
)
def test_engines_say_how_they_work_in_pairs(connector: str, says: str) -> None:
    pair = SimulatedPair("vllm", connector, pairing_protocol="p")
    roles = []
    for side in pair.sides:
        answer = side.ask("GetServerInfo")
        assert (answer.kv_connector, answer.pairing_protocol) == (says, "p")
        assert answer.kv_engine_id == side.engine.pairs.engine_id
        roles.append(answer.kv_role)
    assert roles == ["kv_producer", "kv_consumer"]
    both = Simulation("vllm", kv_connector=connector).ask("GetServerInfo")
    assert both.kv_role == "kv_both"
    plain = Simulation("vllm").ask("GetServerInfo")
    assert (plain.kv_connector, plain.kv_role, plain.kv_engine_id) == ("", "", "")


@pytest.mark.parametrize("contract", ["sglang", "tokenspeed"])
def test_engines_say_where_their_rooms_are(contract: str) -> None:
    pair = SimulatedPair(contract)
    modes = []
    for side in (*pair.sides, Simulation(contract)):
        said = side.ask("GetServerInfo").server_args
        modes.append(said["disaggregation_mode"])
        assert said["disaggregation_transfer_backend"] == "mooncake"
    assert modes == ["prefill", "decode", "null"]
    assert pair.prefill.ask("GetServerInfo").server_args["disaggregation_bootstrap_port"] == PORT


@pytest.mark.parametrize(
    "wanted",
    [
        {"contract": "mlx", "role": "prefill"},
        {"contract": "trtllm", "kv_connector": "nixl"},
        {"contract": "mlx", "ranks": 2},
        {"contract": "sglang", "kv_connector": "nixl"},
        {"contract": "vllm", "kv_connector": "sglang"},
    ],
)
def test_what_a_contract_has_no_words_for_is_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"contract|connector|role"):
        EngineSettings(**wanted)
