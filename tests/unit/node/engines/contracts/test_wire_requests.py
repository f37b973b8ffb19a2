"""The exact request each contract is sent, decoded again and compared field by field."""

import pytest
from msgspec.structs import replace

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Constraint, Sampling, token_ids
from smg_node.engines.contracts.wire import Wire
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.grpc.contract_detection import WIRES
from support.engines.engine_bench import PB, sent

FULL = Sampling(
    max_tokens=7,
    min_tokens=2,
    temperature=0.5,
    top_p=0.25,
    top_k=9,
    min_p=0.125,
    frequency_penalty=0.5,
    presence_penalty=-0.5,
    repetition_penalty=1.25,
    seed=2**40 + 5,
    n=3,
    stop=("END", "你好"),
    stop_token_ids=(11, 12),
    ignore_eos=True,
    keep_stop=True,
    skip_special_tokens=False,
    spaces_between_special_tokens=False,
    logit_bias={3: 1.5, 40: -2.0},
    logprobs=4,
    prompt_logprobs=2,
    constraint=Constraint("regex", "a+", "x"),
)
BARE = Sampling(max_tokens=1)
IDS = {"input_ids": [5, 4_000_000_000, 6]}
FOLDED = (2**40 + 5) ^ ((2**40 + 5) >> 31)
FOLDED_31 = FOLDED & 0x7FFFFFFF


def test_everything_there_is_to_say_to_vllm() -> None:
    assert sent(Contract.VLLM, FULL) == {
        "request_id": "smg-1",
        "tokenized": IDS,
        "stream": True,
        "sampling_params": {
            "temperature": 0.5,
            "top_p": 0.25,
            "top_k": 9,
            "min_p": 0.125,
            "frequency_penalty": 0.5,
            "presence_penalty": -0.5,
            "repetition_penalty": 1.25,
            "max_tokens": 7,
            "min_tokens": 2,
            "stop": ["END", "你好"],
            "stop_token_ids": [11, 12],
            "include_stop_str_in_output": True,
            "ignore_eos": True,
            "n": 3,
            "logprobs": 4,
            "prompt_logprobs": 2,
            "seed": FOLDED_31,
            "logit_bias": {"3": 1.5, "40": -2.0},
            "regex": "a+",
        },
    }


def test_a_bare_request_to_vllm_leaves_its_defaults_alone() -> None:
    assert sent(Contract.VLLM, BARE, stream=False) == {
        "request_id": "smg-1",
        "tokenized": IDS,
        "sampling_params": {
            "max_tokens": 1,
            "n": 1,
            "skip_special_tokens": True,
            "spaces_between_special_tokens": True,
        },
    }


def test_everything_there_is_to_say_to_sglang() -> None:
    assert sent(Contract.SGLANG, FULL) == {
        "request_id": "smg-1",
        "tokenized": IDS,
        "stream": True,
        "log_metrics": True,
        "return_logprob": True,
        "top_logprobs_num": 4,
        "sampling_params": {
            "temperature": 0.5,
            "top_p": 0.25,
            "top_k": 9,
            "min_p": 0.125,
            "frequency_penalty": 0.5,
            "presence_penalty": -0.5,
            "repetition_penalty": 1.25,
            "max_new_tokens": 7,
            "min_new_tokens": 2,
            "stop": ["END", "你好"],
            "stop_token_ids": [11, 12],
            "no_stop_trim": True,
            "ignore_eos": True,
            "n": 3,
            "logit_bias": {"3": 1.5, "40": -2.0},
            "regex": "a+",
        },
    }


def test_a_bare_request_to_sglang_says_every_scalar_because_zeros_are_literal() -> None:
    assert sent(Contract.SGLANG, BARE) == {
        "request_id": "smg-1",
        "tokenized": IDS,
        "stream": True,
        "log_metrics": True,
        "logprob_start_len": -1,
        "sampling_params": {
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": -1,
            "repetition_penalty": 1.0,
            "max_new_tokens": 1,
            "n": 1,
            "skip_special_tokens": True,
            "spaces_between_special_tokens": True,
        },
    }


def test_everything_there_is_to_say_to_mlx() -> None:
    sampling = replace(FULL, n=1, min_tokens=0, constraint=None, prompt_logprobs=None)
    assert sent(Contract.MLX, sampling) == {
        "request_id": "smg-1",
        "tokenized": IDS,
        "stream": True,
        "sampling_params": {
            "temperature": 0.5,
            "top_p": 0.25,
            "top_k": 9,
            "min_p": 0.125,
            "frequency_penalty": 0.5,
            "presence_penalty": -0.5,
            "repetition_penalty": 1.25,
            "max_tokens": 7,
            "stop_token_ids": [11, 12],
            "ignore_eos": True,
            "logprobs": 4,
            "seed": FOLDED_31,
            "logit_bias": {"3": 1.5, "40": -2.0},
        },
    }


