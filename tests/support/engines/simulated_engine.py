"""Simulated engines for tests: in memory on virtual time, or served from a thread."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf import json_format

from smg_chaos.engine.host import Host
from smg_chaos.engine.plan_builder import make_plan
from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.protocol.faults import parse_fault
from smg_chaos.engine.scripts.bundle import Bundle, tiny_bundle
from smg_chaos.engine.scripts.scripts import script_of
from smg_chaos.engine.servers.in_memory import MemoryCall, MemoryFace
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.engine import Engine
from smg_node.system_clock import SystemClock

FLAVOURS = (
    ("mlx", "python"),
    ("vllm", "python"),
    ("vllm", "rust"),
    ("sglang", "python"),
    ("trtllm", "python"),
    ("tokenspeed", "python"),
)
PROMPT = list(range(40, 50)) * 7  # 70 tokens: two blocks of 32 and a rest


@cache
def bundle(vision: str = "") -> Bundle:
    """Return the built-in bundle, made once; with `vision` that of a model which sees pictures."""
    return tiny_bundle("simulated", vocabulary=4160, context=2048, vision=vision)


class Simulation:
    """One engine in memory, with a client's view of it."""

    def __init__(
        self,
        contract: str = "vllm",
        servicer: str = "python",
        *,
        script: str = "fixed",
        faults: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        files = bundle(settings.get("vision", ""))
        self.deaths: list[int] = []
        self.engine = Engine(
            EngineSettings(contract=contract, servicer=servicer, **settings),
            files,
            script_of(script, files),
            [parse_fault(spec) for spec in faults],
            now_s=0.0,
            epoch_s=1_000_000.0,
            on_death=self.deaths.append,
        )
        self.face = MemoryFace(self.engine, now_s=0.0)
        self.words: Any = self.engine.contract.messages

    def request(self, ids: Sequence[int] | None = None, **fields: Any) -> bytes:
        """Return a GenerateRequest; a field whose value is None is left unset."""
        asked = {"request_id": "test", "stream": True, "temperature": 0.0, "max_tokens": 500}
        if self.engine.contract.name == "sglang":
            asked |= {"repetition_penalty": 1.0}
        asked |= fields
        set_fields = {name: value for name, value in asked.items() if value is not None}
        return self.engine.contract.ask(PROMPT if ids is None else ids, **set_fields)

    def start(self, ids: Sequence[int] | None = None, **fields: Any) -> MemoryCall:
        """Start a Generate."""
        return self.call("Generate", self.request(ids, **fields))

    def generate(self, ids: Sequence[int] | None = None, **fields: Any) -> MemoryCall:
        """Run a Generate to its end."""
        return self.run(self.start(ids, **fields))

    def run(self, call: MemoryCall, *, patience_s: float = 60.0) -> MemoryCall:
        """Let time pass until a call ends, and check the engine's books."""
        self.face.run(call, patience_s=patience_s)
        self.engine.check()
        return call

    def call(self, method: str, body: bytes = b"") -> MemoryCall:
        """Start any method of the contract."""
        return self.face.start(f"/{self.engine.contract.service}/{method}", body)

    def ask(self, method: str, request: Any = None) -> Any:
        """Return the one answer of a method."""
        body = request.SerializeToString() if request is not None else b""
        call = self.run(self.call(method, body))
        assert call.end is not None
        assert call.end.code == 0, call.end
        return getattr(self.words, f"{method}Response").FromString(call.messages[0])

    def abort(self, request_id: str) -> Any:
        """Abort a request and return the answer."""
        request = self.words.AbortRequest()
        if hasattr(request, "request_ids"):
            request.request_ids.append(request_id)
        else:
            request.request_id = request_id
        return self.ask("Abort", request)

    def read(self, call: MemoryCall) -> list[dict[str, Any]]:
        """Return a Generate's messages as dictionaries."""
        return [
            json_format.MessageToDict(
                self.words.GenerateResponse.FromString(raw), preserving_proto_field_name=True
            )
            for raw in call.messages
        ]

    def chunks(self, call: MemoryCall) -> list[dict[str, Any]]:
        """Return a Generate's chunks."""
        return [one["chunk"] for one in self.read(call) if "chunk" in one]

    def completes(self, call: MemoryCall) -> list[dict[str, Any]]:
        """Return a Generate's complete messages."""
        return [one["complete"] for one in self.read(call) if "complete" in one]


@dataclass(frozen=True)
class Served:
    """Engines that listen."""

    ports: Sequence[int]
    engines: Sequence[Engine]

    @property
    def address(self) -> str:
        """Where the first of them is."""
        return f"127.0.0.1:{self.ports[0]}"


@contextmanager
def served(wanted: Wanted) -> Iterator[Served]:
    """Serve engines from a thread of their own, on a loop of their own."""
    started = threading.Event()
    told: dict[str, Any] = {}

    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        if len(lines) == wanted.workers:
            started.set()

    async def run() -> None:
        host = Host(make_plan(wanted), SystemClock(), say)
        told["host"], told["loop"] = host, asyncio.get_running_loop()
        await host.run()

    def work() -> None:
        try:
            asyncio.run(run())
        except Exception as error:  # it is raised again where the engines were asked for
            told["error"] = error
        finally:
            started.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert started.wait(30), "the engines did not start"
        if "error" in told:
            raise told["error"]
        ports = [int(line.split()[2].rpartition(":")[2]) for line in lines]
        yield Served(ports, told["host"].engines)
    finally:
        if "loop" in told and not told["loop"].is_closed():
            told["loop"].call_soon_threadsafe(told["host"].end)
        thread.join(30)
        assert not thread.is_alive(), "the engines did not stop"
