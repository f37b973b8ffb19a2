"""What engines say about themselves, with the untruths and the secrets taken out."""

from dataclasses import replace
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.engines.contracts.engine_metadata import default_sampling, flattened, is_secret, whole
from smg_node.engines.contracts.sglang import SglangWire
from smg_node.engines.contracts.vllm import VllmWire
from smg_node.engines.engine import Contract, ModelCard
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.grpc.health_check import health_request, health_status
from smg_node.engines.load import Load
from support.engines.engine_bench import PB


def card(contract: Contract, model: Any, server: Any) -> ModelCard:
    return WIRES[contract]().card(model.SerializeToString(), server.SerializeToString())


def test_vllms_card() -> None:
    pb = PB[Contract.VLLM]
    model = pb.GetModelInfoResponse(
        model_path="/models/m",
        served_model_name="tiny",
        max_context_length=2048,
        max_req_input_len=2048,
        vocab_size=4160,
        eos_token_ids=[4091],
        default_sampling_params_json='{"temperature":0.6,"top_k":20}',
    )
    server = pb.GetServerInfoResponse(
        block_size=32, max_num_seqs=16, uptime_seconds=5, active_requests=3, kv_role="kv_both"
    )
    found = card(Contract.VLLM, model, server)

    assert found == ModelCard(
        contract=Contract.VLLM,
        model="tiny",
        model_path="/models/m",
        context=2048,
        prompt_max=2048,
        vocabulary=4160,
        eos_ids=(4091,),
        sampling_defaults={"temperature": 0.6, "top_k": 20.0},
        server={
            "block_size": "32",
            "max_num_seqs": "16",
            "kv_role": "kv_both",
            "servicer": "python",
        },
        block_size=32,
        running_max=16,
    )


def test_vllms_two_servicers_are_told_apart() -> None:
    pb = PB[Contract.VLLM]
    rust = card(
        Contract.VLLM, pb.GetModelInfoResponse(), pb.GetServerInfoResponse(server_type="vllm-grpc")
    )
    assert rust.server["servicer"] == "rust"
    # Its servicer takes the wish, gives none, and loses the first token of the answer.
    assert rust.abilities == replace(VllmWire.abilities, prompt_logprobs=False)


def test_sglangs_fallbacks_are_not_believed() -> None:
    pb = PB[Contract.SGLANG]
    model = pb.GetModelInfoResponse(
        model_path="/models/m",
        served_model_name="/models/m",
        max_context_length=16384,
        vocab_size=128256,
        bos_token_id=1,
        max_req_input_len=2042,
        eos_token_ids=[4091],
    )
    server = pb.GetServerInfoResponse(sglang_version="0.5.23", server_type="grpc")
    server.server_args.update(
        {
            "context_length": None,
            "page_size": 16,
            "max_running_requests": 32,
            "api_key": "sk-very-secret",
            "nested": {"hf_token": "hf_secret", "deeper": {"kept": True}},
            "store": "redis://user:hunter2@db/0",
        }
    )
    found = card(Contract.SGLANG, model, server)

    assert (found.vocabulary, found.context, found.prompt_max) == (None, None, 2041)
    assert (found.block_size, found.running_max, found.server_version) == (16, 32, "0.5.23")
    assert found.model == "/models/m"
    assert found.server["nested.deeper.kept"] == "true"
    assert "secret" not in str(found.server)
    assert "hunter2" not in str(found.server)


def test_an_operators_own_context_length_for_sglang_is_believed() -> None:
    pb = PB[Contract.SGLANG]
    server = pb.GetServerInfoResponse()
    server.server_args.update({"context_length": 4096})
    assert card(Contract.SGLANG, pb.GetModelInfoResponse(), server).context == 4096


@pytest.mark.parametrize(("said", "adapters"), [({}, False), ({"enable_lora": True}, True)])
def test_sglang_has_adapters_only_where_its_operator_allowed_them(
    said: dict[str, bool], adapters: bool
) -> None:
    pb = PB[Contract.SGLANG]
    server = pb.GetServerInfoResponse()
    server.server_args.update({"enable_lora": None, **said})
    found = card(Contract.SGLANG, pb.GetModelInfoResponse(), server)
    assert (found.abilities or SglangWire.abilities).adapters is adapters


