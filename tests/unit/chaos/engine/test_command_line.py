"""`smg-chaos engine` as a process: what it prints, refuses, and how it ends."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.engines.engine_client import asking
from support.engines.simulated_engine import PROMPT
from support.processes.process import Process, running
from support.processes.simulated_engines import running_pair

SMG_CHAOS = (sys.executable, "-m", "smg_chaos.cli")
WAIT_S = 60.0


@contextmanager
def engine(folder: Path, *flags: str) -> Iterator[Process]:
    with running([*SMG_CHAOS, "engine", *flags], folder=folder) as process:
        yield process


def address(process: Process) -> str:
    return process.wait_for(r"listening on (\S+) contract=", WAIT_S)[1]


@pytest.mark.parametrize("server", ["grpc", "h2"])
def test_it_says_where_it_listens_and_ends_well_when_told(tmp_path: Path, server: str) -> None:
    report = tmp_path / "report.json"
    flags = ("--contract", "sglang", "--model", "tiny", "--server", server, "--report", str(report))
    with engine(tmp_path, *flags, "--workers", "2") as process:
        process.wait_for(
            r"(?s)listening.*listening on 127\.0\.0\.1:\d+ contract=sglang model=tiny\n", WAIT_S
        )
        with asking(address(process), "sglang", PROMPT) as asker:
            assert asker.generate(max_tokens=3).code == "OK"
        process.signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
        assert len(process.said().splitlines()) == 2
    first, second = json.loads(report.read_bytes())
    assert (first["requests"], first["finished"], second["requests"]) == (1, 1, 0)


@pytest.mark.parametrize("server", ["grpc", "h2"])
def test_its_death_is_the_death_of_the_process(tmp_path: Path, server: str) -> None:
    with engine(tmp_path, "--server", server, "--fault", "die:request=2,code=7") as process:
        with asking(address(process), "vllm", PROMPT) as asker:
            assert asker.generate(max_tokens=1).code == "OK"
            assert asker.generate(max_tokens=1).code == "UNAVAILABLE"
        assert process.wait(WAIT_S) == 7


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--fault", "stal:after=3"], "no fault is called 'stal'; did you mean 'stall'?"),
        (["--fault", "reset"], "needs --server h2"),
        (["--fault", "die:worker=2"], "is for worker 2 of 1"),
        (["--script", "reasonin"], "did you mean 'reasoning'?"),
        (["--tokenizer", "nowhere"], "no tokenizer files in nowhere"),
        (["--blocks", "2"], "cannot hold one request"),
        (["--vocabulary", "12"], "the built-in tokenizer has"),
        (["--server", "h2", "--api-key", "k"], "--api-key and --tell-calls need --server grpc"),
        (["--port", "65535", "--workers", "2"], "there are not that many ports"),
        (["--contract", "vlm"], "'vlm' is not one of"),
        (
            ["--bootstrap-port", "65535", "--workers", "2"],
            "there are not that many bootstrap ports",
        ),
        (["--contract", "mlx", "--role", "decode"], "has no words for working in pairs"),
        (["--contract", "sglang", "--kv-connector", "nixl"], "nixl is a connector of vLLM"),
        (["--kv-connector", "sglang"], "needs a role"),
        (["--contract", "trtllm", "--ranks", "2"], "has no word for a rank"),
        (["--itl-ms", "-1"], "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_reason(
    tmp_path: Path, flags: list[str], says: str
) -> None:
    with engine(tmp_path, *flags) as process:
        assert process.wait(WAIT_S) == 2
        assert says in " ".join(process.said().replace("│", " ").split())


def test_help_lists_commands_and_groups_the_knobs(tmp_path: Path) -> None:
    for words, expected in (
        (["--help"], ("engine", "Serve a simulated inference engine.")),
        (
            ["engine", "--help"],
            ("Which engine", "How fast", "--itl-ms", "die:code=1", "lockstep", "--kv-connector"),
        ),
    ):
        folder = tmp_path / str(len(words))
        wide = {**os.environ, "COLUMNS": "140", "TERM": "dumb"}
        with running([*SMG_CHAOS, *words], folder=folder, environment=wide) as process:
            assert process.wait(WAIT_S) == 0
            said = process.said()
        assert all(word in said for word in expected), said


@pytest.mark.parametrize(("contract", "connector"), [("sglang", "contract"), ("openai", "nixl")])
def test_it_says_its_role_and_where_others_fetch(
    tmp_path: Path, contract: str, connector: str
) -> None:
    flags = ["--contract", contract, "--kv-connector", connector, "--bootstrap-port", "0"]
    with engine(tmp_path / "p", *flags, "--role", "prefill", "--workers", "2") as process:
        found = process.wait_for(
            r"(?s)role=prefill bootstrap=([1-9]\d*)\n.*role=prefill bootstrap=([1-9]\d*)\n", WAIT_S
        )
        assert found[1] != found[2]
    with engine(tmp_path / "d", *flags, "--role", "decode") as process:
        process.wait_for(r"listening on .* model=\S+ role=decode\n", WAIT_S)


def test_a_bootstrap_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        flags = ["--contract", "sglang", "--role", "prefill", "--bootstrap-port", port]
        with engine(tmp_path, *flags) as process:
            assert process.wait(WAIT_S) == 1
            assert "smg-chaos engine: " in process.said()


def test_a_pair_of_processes_answers_together(tmp_path: Path) -> None:
    with running_pair(tmp_path, contract="vllm", connector="nixl") as (prefill, decode):
        give = '{"do_remote_decode": true}'
        with asking(prefill.address, "vllm", PROMPT) as asker:
            told = asker.generate(transfer=give, max_tokens=1).complete["kv_transfer_params_json"]
        assert json.loads(told)["remote_port"] == prefill.bootstrap_port
        with asking(decode.address, "vllm", PROMPT) as asker:
            assert len(asker.generate(transfer=told, max_tokens=9).ids) == 9
        assert prefill.tally()["handed_over"] == decode.tally()["taken_over"] == 1
