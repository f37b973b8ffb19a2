"""What engines say about themselves, their untruths included."""

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest
from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.protocol.rpc_call import Code
from support.engines.simulated_engine import FLAVOURS, Simulation, bundle

EVERYONE = [pytest.param(*flavour, id="-".join(flavour)) for flavour in FLAVOURS]


def status(simulation: Simulation, service: str, method: str = "Check") -> Any:
    body = b"\x0a" + bytes((len(service),)) + service.encode() if service else b""
    call = simulation.face.start(f"/grpc.health.v1.Health/{method}", body)
    assert call.end is not None
    return call.messages[0] if call.end.code is Code.OK else call.end.code


@pytest.mark.parametrize(("contract", "servicer"), EVERYONE)
def test_the_standard_health_service_knows_the_server_and_its_contract(
    contract: str, servicer: str
) -> None:
    simulation = Simulation(contract, servicer)
    serving = b"\x08\x01"
    assert status(simulation, "") == serving
    assert status(simulation, simulation.engine.contract.service) == serving
    assert status(simulation, "nope") is Code.NOT_FOUND
    assert status(simulation, "nope", "Watch") == b"\x08\x03"


@pytest.mark.parametrize(
    ("contract", "text"),
    [
        ("mlx", "OK"),
        ("vllm", "Health"),
        ("sglang", "Health check passed"),
        ("trtllm", "OK"),
        ("tokenspeed", "Health check passed"),
    ],
)
def test_a_health_check_is_content(contract: str, text: str) -> None:
    answer = Simulation(contract).ask("HealthCheck")
    if contract == "trtllm":
        assert answer.status == text
    else:
        assert (answer.healthy, answer.message) == (True, text)


@pytest.mark.parametrize("contract", ["sglang", "tokenspeed"])
def test_a_deep_health_check_runs_a_token_and_notices_a_full_engine(contract: str) -> None:
    simulation = Simulation(contract, slots=1)
    begun_s = simulation.face.now_s
    assert simulation.ask("HealthCheck").healthy
    assert simulation.face.now_s > begun_s
    simulation.start(max_tokens=1, ignore_eos=True)
    stuck = Simulation(contract, slots=1, faults=["hang"])
    stuck.start()
    answer = stuck.ask("HealthCheck")
    assert not answer.healthy
    assert stuck.face.now_s == pytest.approx(20.0)


@pytest.mark.parametrize(("contract", "servicer"), EVERYONE)
def test_the_model_is_described_as_the_servicer_describes_it(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer, model="tiny")
    told = simulation.ask("GetModelInfo")
    (eos,), further = bundle().eos_ids, bundle().further_eos_ids
    if contract == "trtllm":
        assert (told.max_seq_len, told.vocab_size, told.model_id) == (2048, 4160, bundle().path)
        return
    assert told.served_model_name == (bundle().path if contract == "mlx" else "tiny")
    if contract == "sglang":
        assert (told.vocab_size, told.bos_token_id) == (128256, 1)
        assert told.max_context_length == 512 * 16  # the size of the KV pool
        assert (list(told.eos_token_ids), told.max_req_input_len) == ([], 2042)
        return
    assert (told.vocab_size, told.max_context_length) == (4160, 2048)
    assert list(told.eos_token_ids) == ([eos, *further] if servicer == "rust" else [eos])


@pytest.mark.parametrize(
    ("contract", "servicer", "kind"),
    [("mlx", "python", "mlx-grpc"), ("vllm", "python", ""), ("vllm", "rust", "vllm-grpc")],
)
def test_servers_name_their_type_or_leave_it_empty(contract: str, servicer: str, kind: str) -> None:
    simulation = Simulation(contract, servicer)
    simulation.start(max_tokens=100, ignore_eos=True)
    simulation.face.advance(0.2)
    told = simulation.ask("GetServerInfo")
    assert told.server_type == kind
    assert bool(told.uptime_seconds) is bool(kind)
    assert told.active_requests == (1 if kind else 0)


def test_sglang_puts_everything_into_its_arguments() -> None:
    told = Simulation("sglang", model="tiny").ask("GetServerInfo")
    assert told.server_args["served_model_name"] == "tiny"
    assert told.server_args["max_running_requests"] == 32
    assert told.scheduler_info["max_req_input_len"] == 2042


@pytest.mark.parametrize(("contract", "servicer"), EVERYONE)
def test_methods_of_other_contracts_do_not_exist(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer)
    has = set(simulation.face.service.methods)
    service = simulation.engine.contract.service
    assert (f"/{service}/SubscribeKvEvents" in has) is (contract != "mlx")
    assert (f"/{service}/GetLoads" in has) is (contract not in ("mlx", "trtllm"))
    assert (f"/{service}/FlushCache" in has) is (contract not in ("mlx", "trtllm"))
    for method in ("Embed", "Nonsense"):
        call = simulation.call(method)
        assert call.end is not None
        assert call.end.code is Code.UNIMPLEMENTED


# ── The tokenizer ───────────────────────────────────────────────────────────


def sent(simulation: Simulation) -> tuple[bytes, list[str]]:
    call = simulation.call("GetTokenizer")
    pieces = [common_pb2.GetTokenizerChunk.FromString(raw) for raw in call.messages]
    return b"".join(piece.data for piece in pieces), [piece.sha256 for piece in pieces]


@pytest.mark.parametrize(("contract", "servicer"), EVERYONE)
def test_the_tokenizer_is_a_zip_with_its_sum_on_the_last_piece(
    contract: str, servicer: str
) -> None:
    archive, sums = sent(Simulation(contract, servicer))
    assert sums == [hashlib.sha256(archive).hexdigest()]
    files = zipfile.ZipFile(io.BytesIO(archive))
    assert files.namelist() == [
        "tokenizer.json",
        "tokenizer_config.json",
        "config.json",
        "generation_config.json",
    ]
    assert json.loads(files.read("config.json"))["vocab_size"] == 4160


def test_a_sum_can_be_wrong_a_bundle_cut_off_and_a_file_missing() -> None:
    whole, _ = sent(Simulation())
    archive, sums = sent(Simulation(faults=["wrong-sum"]))
    assert (archive, sums) == (whole, ["0" * 64])
    archive, sums = sent(Simulation(faults=["truncated-bundle"]))
    assert archive == whole[: len(whole) // 2]
    assert sums == [hashlib.sha256(whole).hexdigest()]
    archive, _ = sent(Simulation(faults=["missing-file:name=config.json"]))
    assert "config.json" not in zipfile.ZipFile(io.BytesIO(archive)).namelist()


def test_a_bundle_can_be_huge_without_being_in_memory() -> None:
    simulation = Simulation(faults=["huge-bundle:mib=3"])
    call = simulation.face.service.start("/vllm.grpc.engine.VllmEngine/GetTokenizer", b"", 0.0)
    pieces = 0
    while call.end is None:
        taken = call.take()
        assert len(taken) <= 1
        pieces += len(taken)
    assert pieces == 3 * 16
    assert simulation.engine.tally.faults == {"huge-bundle": 1}
