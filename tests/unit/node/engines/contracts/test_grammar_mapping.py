"""What an engine's grammars can do, and how its contract is told where one begins."""

from dataclasses import replace
from typing import Any

import pytest

from smg_node.core.generation.request import Constraint, GrammarStart, Sampling
from smg_node.engines.contracts.grammar_mapping import grammars_of
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.parsers.constraints.structural_tags import Grammars
from support.engines.engine_bench import sent
from support.engines.fake_engine import card


def grammars(contract: Contract, **server: str) -> Grammars:
    wire = WIRES[contract]
    return grammars_of(replace(card(), contract=contract, server=server), wire.abilities)


@pytest.mark.parametrize("contract", [Contract.SGLANG, Contract.TOKENSPEED])
@pytest.mark.parametrize(
    ("backend", "tags"),
    [
        ("", "formats"),
        ("xgrammar", "formats"),
        ("llguidance", "structures"),
        ("outlines", "none"),
    ],
)
def test_structural_tags_are_what_the_backend_reads(
    contract: Contract, backend: str, tags: str
) -> None:
    found = grammars(contract, grammar_backend=backend)
    assert found.tags == tags
    assert found.kinds == WIRES[contract].abilities.constraints
    assert not found.waits


def test_a_server_without_a_backend_has_no_grammars() -> None:
    assert grammars(Contract.SGLANG, grammar_backend="none") == Grammars()
    assert grammars(Contract.MLX) == Grammars()


def test_who_waits_for_a_thought_to_end() -> None:
    assert grammars(Contract.VLLM, constrained_decoding_start="after_reasoning").waits
    assert not grammars(Contract.VLLM, constrained_decoding_start="first_token").waits
    assert not grammars(Contract.VLLM).waits
    assert grammars(Contract.SGLANG, reasoning_parser="qwen3").can_wait
    assert not grammars(Contract.SGLANG).can_wait
    assert not grammars(Contract.TRTLLM).waits
    assert grammars(Contract.TRTLLM).tags == "formats"


@pytest.mark.parametrize("begins", ["engine", "first_token", "after_thought"])
def test_where_a_grammar_begins_is_said_where_a_contract_has_a_word_for_it(
    begins: GrammarStart,
) -> None:
    tag = Constraint("structural_tag", "{}", "tool_choice", begins=begins)
    sampling = Sampling(max_tokens=1, constraint=tag)
    vllm: dict[str, Any] = sent(Contract.VLLM, sampling)
    assert vllm["sampling_params"]["structural_tag"] == "{}"
    assert vllm["sampling_params"].get("grammar_from_first_token", False) is (
        begins == "first_token"
    )
    sglang = sent(Contract.SGLANG, sampling)
    assert sglang["sampling_params"]["structural_tag"] == "{}"
    assert sglang.get("require_reasoning", False) is (begins == "after_thought")
    tokenspeed = sent(Contract.TOKENSPEED, sampling)
    assert tokenspeed["sampling_params"]["structural_tag"] == "{}"
    trtllm = sent(Contract.TRTLLM, sampling)["guided_decoding"]
    assert trtllm == {"guide_type": "GUIDE_TYPE_STRUCTURAL_TAG", "guide": "{}"}
