"""Who may call a simulated engine, and what it tells of those who do."""

from pathlib import Path

import grpc
import pytest
from smg_grpc_proto import vllm_engine_pb2 as words
from smg_grpc_proto import vllm_engine_pb2_grpc as rpc

from smg_chaos.engine.protocol.rpc_call import Code
from smg_chaos.engine.servers.call_gate import Door
from support.processes.simulated_engines import running_simulated

HEALTH = "/vllm.grpc.engine.VllmEngine/HealthCheck"


def test_an_open_door_lets_everybody_in_and_tells_nobody() -> None:
    assert Door().refusal(HEALTH, "ipv4:10.0.0.1:5", {}) is None
    assert Door().refusal(HEALTH, "ipv4:10.0.0.1:5", {"authorization": "Bearer x"}) is None


def test_only_who_has_the_key_comes_in() -> None:
    door = Door("sesame")
    assert door.refusal(HEALTH, "ipv4:10.0.0.1:5", {"authorization": "Bearer sesame"}) is None
    for headers in ({}, {"authorization": "Bearer sesam"}, {"authorization": "sesame"}):
        call = door.refusal(HEALTH, "ipv4:10.0.0.1:5", headers)
        assert call is not None
        assert call.end is not None
        assert call.end.code is Code.UNAUTHENTICATED
        assert "sesame" not in call.end.message


def test_every_call_is_told_with_its_caller_and_never_with_its_key() -> None:
    told: list[str] = []
    door = Door("sesame", told.append)
    door.port = 61000
    door.refusal(HEALTH, "ipv4:10.77.0.3:50123", {"authorization": "Bearer sesame"})
    door.refusal(HEALTH, "ipv6:%5B::1%5D:50123", {"authorization": "Bearer other"})
    assert told == [
        "call of HealthCheck at 61000 from 10.77.0.3",
        "call of HealthCheck at 61000 from %5B::1%5D and is turned away",
    ]


def test_a_running_engine_keeps_its_door(tmp_path: Path) -> None:
    with running_simulated(tmp_path, "--api-key", "sesame", "--tell-calls") as engine:
        with grpc.insecure_channel(engine.address) as channel:
            ask = rpc.VllmEngineStub(channel).HealthCheck
            said = ask(words.HealthCheckRequest(), metadata=[("authorization", "Bearer sesame")])
            assert said.healthy
            with pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
                ask(words.HealthCheckRequest())
        engine.process.wait_for(
            rf"call of HealthCheck at {engine.port} from 127\.0\.0\.1\n"
            r"call of HealthCheck at \d+ from 127\.0\.0\.1 and is turned away\n",
            10.0,
        )
