"""Every kind of constraint, in every contract that has a place for it."""

import json
from typing import Any

import pytest

from smg_node.core.generation.request import Constraint, ConstraintKind, Sampling
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from support.engines.engine_bench import sent

CHOICES = json.dumps(["yes", "no (maybe)", "a|b\\c"])
PATTERN = "(yes|no \\(maybe\\)|a\\|b\\\\c)"
SRT = {
    "json_object": ("json_schema", '{"type":"object"}'),
    "json_schema": ("json_schema", "V"),
    "regex": ("regex", "V"),
    "ebnf": ("ebnf_grammar", "V"),
    "structural_tag": ("structural_tag", "V"),
    "choice": ("regex", PATTERN),
}
VLLM: dict[str, tuple[str, Any]] = {
    "json_object": ("json_object", True),
    "json_schema": ("json_schema", "V"),
    "regex": ("regex", "V"),
    "ebnf": ("grammar", "V"),
    "structural_tag": ("structural_tag", "V"),
    "choice": ("choice", {"choices": json.loads(CHOICES)}),
}
TRTLLM = {
    "json_object": ("GUIDE_TYPE_JSON", "json"),
    "json_schema": ("GUIDE_TYPE_JSON_SCHEMA", "V"),
    "regex": ("GUIDE_TYPE_REGEX", "V"),
    "ebnf": ("GUIDE_TYPE_EBNF_GRAMMAR", "V"),
    "structural_tag": ("GUIDE_TYPE_STRUCTURAL_TAG", "V"),
    "choice": ("GUIDE_TYPE_REGEX", PATTERN),
}
KINDS: list[ConstraintKind] = [
    "json_object",
    "json_schema",
    "regex",
    "ebnf",
    "structural_tag",
    "choice",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_constraint_in_every_contract_that_has_it(kind: ConstraintKind) -> None:
    value = CHOICES if kind == "choice" else "" if kind == "json_object" else "V"
    sampling = Sampling(max_tokens=1, constraint=Constraint(kind, value, "response_format"))

    for contract, table in (
        (Contract.VLLM, VLLM),
        (Contract.SGLANG, SRT),
        (Contract.TOKENSPEED, SRT),
    ):
        field, expected = table[kind]
        assert sent(contract, sampling)["sampling_params"][field] == expected
    guide_type, guide = TRTLLM[kind]
    said = sent(Contract.TRTLLM, sampling)["guided_decoding"]
    assert said == {"guide_type": guide_type, "guide": guide}
    for contract, wire in WIRES.items():
        assert (kind in wire.abilities.constraints) is (contract is not Contract.MLX)