def test_mlxs_card_is_named_by_its_path() -> None:
    pb = PB[Contract.MLX]
    found = card(
        Contract.MLX,
        pb.GetModelInfoResponse(model_path="/m", vocab_size=9, max_context_length=7),
        pb.GetServerInfoResponse(server_type="mlx-grpc", uptime_seconds=1.5),
    )
    assert (found.model, found.vocabulary, found.context, found.prompt_max) == ("/m", 9, 7, None)
    assert found.server == {"server_type": "mlx-grpc"}


def test_tensorrt_llms_vocabulary_is_no_bound_but_the_width_of_a_bias() -> None:
    pb = PB[Contract.TRTLLM]
    model = pb.GetModelInfoResponse(
        model_id="/m", max_input_len=900, max_seq_len=1000, vocab_size=50, max_batch_size=8
    )
    server = pb.GetServerInfoResponse(version="1.2", backend="pytorch")
    found = card(Contract.TRTLLM, model, server)

    assert (found.model, found.context, found.prompt_max) == ("/m", 1000, 900)
    assert (found.vocabulary, found.running_max, found.server_version) == (None, 8, "1.2")
    assert WIRES[Contract.TRTLLM]().bias_width(model.SerializeToString()) == 50
    assert WIRES[Contract.TRTLLM]().bias_width(b"") is None


def test_tokenspeeds_card() -> None:
    pb = PB[Contract.TOKENSPEED]
    model = pb.GetModelInfoResponse(
        model_path="/m", served_model_name="m", max_context_length=10, vocab_size=20
    )
    server = pb.GetServerInfoResponse(tokenspeed_version="2", constrained_decoding="requested")
    server.server_args.update({"page_size": 64, "rl_control_api_key": "x"})
    found = card(Contract.TOKENSPEED, model, server)
    assert (found.model, found.context, found.vocabulary, found.block_size) == ("m", 10, 20, 64)
    assert found.server == {
        "page_size": "64",
        "tokenspeed_version": "2",
        "constrained_decoding": "requested",
    }


@pytest.mark.parametrize("contract", list(WIRES))
def test_an_engine_that_says_nothing_has_an_empty_card(contract: Contract) -> None:
    found = WIRES[contract]().card(b"", b"")
    assert found.contract is contract
    assert (found.model, found.context, found.prompt_max, found.vocabulary) == (
        "",
        None,
        None,
        None,
    )
    assert (found.block_size, found.running_max) == (None, None)


@pytest.mark.parametrize("contract", list(WIRES))
def test_healthy_is_what_the_contract_says(contract: Contract) -> None:
    response = PB[contract].HealthCheckResponse
    fine = response(status="OK") if contract is Contract.TRTLLM else response(healthy=True)
    ill = response(status="dead") if contract is Contract.TRTLLM else response(healthy=False)
    wire = WIRES[contract]()
    assert wire.healthy(fine.SerializeToString())
    assert not wire.healthy(ill.SerializeToString())
    assert not wire.healthy(b"")


@pytest.mark.parametrize("contract", [Contract.VLLM, Contract.SGLANG, Contract.TOKENSPEED])
def test_loads_of_every_rank(contract: Contract) -> None:
    pb = PB[contract]
    busy = pb.SchedulerLoad(
        dp_rank=1,
        num_running_reqs=4,
        num_waiting_reqs=2,
        num_waiting_uncached_tokens=700,
        max_running_requests=32,
        token_usage=0.5,
        gen_throughput=1234.5,
        cache_hit_rate=0.25,
    )
    vague = pb.SchedulerLoad(
        num_running_reqs=1, num_waiting_reqs=1, token_usage=7.0, cache_hit_rate=-1.0
    )
    answer = pb.GetLoadsResponse(loads=[busy, vague]).SerializeToString()

    assert WIRES[contract]().loads(answer) == (
        Load(1, 4, 2, 32, 700, 0.5, 1234.5, 0.25),
        Load(0, 1, 1, None, None, None, None, None),
    )


def test_memory_in_real_use_is_preferred_to_memory_with_leftovers() -> None:
    pb = PB[Contract.TOKENSPEED]
    row = pb.SchedulerLoad(token_usage=0.9, active_token_usage=0.0)
    (load,) = WIRES[Contract.TOKENSPEED]().loads(
        pb.GetLoadsResponse(loads=[row]).SerializeToString()
    )
    assert load.kv_usage == 0.0