def test_a_bare_request_to_mlx() -> None:
    assert sent(Contract.MLX, BARE)["sampling_params"] == {"max_tokens": 1}


def test_mlx_is_never_asked_for_several_answers() -> None:
    with pytest.raises(AssertionError):
        sent(Contract.MLX, Sampling(max_tokens=1, n=2))


def test_mlx_reads_zero_logprobs_as_off_so_one_is_asked_for() -> None:
    assert sent(Contract.MLX, replace(BARE, logprobs=0))["sampling_params"]["logprobs"] == 1


def test_everything_there_is_to_say_to_tensorrt_llm() -> None:
    said = sent(Contract.TRTLLM, replace(FULL, adapter="17"), bias_width=41)
    bias = said.pop("embedding_bias")
    assert (len(bias), bias[3], bias[40], sum(bias)) == (41, 1.5, -2.0, -0.5)
    assert said == {
        "request_id": "smg-1",
        "tokenized": {"input_token_ids": IDS["input_ids"]},
        "streaming": True,
        "max_tokens": 7,
        "ignore_eos": True,
        "include_stop_token_in_output": True,
        "stop": ["END", "你好"],
        "stop_token_ids": [11, 12],
        "sampling_config": {
            "beam_width": 1,
            "num_return_sequences": 3,
            "temperature": 0.5,
            "top_p": 0.25,
            "top_k": 9,
            "min_p": 0.125,
            "min_tokens": 2,
            "frequency_penalty": 0.5,
            "presence_penalty": -0.5,
            "repetition_penalty": 1.25,
            "seed": str(2**40 + 5),
        },
        "output_config": {
            "exclude_input_from_output": True,
            "logprobs": 4,
            "prompt_logprobs": 2,
        },
        "guided_decoding": {"guide_type": "GUIDE_TYPE_REGEX", "guide": "a+"},
        "lora_config": {"task_id": "17"},
    }


def test_a_bare_request_to_tensorrt_llm_asks_for_sampling_because_silence_means_greedy() -> None:
    said = sent(Contract.TRTLLM, BARE)
    assert said["max_tokens"] == 1
    assert said["include_stop_token_in_output"] is True
    assert said["sampling_config"] == {
        "beam_width": 1,
        "num_return_sequences": 1,
        "temperature": 1.0,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
    }


@pytest.mark.parametrize(
    ("sampling", "width", "code"),
    [
        (replace(BARE, logit_bias={1: 1.0}), None, "unsupported_parameter"),
        (replace(BARE, logit_bias={9: 1.0}), 9, "invalid_value"),
        (replace(BARE, adapter="my-lora"), None, "invalid_value"),
        (replace(BARE, adapter="0"), None, "invalid_value"),
        (replace(BARE, adapter="9" * 40), None, "invalid_value"),
    ],
)
def test_tensorrt_llm_refuses_what_it_has_no_place_for(
    sampling: Sampling, width: int | None, code: str
) -> None:
    with pytest.raises(SmgError) as raised:
        sent(Contract.TRTLLM, sampling, bias_width=width)
    assert (raised.value.code, raised.value.status) == (code, 400)


def test_everything_there_is_to_say_to_tokenspeed() -> None:
    assert sent(Contract.TOKENSPEED, replace(FULL, prompt_logprobs=None)) == {
        "request_id": "smg-1",
        "tokenized": IDS,
        "stream": True,
        "return_logprob": True,
        "top_logprobs_num": 4,
        "sampling_params": {
            "temperature": 0.5,
            "top_p": 0.25,
            "top_k": 9,
            "min_p": 0.125,
            "frequency_penalty": 0.5,
            "presence_penalty": -0.5,
            "repetition_penalty": 1.25,
            "max_new_tokens": 7,
            "min_new_tokens": 2,
            "stop": ["END", "你好"],
            "stop_token_ids": [11, 12],
            "no_stop_trim": True,
            "ignore_eos": True,
            "n": 3,
            "sampling_seed": str(2**40 + 5),
            "logit_bias": {"3": 1.5, "40": -2.0},
            "regex": "a+",
        },
    }


