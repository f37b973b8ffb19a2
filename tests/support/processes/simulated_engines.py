"""Simulated engines as processes of their own, which can be asked for their load and killed."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from smg_grpc_proto import vllm_engine_pb2 as words
from smg_grpc_proto import vllm_engine_pb2_grpc as rpc

from smg_chaos.engine.scripts.scripts import TEXTS
from support.processes.process import Process, running

SAYS: Final = TEXTS["fixed"]
"""What a simulated engine answers unless told otherwise; the endless script says it again and again."""
_READY_S: Final = 60.0
_BOOTSTRAP: Final = re.compile(r" role=(?:prefill|encode) bootstrap=([1-9]\d*)\n")
_LISTENING: Final = re.compile(r"listening on (127\.0\.0\.1:[1-9]\d*) ")


@dataclass(frozen=True, slots=True)
class Simulated:
    """A running `smg-chaos engine`: host:port of each of its workers, in order."""

    addresses: tuple[str, ...]
    process: Process
    report: Path

    @property
    def address(self) -> str:
        """The address of the first worker."""
        return self.addresses[0]

    @property
    def port(self) -> int:
        """The port of the first worker."""
        return int(self.address.rpartition(":")[2])

    @property
    def bootstrap_port(self) -> int:
        """Where others fetch from the first worker, if it is one that works prompts off for them."""
        found = _BOOTSTRAP.search(self.process.said())
        assert found is not None, self.process.said()
        return int(found[1])

    def tally(self) -> dict[str, Any]:
        """Stop it, and return what its first worker counted."""
        self.process.stop()
        counted = json.loads(self.report.read_text())
        assert isinstance(counted[0], dict)
        return counted[0]


@contextmanager
def running_simulated(
    scratch: Path, *flags: str, workers: int = 1, faults: Sequence[str] = (), port: int = 0
) -> Iterator[Simulated]:
    """Run simulated engines with the contract of vLLM, on ports of their own unless `port` is given."""
    program = Path(sys.executable).with_name("smg-chaos")
    report = scratch / "report.json"
    command = [str(program), "engine", "--contract", "vllm", "--report", str(report)]
    where = ["--port", str(port), "--workers", str(workers)]
    odd = [word for fault in faults for word in ("--fault", fault)]
    with running([*command, *where, *odd, *flags], folder=scratch) as process:

        def listening() -> bool:
            return len(_LISTENING.findall(process.said())) == workers

        process.wait_until(listening, "listening", _READY_S)
        yield Simulated(tuple(_LISTENING.findall(process.said())), process, report)


@contextmanager
def running_pair(
    scratch: Path,
    *flags: str,
    contract: str = "sglang",
    connector: str = "contract",
    prefill_flags: Sequence[str] = (),
    decode_flags: Sequence[str] = (),
    workers: int = 1,
) -> Iterator[tuple[Simulated, Simulated]]:
    """Run engines that work prompts off for others, and those others, `workers` of either kind."""
    both = (*("--contract", contract, "--kv-connector", connector, "--bootstrap-port", "0"), *flags)
    sides = {"prefill": prefill_flags, "decode": decode_flags}
    with ExitStack() as stack:
        started = []
        for role, own in sides.items():
            folder = scratch / role
            folder.mkdir()
            words = (*both, "--role", role, *own)
            started.append(stack.enter_context(running_simulated(folder, *words, workers=workers)))
        yield started[0], started[1]


class Load:
    """How many calls one engine is working on or has waiting, by its own account."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._stub = rpc.VllmEngineStub(channel)

    def __call__(self) -> int:
        """Ask now."""
        answer = self._stub.GetLoads(words.GetLoadsRequest(), timeout=10)
        return sum(int(load.num_running_reqs) + int(load.num_waiting_reqs) for load in answer.loads)


@contextmanager
def load_of(address: str) -> Iterator[Load]:
    """Keep a connection to an engine for asking how busy it is."""
    with grpc.insecure_channel(address) as channel:
        load = Load(channel)
        load()
        yield load
