"""What a stream looks like in each servicer's hands, row by row of the engines' specification."""

from typing import Any

import pytest

from support.engines.simulated_engine import FLAVOURS, PROMPT, Simulation, bundle

STREAMING = [pytest.param(*flavour, id="-".join(flavour)) for flavour in FLAVOURS]
RUNNING_TOTALS = [one for one in FLAVOURS if one != ("vllm", "python")]


def ids_of(complete: dict[str, Any]) -> list[int]:
    ids: list[int] = complete.get("output_ids", complete.get("output_token_ids", []))
    return ids


def fixed() -> list[int]:
    return list(Simulation().engine.script.answer(PROMPT, 0, 0).head)


@pytest.mark.parametrize(("contract", "servicer"), STREAMING)
def test_the_chunks_carry_each_id_once_and_in_order(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    chunks = simulation.chunks(simulation.generate(max_tokens=9))
    assert [token for chunk in chunks for token in chunk["token_ids"]] == fixed()[:9]
    assert all(len(chunk["token_ids"]) == 1 for chunk in chunks)


@pytest.mark.parametrize(("contract", "servicer"), STREAMING)
def test_every_message_counts_the_prompt(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    call = simulation.generate(max_tokens=3)
    messages = simulation.chunks(call) + simulation.completes(call)
    assert [one["prompt_tokens"] for one in messages] == [len(PROMPT)] * 4


@pytest.mark.parametrize(("contract", "servicer"), RUNNING_TOTALS)
def test_most_chunks_count_all_tokens_so_far(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    call = simulation.generate(max_tokens=3)
    assert [one["completion_tokens"] for one in simulation.chunks(call)] == [1, 2, 3]
    assert simulation.completes(call)[0]["completion_tokens"] == 3


def test_chunks_of_vllm_python_and_its_complete_count_only_their_own_tokens() -> None:
    simulation = Simulation("vllm")
    call = simulation.generate(max_tokens=3)
    assert [one["completion_tokens"] for one in simulation.chunks(call)] == [1, 1, 1]
    assert simulation.completes(call)[0]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("contract", "servicer", "repeated"),
    [
        ("mlx", "python", 0),
        ("vllm", "python", 1),
        ("vllm", "rust", 5),
        ("sglang", "python", 1),
        ("trtllm", "python", 5),
        ("tokenspeed", "python", 1),
    ],
)
def test_a_complete_after_chunks_repeats_nothing_the_last_delta_or_everything(
    contract: str, servicer: str, repeated: int
) -> None:
    simulation = Simulation(contract, servicer)
    (complete,) = simulation.completes(simulation.generate(max_tokens=5))
    assert ids_of(complete) == fixed()[5 - repeated : 5]
    assert complete["finish_reason"] == "length"


@pytest.mark.parametrize(("contract", "servicer"), STREAMING)
def test_an_answer_that_is_not_streamed_is_one_complete_with_all_ids(
    contract: str, servicer: str
) -> None:
    simulation = Simulation(contract, servicer)
    call = simulation.generate(stream=None, max_tokens=5)
    assert not simulation.chunks(call)
    (complete,) = simulation.completes(call)
    assert ids_of(complete) == fixed()[:5]
    assert complete["completion_tokens"] == 5


@pytest.mark.parametrize(
    ("contract", "servicer", "shown", "counted", "matched"),
    [
        ("mlx", "python", True, True, "matched_stop_token_id"),
        ("vllm", "python", True, True, None),
        ("vllm", "rust", True, True, None),
        ("sglang", "python", True, True, "matched_token_id"),
        ("trtllm", "python", False, False, None),
        ("tokenspeed", "python", False, True, "matched_token_id"),
    ],
)
def test_the_end_of_text_is_shown_counted_and_reported_as_the_servicer_does_it(
    contract: str, servicer: str, shown: bool, counted: bool, matched: str | None
) -> None:
    simulation = Simulation(contract, servicer)
    (eos,) = bundle().eos_ids
    whole = simulation.completes(simulation.generate(stream=None))[0]
    body = fixed()[:-1]
    assert ids_of(whole) == ([*body, eos] if shown else body)
    assert whole["completion_tokens"] == len(body) + counted
    assert whole["finish_reason"] == "stop"
    assert {key for key in whole if key.startswith("matched")} == ({matched} if matched else set())
    streamed = simulation.chunks(simulation.generate())
    assert [token for chunk in streamed for token in chunk["token_ids"]] == ids_of(whole)


@pytest.mark.parametrize("contract", ["trtllm", "tokenspeed"])
def test_a_trimmed_end_of_text_stays_where_the_request_keeps_it(contract: str) -> None:
    simulation = Simulation(contract)
    (complete,) = simulation.completes(simulation.generate(stream=None, keep_stop=True))
    assert ids_of(complete)[-1] == bundle().eos_ids[0]


def test_the_first_chunk_of_tokenspeed_may_be_empty_and_trtllm_sends_none() -> None:
    chunks = {}
    for contract in ("tokenspeed", "trtllm"):
        simulation = Simulation(contract, script="echo")
        # An echo of the end-of-text id alone: the answer ends with its first token.
        call = simulation.generate([bundle().eos_ids[0]])
        chunks[contract] = simulation.chunks(call)
        assert len(simulation.completes(call)) == 1
    assert [one.get("token_ids", []) for one in chunks["tokenspeed"]] == [[]]
    assert chunks["trtllm"] == []


@pytest.mark.parametrize(("contract", "servicer"), STREAMING)
def test_a_stop_id_ends_the_answer_and_is_reported(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    stop = fixed()[4]
    at = fixed().index(stop) + 1
    (complete,) = simulation.completes(simulation.generate(stream=None, stop_ids=[stop]))
    assert complete["finish_reason"] == "stop"
    assert complete.get("matched_token_id", complete.get("matched_stop_token_id")) == stop
    keeps = simulation.engine.manners.end_ids_in_output
    assert ids_of(complete) == fixed()[: at if keeps else at - 1]


@pytest.mark.parametrize(("contract", "servicer"), STREAMING[1:])
def test_a_stop_string_ends_the_answer_where_its_last_token_is(
    contract: str, servicer: str
) -> None:
    simulation = Simulation(contract, servicer)
    (complete,) = simulation.completes(simulation.generate(stream=None, stop=["zebras"]))
    assert complete["matched_stop_str"] == "zebras"
    assert complete["finish_reason"] == ("stop_word" if contract == "trtllm" else "stop")
    text = bundle().decode(ids_of(complete))
    assert text.endswith("quick " if contract == "trtllm" else "zebras")


def test_sglang_holds_tokens_back_that_may_begin_a_stop_string() -> None:
    simulation = Simulation("sglang")
    call = simulation.generate(stop=["zebras"])
    chunks = simulation.chunks(call)
    held = chunks[-1]["token_ids"]
    assert bundle().decode(held).strip() == "zebras"
    assert len(held) > 1
    assert simulation.completes(call)[0]["output_ids"] == held


def test_other_servicers_hold_nothing_back() -> None:
    simulation = Simulation("vllm")
    chunks = simulation.chunks(simulation.generate(stop=["zebras"]))
    assert all(len(chunk["token_ids"]) == 1 for chunk in chunks)


def test_mlx_knows_neither_stop_strings_nor_several_choices() -> None:
    words = Simulation("mlx").words
    names = set(words.SamplingParams.DESCRIPTOR.fields_by_name)
    assert not names & {"stop", "n"}


@pytest.mark.parametrize("contract", ["vllm", "sglang", "tokenspeed"])
def test_choices_interleave_and_each_has_its_own_complete(contract: str) -> None:
    simulation = Simulation(contract)
    call = simulation.generate(n=2, temperature=1.0, max_tokens=3)
    assert [one.get("index", 0) for one in simulation.chunks(call)] == [0, 1, 0, 1, 0, 1]
    assert [one.get("index", 0) for one in simulation.completes(call)] == [0, 1]


def test_trtllm_calls_the_index_by_another_name_and_completes_all_choices_together() -> None:
    simulation = Simulation("trtllm", script="random")
    call = simulation.generate(n=2, temperature=1.0, max_tokens=3)
    assert [one.get("sequence_index", 0) for one in simulation.chunks(call)] == [0, 1, 0, 1, 0, 1]
    kinds = ["chunk" in one for one in simulation.read(call)]
    assert kinds == [True] * 6 + [False] * 2


@pytest.mark.parametrize(
    ("contract", "block", "cached"),
    [("mlx", 32, 0), ("vllm", 32, 64), ("sglang", 16, 64), ("trtllm", 32, 64), ("sglang", 1, 69)],
)
def test_cached_tokens_are_whole_blocks_and_never_the_whole_prompt(
    contract: str, block: int, cached: int
) -> None:
    simulation = Simulation(contract, block_size=block, blocks=16384 // block)
    first, second = (
        simulation.completes(simulation.generate(max_tokens=2))[0].get("cached_tokens", 0)
        for _ in range(2)
    )
    assert (first, second) == (0, cached)


def test_sglang_prefills_several_choices_once() -> None:
    simulation = Simulation("sglang")
    call = simulation.generate(n=3, temperature=1.0, max_tokens=2)
    assert [one["cached_tokens"] for one in simulation.completes(call)] == [64, 64, 64]


@pytest.mark.parametrize(("contract", "servicer"), STREAMING)
def test_only_some_servicers_repeat_the_request_id(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    named = {one.get("request_id") for one in simulation.read(simulation.generate(max_tokens=1))}
    assert named == ({"test"} if contract in ("sglang", "trtllm", "tokenspeed") else {None})


def test_vllm_merges_what_a_slow_reader_left_and_mlx_never_does() -> None:
    sizes = {}
    for contract in ("vllm", "mlx"):
        simulation = Simulation(contract)
        started = simulation.start(max_tokens=6)
        call = started.call
        call.bell = lambda _: None
        simulation.face.advance(1.0)
        messages = call.take(lagging=True)
        read = [simulation.words.GenerateResponse.FromString(raw) for raw in messages]
        sizes[contract] = [len(one.chunk.token_ids) for one in read if one.HasField("chunk")]
        repeated = len(read[-1].complete.output_ids)
        assert repeated == (6 if contract == "vllm" else 0)
    assert sizes == {"vllm": [6], "mlx": [1] * 6}


def test_tokens_can_be_told_to_share_chunks() -> None:
    simulation = Simulation("vllm", coalesce=4)
    chunks = simulation.chunks(simulation.generate(max_tokens=10))
    assert [len(chunk["token_ids"]) for chunk in chunks] == [4, 4, 2]


def test_a_tool_call_ends_as_one_in_tokenspeed_only() -> None:
    reasons = {
        contract: simulation.completes(simulation.generate())[0]["finish_reason"]
        for contract in ("vllm", "tokenspeed")
        for simulation in [Simulation(contract, script="tool-call")]
    }
    assert reasons == {"vllm": "stop", "tokenspeed": "tool_calls"}


def test_a_further_end_of_text_id_is_reported_by_vllm() -> None:
    (further,) = bundle().further_eos_ids
    simulation = Simulation("vllm", script="echo")
    (complete,) = simulation.completes(simulation.generate([40, 41, further]))
    assert complete["matched_token_id"] == further


def test_without_a_limit_the_answer_fills_the_context() -> None:
    simulation = Simulation("vllm", script="endless", step_s=0.0)
    (complete,) = simulation.completes(simulation.generate(stream=None, max_tokens=None))
    assert complete["completion_tokens"] == 2048 - len(PROMPT)


def test_an_engine_told_to_ignore_the_end_goes_on_past_it() -> None:
    simulation = Simulation("vllm")
    length = len(fixed()) + 20
    (complete,) = simulation.completes(
        simulation.generate(stream=None, ignore_eos=True, max_tokens=length)
    )
    assert ids_of(complete)[: len(fixed())] == fixed()
    assert (complete["completion_tokens"], complete["finish_reason"]) == (length, "length")


def test_what_would_end_the_answer_is_not_printed_under_a_minimum() -> None:
    simulation = Simulation("vllm")
    stop, (eos,) = fixed()[1], bundle().eos_ids
    (early,) = simulation.completes(simulation.generate(stream=None, stop_ids=[stop]))
    (late,) = simulation.completes(
        simulation.generate(stream=None, stop_ids=[stop], min_tokens=90, max_tokens=100)
    )
    assert early["completion_tokens"] == 2
    assert not {stop, eos} & set(late["output_ids"])
    assert (late["completion_tokens"], late["finish_reason"]) == (100, "length")
    (enough,) = simulation.completes(simulation.generate(stream=None, min_tokens=3))
    assert enough["output_ids"] == fixed()


def test_only_sglang_forgets_which_choice_a_whole_answer_is() -> None:
    indexes = {}
    for contract in ("vllm", "sglang"):
        simulation = Simulation(contract)
        call = simulation.generate(stream=None, n=2, temperature=1.0, max_tokens=3)
        indexes[contract] = [one.get("index", 0) for one in simulation.completes(call)]
    assert indexes == {"vllm": [0, 1], "sglang": [0, 0]}
