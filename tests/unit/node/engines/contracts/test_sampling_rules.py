"""What a contract cannot do is named, not dropped."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.request import Constraint, Sampling
from smg_node.engines.contracts.mlx import MlxWire
from smg_node.engines.contracts.sampling_rules import (
    LOGPROB_UNKNOWN,
    clean_defaults,
    folded_seed,
    known_logprob,
    refusals,
    with_defaults,
)
from smg_node.engines.contracts.sglang import SglangWire
from smg_node.engines.contracts.trtllm import TrtllmWire
from smg_node.engines.contracts.vllm import VllmWire
from smg_node.engines.engine import Abilities

NOTHING = Abilities(
    stop_strings=False,
    native_n=False,
    seed=False,
    min_tokens=False,
    logit_bias=False,
    logprobs_max=5,
    prompt_logprobs=False,
    constraints=frozenset(),
    adapters=False,
    penalties=False,
    loads=False,
    kv_events=False,
)
CONSTRAINT = Constraint("regex", "a+", "response_format")


@pytest.mark.parametrize(
    ("wish", "field", "fatal"),
    [
        ({"adapter": "mine"}, "adapter", True),
        ({"constraint": CONSTRAINT}, "constraint", True),
        ({"frequency_penalty": 0.5}, "frequency_penalty", True),
        ({"presence_penalty": 0.5}, "frequency_penalty", True),
        ({"repetition_penalty": 1.1}, "frequency_penalty", True),
        ({"logit_bias": {1: 2.0}}, "logit_bias", True),
        ({"logprobs": 6}, "logprobs", True),
        ({"min_tokens": 1}, "min_tokens", True),
        ({"prompt_logprobs": 0}, "prompt_logprobs", True),
        ({"seed": 0}, "seed", False),
    ],
)
def test_each_wish_that_cannot_be_fulfilled_is_named(
    wish: dict[str, Any], field: str, fatal: bool
) -> None:
    (refusal,) = refusals(Sampling(**wish), NOTHING)
    assert (refusal.field, refusal.fatal) == (field, fatal)
    assert hasattr(Sampling(), refusal.field)
    assert refusal.message


def test_what_the_pipeline_does_itself_is_never_refused() -> None:
    sampling = Sampling(n=4, stop=("x",), stop_token_ids=(1,), keep_stop=True, ignore_eos=True)
    assert refusals(sampling, NOTHING) == []


def test_neutral_values_are_no_wishes() -> None:
    neutral = Sampling(repetition_penalty=1.0, logprobs=5, logit_bias={}, min_tokens=0)
    assert refusals(neutral, NOTHING) == []


def test_more_prompt_logprobs_than_there_are_is_refused() -> None:
    able = replace(NOTHING, prompt_logprobs=True)
    assert refusals(Sampling(prompt_logprobs=5), able) == []
    assert [one.field for one in refusals(Sampling(prompt_logprobs=6), able)] == ["prompt_logprobs"]


def test_several_wishes_are_all_named() -> None:
    wishes = Sampling(seed=1, min_tokens=2, constraint=CONSTRAINT)
    named = [one.field for one in refusals(wishes, MlxWire.abilities)]
    assert named == ["constraint", "min_tokens"]
    assert [one.field for one in refusals(wishes, SglangWire.abilities)] == ["seed"]
    assert refusals(wishes, VllmWire.abilities) == []
    assert refusals(wishes, TrtllmWire.abilities) == []


@given(st.integers(min_value=0, max_value=2**31 - 1))
def test_a_seed_that_fits_is_kept(seed: int) -> None:
    assert folded_seed(seed) == seed


@given(st.integers())
def test_any_seed_becomes_31_bits(seed: int) -> None:
    assert 0 <= folded_seed(seed) < 2**31


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_every_bit_of_a_seed_counts(seed: int) -> None:
    for bit in range(64):
        assert folded_seed(seed) != folded_seed(seed ^ (1 << bit))


def test_defaults_fill_only_what_was_not_said() -> None:
    defaults = {"temperature": 0.6, "top_p": 0.9, "top_k": 20.0}
    filled = with_defaults(Sampling(temperature=0.0), defaults)
    assert (filled.temperature, filled.top_p, filled.top_k) == (0.0, 0.9, 20)
    assert isinstance(filled.top_k, int)
    said = Sampling(temperature=1.0, top_p=1.0, top_k=-1)
    assert with_defaults(said, defaults) is said


def test_unbelievable_defaults_are_left_out() -> None:
    raw = {
        "temperature": -1,
        "top_p": 0,
        "top_k": 2**40,
        "min_p": True,
        "repetition_penalty": "1.1",
        "max_tokens": 5,
    }
    assert clean_defaults(raw) == {}
    assert clean_defaults([1]) == {}
    assert clean_defaults({"temperature": float("nan")}) == {}
    assert clean_defaults({"temperature": 0, "top_k": 5}) == {"temperature": 0.0, "top_k": 5.0}


def test_a_logprob_that_json_cannot_carry_is_unknown() -> None:
    assert known_logprob(float("-inf")) == LOGPROB_UNKNOWN
    assert known_logprob(float("nan")) == LOGPROB_UNKNOWN
    assert known_logprob(-0.5) == -0.5