@pytest.mark.parametrize("contract", [Contract.MLX, Contract.TRTLLM])
def test_contracts_without_loads_say_so(contract: Contract) -> None:
    with pytest.raises(SmgError) as raised:
        WIRES[contract]().loads_request()
    assert raised.value.status == 501


@pytest.mark.parametrize(
    "key",
    ["api_key", "Admin_API_Key", "ssl_keyfile_password", "hf_token", "token", "client_secret"],
)
def test_names_of_secrets(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", ["max_total_num_tokens", "tokenizer_path", "tp_size", "page_size"])
def test_names_that_only_look_like_secrets(key: str) -> None:
    assert not is_secret(key)


def test_settings_are_flat_bounded_texts() -> None:
    tree: dict[str, Any] = {"a": {"b": {"c": {"d": {"too": "deep"}, "e": 2.0}}}}
    tree |= {"list": [1, "x", None, {"no": 1}], "none": None, "empty": "", "long": "z" * 999}
    tree |= {"f": 0.5, "bool": False, "inf": float("inf")}
    found = flattened(tree)
    assert found == {
        "a.b.c.e": "2",
        "list": "1,x",
        "long": "z" * 256,
        "f": "0.5",
        "bool": "false",
        "inf": "inf",
    }
    assert len(flattened({str(number): number for number in range(2000)})) == 512


def test_numbers_out_of_loose_json() -> None:
    assert [whole(one) for one in (16.0, 0, -1, 0.5, True, None, "16", float("nan"))] == [
        16,
        *[None] * 7,
    ]


@pytest.mark.parametrize("contract", [Contract.SGLANG, Contract.TOKENSPEED])
def test_arguments_that_json_has_no_words_for_are_shown(contract: Contract) -> None:
    server = PB[contract].GetServerInfoResponse()
    server.server_args.update(
        {"never": float("inf"), "what": float("nan"), "list": [1, [None, {"a": False}], "x"]}
    )
    server.server_args.fields["unset"].Clear()
    found = card(contract, PB[contract].GetModelInfoResponse(), server)
    assert found.server == {"never": "inf", "what": "nan", "list": "1,x"}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"temperature":"hot"}', "[" * 5000])
def test_sampling_defaults_that_make_no_sense_are_none(text: str) -> None:
    assert default_sampling(text) == {}


def test_the_standard_health_messages_are_what_protobuf_makes_of_them() -> None:
    from grpc_health.v1 import health_pb2

    for service in ("", "mlx.grpc.engine.MlxEngine"):
        message: Any = health_pb2.HealthCheckRequest(service=service)
        assert health_request(service) == message.SerializeToString()
    for status in range(4):
        response: Any = health_pb2.HealthCheckResponse(status=status)
        assert health_status(response.SerializeToString()) == status
    for garbage in (b"\x08", b"\xff\xff", b"\x08\x81\x01", b"\x0a\x01"):
        assert health_status(garbage) == 0


@pytest.mark.parametrize("contract", [Contract.SGLANG, Contract.TOKENSPEED])
def test_a_process_is_known_by_its_start_and_the_seed_it_drew(contract: Contract) -> None:
    server = PB[contract].GetServerInfoResponse()
    server.start_time.seconds = 1_795_790_987
    for seed, told in ((770_123_456, "1795790987.0 770123456"), (42, "")):
        server.server_args.update({"random_seed": seed})
        assert WIRES[contract]().card(b"", server.SerializeToString()).instance == told


def test_a_vllm_is_known_by_the_name_it_drew() -> None:
    for name in ("3f2b8c1e-9d4a-4c6b-8e1f-0a1b2c3d4e5f", ""):
        server = PB[Contract.VLLM].GetServerInfoResponse(kv_engine_id=name)
        assert WIRES[Contract.VLLM]().card(b"", server.SerializeToString()).instance == name
    given = PB[Contract.VLLM].GetServerInfoResponse(kv_engine_id="decode-0")
    assert WIRES[Contract.VLLM]().card(b"", given.SerializeToString()).instance == ""