def test_a_bare_request_to_tokenspeed_keeps_stop_ids_in_the_answer() -> None:
    params = sent(Contract.TOKENSPEED, BARE)["sampling_params"]
    assert params["no_stop_trim"] is True
    assert not {"temperature", "top_p", "top_k", "min_p", "repetition_penalty"} & set(params)


@pytest.mark.parametrize("contract", list(WIRES))
def test_greedy_is_said_and_not_lost_as_a_zero(contract: Contract) -> None:
    request = EngineRequest("a", token_ids([1]), replace(BARE, temperature=0.0), True, 1.0)
    message = PB[contract].GenerateRequest.FromString(
        WIRES[contract]().generate(request, bias_width=None)
    )
    params = message.sampling_config if contract is Contract.TRTLLM else message.sampling_params
    assert params.temperature == 0.0
    if contract is not Contract.SGLANG:  # whose plain zero is a zero
        assert params.HasField("temperature")


@pytest.mark.parametrize("contract", list(WIRES))
@pytest.mark.parametrize("top_k", [-1, 0])
def test_top_k_off_is_off(contract: Contract, top_k: int) -> None:
    said = sent(contract, replace(BARE, top_k=top_k))
    params = said["sampling_config" if contract is Contract.TRTLLM else "sampling_params"]
    off = {Contract.SGLANG: -1, Contract.TOKENSPEED: -1, Contract.TRTLLM: 0}
    assert params.get("top_k") == off.get(contract)


@pytest.mark.parametrize("contract", list(WIRES))
@pytest.mark.parametrize("seed", [-1, -(2**70), 2**64, 0])
def test_any_seed_can_be_sent(contract: Contract, seed: int) -> None:
    assert sent(contract, replace(BARE, seed=seed))


@pytest.mark.parametrize("contract", [Contract.VLLM, Contract.SGLANG, Contract.TOKENSPEED])
def test_zero_logprobs_means_the_token_drawn_alone(contract: Contract) -> None:
    said = sent(contract, replace(BARE, logprobs=0))
    if contract is Contract.VLLM:
        assert said["sampling_params"]["logprobs"] == 0
    else:
        assert said["return_logprob"] is True
        assert "top_logprobs_num" not in said


def test_sglang_starts_log_probabilities_at_the_prompt_only_if_asked() -> None:
    def start(sampling: Sampling) -> object:
        return sent(Contract.SGLANG, sampling).get("logprob_start_len", 0)

    assert start(BARE) == -1
    assert start(replace(BARE, logprobs=3)) == -1
    assert start(replace(BARE, prompt_logprobs=3)) == 0
    assert sent(Contract.SGLANG, replace(BARE, prompt_logprobs=3))["top_logprobs_num"] == 3


def test_an_adapter_goes_to_sglang_by_its_id() -> None:
    assert sent(Contract.SGLANG, replace(BARE, adapter="law"))["lora_id"] == "law"


@pytest.mark.parametrize("contract", list(WIRES))
def test_an_abort_names_the_request(contract: Contract) -> None:
    wire: Wire = WIRES[contract]()
    message = PB[contract].AbortRequest.FromString(wire.abort("smg-9"))
    named = getattr(message, "request_ids", None) or [message.request_id]
    assert list(named) == ["smg-9"]
    services = PB[contract].DESCRIPTOR.services_by_name.values()
    assert wire.service in {one.full_name for one in services}


@pytest.mark.parametrize("contract", list(WIRES))
def test_abilities_agree_with_the_services_and_fields_of_the_contract(contract: Contract) -> None:
    wire = WIRES[contract]
    message = PB[contract].GenerateRequest.DESCRIPTOR
    (service,) = message.file.services_by_name.values()
    params = (
        message.fields_by_name.get("sampling_params") or message.fields_by_name["sampling_config"]
    )
    fields = set(message.fields_by_name) | set(params.message_type.fields_by_name)
    able = wire.abilities

    assert able.loads is ("GetLoads" in service.methods_by_name)
    assert able.kv_events is ("SubscribeKvEvents" in service.methods_by_name)
    assert able.stop_strings is ("stop" in fields)
    assert able.native_n is bool({"n", "num_return_sequences"} & fields)
    assert able.seed is bool({"seed", "sampling_seed"} & fields)
    assert able.min_tokens is bool({"min_tokens", "min_new_tokens"} & fields)
    assert able.logit_bias is bool({"logit_bias", "embedding_bias"} & fields)
    assert able.adapters is bool({"lora_id", "lora_config"} & fields)
