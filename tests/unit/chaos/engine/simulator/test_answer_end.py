"""Aborts, cancels, twins, and requests that engines die of."""

from typing import Any

import pytest

from smg_chaos.engine.protocol.rpc_call import Code, How
from support.engines.simulated_engine import FLAVOURS, PROMPT, Simulation

EVERYONE = [pytest.param(*flavour, id="-".join(flavour)) for flavour in FLAVOURS]
ENDLESS: dict[str, Any] = {"max_tokens": 1500, "ignore_eos": True}


@pytest.mark.parametrize(("contract", "servicer"), EVERYONE)
def test_an_abort_frees_the_slot_soon(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    simulation.start(**ENDLESS)
    simulation.face.advance(0.1)
    assert simulation.engine.scheduler.running == 1
    simulation.abort("test")
    simulation.face.advance(0.5)
    assert simulation.engine.idle
    assert simulation.engine.table.used == 0
    simulation.engine.check()


@pytest.mark.parametrize(("contract", "servicer"), EVERYONE)
@pytest.mark.parametrize("stream", [True, None])
def test_a_cancel_frees_the_slot_at_once(contract: str, servicer: str, stream: bool | None) -> None:
    simulation = Simulation(contract, servicer)
    call = simulation.start(**ENDLESS, stream=stream)
    simulation.face.advance(0.1)
    simulation.face.cancel(call)
    assert simulation.engine.idle
    assert simulation.engine.table.used == 0
    assert simulation.engine.tally.cancelled == 1
    simulation.engine.check()


def test_a_stream_of_mlx_ends_well_without_a_complete_when_it_is_aborted() -> None:
    simulation = Simulation("mlx")
    call = simulation.start(**ENDLESS)
    simulation.face.advance(0.1)
    simulation.abort("test")
    assert call.end is not None
    assert call.end.code is Code.OK
    assert not simulation.completes(call)
    whole = simulation.start(**ENDLESS, stream=None)
    simulation.face.advance(0.1)
    simulation.abort("test")
    assert (whole.messages, whole.end and whole.end.code) == ([], Code.OK)


def test_vllm_python_sends_an_empty_chunk_and_an_empty_complete() -> None:
    simulation = Simulation("vllm")
    call = simulation.start(**ENDLESS)
    simulation.face.advance(0.1)
    before = len(call.messages)
    simulation.abort("test")
    chunk, complete = simulation.read(call)[before:]
    assert chunk == {"chunk": {"prompt_tokens": len(PROMPT)}}
    assert complete == {"complete": {"finish_reason": "abort", "prompt_tokens": len(PROMPT)}}


def test_vllm_python_gives_all_ids_so_far_when_it_does_not_stream() -> None:
    simulation = Simulation("vllm")
    call = simulation.start(**ENDLESS, stream=None)
    simulation.face.advance(0.1)
    simulation.abort("test")
    (complete,) = simulation.completes(call)
    assert complete["finish_reason"] == "abort"
    assert len(complete["output_ids"]) == complete["completion_tokens"] > 5


def test_vllm_rust_goes_on_for_a_while_and_then_says_everything() -> None:
    overruns = set()
    for seed in range(8):
        simulation = Simulation("vllm", "rust", seed=seed)
        call = simulation.start(**ENDLESS)
        simulation.face.advance(0.1)
        before = len(call.messages)
        simulation.abort("test")
        simulation.run(call)
        (complete,) = simulation.completes(call)
        assert complete["finish_reason"] == "abort"
        assert complete["output_ids"] == [
            token for chunk in simulation.chunks(call) for token in chunk["token_ids"]
        ]
        overruns.add(len(call.messages) - 1 - before)
    assert max(overruns) <= 43
    assert len(overruns) > 2


def test_an_aborted_stream_of_sglang_never_ends_though_its_slot_is_free() -> None:
    simulation = Simulation("sglang")
    call = simulation.start(**ENDLESS)
    simulation.face.advance(0.1)
    heard = len(call.messages)
    assert simulation.abort("test").success
    simulation.run(call, patience_s=1000)
    assert (call.end, len(call.messages)) == (None, heard)
    assert simulation.engine.idle


def test_tokenspeed_ends_with_an_error_and_knows_children_by_their_names() -> None:
    for name in ("test", "test-n0", "test-n1"):
        simulation = Simulation("tokenspeed")
        call = simulation.start(**ENDLESS, n=2, temperature=1.0)
        simulation.face.advance(0.1)
        assert simulation.abort(name).success
        assert call.end is not None
        assert call.end.code is Code.INTERNAL


def test_trtllm_completes_an_aborted_stream_under_a_reason_of_its_own() -> None:
    simulation = Simulation("trtllm")
    call = simulation.start(**ENDLESS)
    simulation.face.advance(0.1)
    assert simulation.abort("test").success
    (complete,) = simulation.completes(call)
    assert complete["finish_reason"] == "cancelled"


@pytest.mark.parametrize(
    ("contract", "success"), [("sglang", True), ("trtllm", False), ("tokenspeed", False)]
)
def test_an_unknown_id_is_aborted_or_not_found(contract: str, success: bool) -> None:
    assert Simulation(contract).abort("nobody").success is success


@pytest.mark.parametrize("contract", ["mlx", "vllm"])
def test_other_contracts_say_nothing_about_unknown_ids(contract: str) -> None:
    assert Simulation(contract).abort("nobody").ByteSize() == 0


@pytest.mark.parametrize(("contract", "servicer"), EVERYONE)
def test_a_request_that_waits_can_be_aborted_and_cancelled(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer, slots=1)
    simulation.start(**ENDLESS, request_id="runs")
    waits = simulation.start(**ENDLESS, request_id="waits")
    leaves = simulation.start(**ENDLESS, request_id="leaves")
    assert simulation.engine.scheduler.waiting == 2
    simulation.abort("waits")
    simulation.face.cancel(leaves)
    assert simulation.engine.scheduler.waiting == 0
    assert not simulation.chunks(waits) or contract == "vllm"
    simulation.engine.check()


# ── Two requests under one id ───────────────────────────────────────────────


@pytest.mark.parametrize("contract", ["mlx", "vllm", "trtllm", "tokenspeed"])
def test_two_requests_under_one_id_are_both_served(contract: str) -> None:
    simulation = Simulation(contract)
    first, second = simulation.start(max_tokens=20), simulation.start(max_tokens=3)
    simulation.run(first)
    assert [len(simulation.completes(call)) for call in (first, second)] == [1, 1]


def test_the_second_of_two_is_refused_by_vllm_rust() -> None:
    simulation = Simulation("vllm", "rust")
    first, second = simulation.start(max_tokens=20), simulation.start(max_tokens=3)
    assert second.end is not None
    assert second.end.code is Code.ALREADY_EXISTS
    assert len(simulation.completes(simulation.run(first))) == 1


def test_sglang_mixes_the_tokens_of_both_and_the_first_never_ends() -> None:
    simulation = Simulation("sglang")
    first = simulation.start(max_tokens=300, ignore_eos=True)
    simulation.face.advance(0.02)
    heard = len(first.messages)
    second = simulation.generate(max_tokens=3)
    mixed = [token for chunk in simulation.chunks(second) for token in chunk["token_ids"]]
    assert len(mixed) > 3
    assert simulation.completes(second)[0]["completion_tokens"] == 3
    simulation.run(first, patience_s=100)
    assert (first.end, len(first.messages)) == (None, heard)
    assert simulation.engine.idle


# ── What engines die of ─────────────────────────────────────────────────────

REFUSED, GONE, DEAD, FINE = Code.INVALID_ARGUMENT, Code.UNAVAILABLE, Code.INTERNAL, Code.OK


@pytest.mark.parametrize(
    ("contract", "servicer", "fields", "code"),
    [
        ("vllm", "python", {"ids": []}, REFUSED),
        ("sglang", "python", {"ids": []}, GONE),
        ("mlx", "python", {"ids": [10**6]}, GONE),
        ("vllm", "python", {"ids": [10**6]}, REFUSED),
        ("vllm", "rust", {"ids": [10**6]}, DEAD),
        ("sglang", "python", {"ids": [10**6]}, GONE),
        ("mlx", "python", {"ids": PROMPT * 30}, FINE),
        ("vllm", "python", {"ids": PROMPT * 30}, REFUSED),
        ("vllm", "rust", {"ids": PROMPT * 30}, DEAD),
        ("sglang", "python", {"ids": PROMPT * 30}, REFUSED),
        ("mlx", "python", {"max_tokens": 5000}, FINE),
        ("vllm", "python", {"max_tokens": 5000}, FINE),
        ("sglang", "python", {"max_tokens": 5000}, FINE),
        ("vllm", "python", {"max_tokens": 0}, REFUSED),
        ("vllm", "rust", {"max_tokens": 0}, REFUSED),
        ("vllm", "python", {"temperature": -1.0}, REFUSED),
        ("vllm", "rust", {"top_p": 2.0}, REFUSED),
        ("mlx", "python", {"top_p": 2.0}, FINE),
        ("vllm", "python", {"n": 2, "temperature": 0.0}, REFUSED),
        ("sglang", "python", {"n": 2, "temperature": 0.0}, FINE),
        ("sglang", "python", {"top_p": 2.0}, FINE),
        ("mlx", "python", {"logprobs": 1000}, FINE),
        ("vllm", "python", {"logprobs": 1000}, REFUSED),
        ("vllm", "rust", {"logprobs": 1000}, FINE),
        ("mlx", "python", {"ids": [], "text": "hi"}, REFUSED),
        ("vllm", "python", {"ids": [], "text": "hi"}, FINE),
        ("vllm", "rust", {"ids": [], "text": "hi"}, REFUSED),
    ],
)
def test_a_deadly_request_meets_the_fate_it_meets_in_real_life(
    contract: str, servicer: str, fields: dict[str, Any], code: Code
) -> None:
    simulation = Simulation(contract, servicer)
    other = simulation.start(**ENDLESS, request_id="other")
    fields = {"stream": True, "max_tokens": 4, **fields}
    call = simulation.run(simulation.start(**fields), patience_s=5)
    assert call.end is not None
    assert call.end.code is code
    lives = code not in (GONE, DEAD)
    assert (simulation.engine.died is None) is (code is not GONE)
    assert (other.end is None) is lives
    if code is GONE:
        assert simulation.deaths == [139 if contract == "mlx" else 1]
        assert other.end is not None
        assert other.end.how is How.CLOSE
    if code is DEAD:
        assert other.end is not None
        assert other.end.code is DEAD
        after = simulation.generate()
        assert after.end is not None
        assert after.end.code is DEAD
        assert not simulation.ask("HealthCheck").healthy
    simulation.engine.check()


def test_a_prompt_without_ids_wedges_mlx_until_its_caller_gives_up() -> None:
    simulation = Simulation("mlx")
    other = simulation.start(**ENDLESS, request_id="other")
    simulation.face.advance(0.1)
    heard = len(other.messages)
    poison = simulation.start([], max_tokens=2)
    simulation.face.advance(5.0)
    assert (len(other.messages), poison.messages, poison.end) == (heard, [], None)
    simulation.face.cancel(poison)
    simulation.face.advance(0.1)
    assert heard < len(other.messages) <= heard + 21
    simulation.engine.check()


def test_no_tokens_wanted_is_one_token_in_mlx_and_an_empty_chunk_in_sglang() -> None:
    mlx = Simulation("mlx")
    assert len(mlx.chunks(mlx.generate(max_tokens=0))) == 1
    sglang = Simulation("sglang")
    call = sglang.generate(max_tokens=0)
    assert sglang.chunks(call) == [{"prompt_tokens": len(PROMPT)}]
    assert sglang.completes(call) == [{"finish_reason": "length", "prompt_tokens": len(PROMPT)}]


@pytest.mark.parametrize(
    ("contract", "fields"),
    [
        ("mlx", {"temperature": -1.0}),
        ("sglang", {"temperature": -1.0}),
        ("sglang", {"repetition_penalty": None}),
    ],
)
def test_noise_comes_out_of_a_request_that_says_nonsense(
    contract: str, fields: dict[str, Any]
) -> None:
    simulation = Simulation(contract)
    said = simulation.chunks(simulation.generate(max_tokens=8))
    noise = simulation.chunks(simulation.generate(max_tokens=8, **fields))
    assert [one["token_ids"] for one in noise] != [one["token_ids"] for one in said]


@pytest.mark.parametrize(("killers", "code"), [("refuse", REFUSED), ("die", GONE), ("hang", None)])
def test_the_fate_of_deadly_requests_is_a_knob(killers: str, code: Code | None) -> None:
    simulation = Simulation("vllm", killers=killers)
    call = simulation.run(simulation.start([]), patience_s=5)
    assert (call.end and call.end.code) == code


@pytest.mark.parametrize("contract", ["sglang", "tokenspeed"])
def test_the_longest_prompt_is_shorter_than_the_context_by_six(contract: str) -> None:
    simulation = Simulation(contract)
    for length, code in ((2042, FINE), (2043, REFUSED)):
        call = simulation.generate([40] * length, max_tokens=1)
        assert call.end is not None
        assert call.end.code is code


def test_a_queue_that_is_full_refuses() -> None:
    simulation = Simulation("vllm", slots=1, waiting_max=2)
    calls = [simulation.start(**ENDLESS, request_id=str(number)) for number in range(4)]
    assert [call.end and call.end.code for call in calls] == [
        None,
        None,
        None,
        Code.RESOURCE_EXHAUSTED,
    ]
