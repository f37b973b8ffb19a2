"""Log probabilities, where each contract keeps them."""

import pytest

from support.engines.simulated_engine import PROMPT, Simulation


@pytest.mark.parametrize("contract", ["mlx", "vllm", "sglang", "tokenspeed"])
def test_columns_hold_one_entry_a_token(contract: str) -> None:
    simulation = Simulation(contract)
    chunks = simulation.chunks(simulation.generate(max_tokens=2, logprobs=2))
    for chunk in chunks:
        columns = chunk["output_logprobs"]
        assert columns["token_ids"] == chunk["token_ids"]
        assert columns["token_logprobs"] == [0.0]
        (top,) = columns["top_logprobs"]
        assert top["token_ids"][0] == chunk["token_ids"][0]
        assert top["values"] == [0.0, -79.0]


def test_trtllm_keeps_rows() -> None:
    simulation = Simulation("trtllm")
    chunks = simulation.chunks(simulation.generate(max_tokens=1, logprobs=2))
    (row,) = chunks[0]["logprobs"]
    assert row["token_id"] == chunks[0]["token_ids"][0]
    assert [one.get("logprob", 0.0) for one in row["top_logprobs"]] == [0.0, -79.0]


@pytest.mark.parametrize(
    ("contract", "told"), [("mlx", False), ("vllm", True), ("sglang", True), ("tokenspeed", True)]
)
def test_zero_alternatives_mean_the_token_alone_or_nothing(contract: str, told: bool) -> None:
    simulation = Simulation(contract)
    (chunk,) = simulation.chunks(simulation.generate(max_tokens=1, logprobs=0))
    assert ("output_logprobs" in chunk) is told
    tops = chunk.get("output_logprobs", {}).get("top_logprobs", [])
    assert tops == ([{}] if contract == "tokenspeed" else [])


@pytest.mark.parametrize(
    ("contract", "servicer", "entries"),
    [
        ("mlx", "python", 0),
        ("vllm", "python", 1),
        ("vllm", "rust", 3),
        ("sglang", "python", 1),
        ("tokenspeed", "python", 1),
    ],
)
def test_a_complete_carries_those_of_the_ids_it_repeats(
    contract: str, servicer: str, entries: int
) -> None:
    simulation = Simulation(contract, servicer)
    (complete,) = simulation.completes(simulation.generate(max_tokens=3, logprobs=1))
    columns = complete.get("output_logprobs", {})
    assert len(columns.get("token_ids", [])) == entries


def test_a_whole_answer_carries_all_of_them() -> None:
    simulation = Simulation("mlx")
    (complete,) = simulation.completes(simulation.generate(stream=None, max_tokens=4, logprobs=1))
    assert complete["output_logprobs"]["token_ids"] == complete["output_ids"]


PROMPT_TOO = {"vllm": {"prompt_logprobs": 1}, "sglang": {"logprobs": 1, "logprobs_from": 0}}


@pytest.mark.parametrize("contract", PROMPT_TOO)
def test_a_prompt_has_its_own_in_the_first_chunk_and_in_the_complete(contract: str) -> None:
    simulation = Simulation(contract)
    call = simulation.generate(None, max_tokens=2, **PROMPT_TOO[contract])
    first, second = simulation.chunks(call)
    assert first["input_logprobs"]["token_ids"] == PROMPT
    assert first["input_logprobs"]["token_logprobs"][:2] == [{}, {"value": 0.0}]
    assert "input_logprobs" not in second
    assert simulation.completes(call)[0]["input_logprobs"]["token_ids"] == PROMPT


def test_more_alternatives_than_vllm_python_allows_are_refused_and_mlx_takes_any_number() -> None:
    refused = Simulation("vllm").generate(logprobs=21)
    assert refused.end is not None
    assert refused.end.code == 3
    simulation = Simulation("mlx")
    (chunk,) = simulation.chunks(simulation.generate(max_tokens=1, logprobs=1000))
    assert len(chunk["output_logprobs"]["top_logprobs"][0]["values"]) == 1000
