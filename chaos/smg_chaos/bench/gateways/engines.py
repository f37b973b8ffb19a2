"""Engines behind the gateways, over gRPC and over HTTP, and the stand-in of a vendor: all generate fixed text."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from smg_chaos.bench.children import BenchError, Child, free_ports, spawn
from smg_chaos.bench.gateways.http_engine import Said
from smg_chaos.bench.load.script import Script, VendorScript

MODEL: Final = "simulated"
VENDOR_MODEL: Final = "claude-haiku-4-5"
VENDOR_KEY: Final = "sk-vendor"
"""No secret: what the stand-in takes by default."""
_READY_S: Final = 60.0
_MILLION: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Options of the engines; `pace` is when streams get their tokens, see `smg-chaos engine`.

    `host`: at all addresses of the loopback interface (0.0.0.0) one engine is as many workers.
    """

    contract: str = "vllm"
    server: str = "h2"
    pace: str = "each"
    tokenizer: Path | None = None
    host: str = "127.0.0.1"
    model: str = MODEL
    slots: int = 4096
    blocks: int = 65536
    vision: str = ""
    """The family of a model that sees pictures."""
    trusting: bool = False
    """Whether it looks at no picture, and wants a million pixels of each at most: what it does takes time from what is
    measured beside it."""
    halves: bool = False
    """Whether it takes bfloat16 of pictures, of at most a million pixels, rather than 8-bit values of any size."""


def grpc_command(choice: EngineChoice, *, port: int, script: Path | str, step_ms: int) -> list[str]:
    """Return the command of the simulated engine: no limits, no cache, no prefill, no faults."""
    command = [
        *(sys.executable, "-m", "smg_chaos.cli", "engine"),
        *("--server", choice.server, "--contract", choice.contract, "--pace", choice.pace),
        *("--model", choice.model, "--script", str(script), "--itl-ms", str(step_ms)),
        *(
            "--host",
            choice.host,
            "--port",
            str(port),
            "--prefill-tokens-per-s",
            "0",
            "--coalesce",
            "1",
        ),
        *("--slots", str(choice.slots), "--blocks", str(choice.blocks), "--context", "131072"),
        *("--no-cache", "--events", "none"),
    ]
    if choice.vision:
        command += ["--vision", choice.vision]
        if choice.halves:
            command += ["--no-media-normalizes", "--media-dtype", "bfloat16"]
            command += ["--media-area-max", str(_MILLION)]
        if choice.trusting:
            command += ["--media-trusting", "--media-area-max", str(_MILLION)]
    if choice.tokenizer is not None:
        command += ["--tokenizer", str(choice.tokenizer)]
    return command


def start_grpc(
    choice: EngineChoice, script: Script, folder: Path, *, step_ms: int
) -> tuple[Child, int]:
    """Start the simulated engine; return it and its port."""
    (port,) = free_ports(1)
    path = folder / "script.txt"
    path.write_text(script.prose, encoding="utf-8")
    command = grpc_command(choice, port=port, script=path, step_ms=step_ms)
    return spawn("the gRPC engine", command, folder / f"engine-grpc-{step_ms}ms.log"), port


def start_seer(
    choice: EngineChoice, script: Script, folder: Path, *, model: str
) -> tuple[Child, int]:
    """Start the engine of a model that sees pictures, beside another one, at full speed; return it and its port."""
    (port,) = free_ports(1)
    path = folder / "script-seer.txt"
    path.write_text(script.prose, encoding="utf-8")
    seeing = replace(choice, model=model, trusting=True)
    command = grpc_command(seeing, port=port, script=path, step_ms=0)
    return spawn("the engine that sees pictures", command, folder / "engine-seer.log"), port


def start_caller(
    choice: EngineChoice, folder: Path, *, model: str, calls: str
) -> tuple[Child, int]:
    """Start the engine of a model that calls a tool once, at full speed; return it and its port."""
    (port,) = free_ports(1)
    script = f"calls-once:{calls}"
    command = grpc_command(replace(choice, model=model), port=port, script=script, step_ms=0)
    return spawn("the engine that calls tools", command, folder / "engine-caller.log"), port


def start_http(script: Script, folder: Path, *, step_ms: int) -> tuple[Child, int]:
    """Start the HTTP engine; return it and its port."""
    (port,) = free_ports(1)
    path = folder / f"said-{step_ms}ms.json"
    said = Said(model=MODEL, pieces=script.pieces(), step_s=step_ms / 1000)
    path.write_bytes(msgspec.json.encode(said))
    command = [sys.executable, "-m", "smg_chaos.bench.gateways.http_engine", str(port), str(path)]
    return spawn("the HTTP engine", command, folder / f"engine-http-{step_ms}ms.log"), port


def start_vendor(script: VendorScript, folder: Path, *, step_ms: int) -> tuple[Child, int]:
    """Start the stand-in of Anthropic's API, without limits, cache and log; return it and its port."""
    (port,) = free_ports(1)
    path = folder / "vendor-script.txt"
    path.write_text(script.prose, encoding="utf-8")
    command = [
        *(sys.executable, "-m", "smg_chaos.cli", "vendor", "--kind", "anthropic"),
        *("--port", str(port), "--model", VENDOR_MODEL, "--script", str(path)),
        *("--itl-ms", str(step_ms), "--no-cache", "--keep", "0"),
    ]
    return spawn("the vendor", command, folder / f"vendor-{step_ms}ms.log"), port


async def listening(child: Child, clock_s: Callable[[], float]) -> None:
    """Return once the engine reports that it listens; BenchError if it ends, or reports nothing for
    long.
    """
    end_s = clock_s() + _READY_S
    while b"listening on" not in child.log.read_bytes():
        if said := child.died():
            raise BenchError(said)
        if clock_s() > end_s:
            raise BenchError(f"{child.name} does not listen\n{child.last_words()}")
        await asyncio.sleep(0.05)
