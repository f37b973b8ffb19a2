"""vLLM and SGLang as they are, on a CPU, behind the gRPC servicers that their users run; see `make engines`.

Each has an environment of its own under `.cache/engines` and serves a model of ours (`tiny_model`). It is up within a
minute, the first time within three, and takes 1.5 to 3 GB. Where it is not installed, its tests fail and say how to get it.
"""

import os
import random
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.models.tiny_model import Script, make_model
from support.processes.mlx_engine import wait_until_serving
from support.processes.process import Process, running

ROOT: Final = Path(__file__).parents[3]
CONTEXT: Final = 2048
STREAMS_MAX: Final = 32
_READY_S: Final = 400.0
NO_SCRIPT: Final = Script("", (), endless=False)
"""Of a model that was not made to say one text."""
_PORTS: Final = range(21_000, 22_700)
"""Below those that the system gives to anybody; SGLang takes the next one as well, and one 10,000 higher."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How an engine is started; `environment` is added to this process's."""

    name: str
    service: str
    environment: Mapping[str, str]

    @property
    def python(self) -> Path:
        """Its own interpreter."""
        return ROOT / ".cache" / "engines" / self.name / "bin" / "python"

    def command(
        self, model: Path, port: int, events_port: int, flags: Sequence[str] = ()
    ) -> Sequence[str]:
        """Return its command line; `flags` come last, where they count."""
        if self.name == "vllm":
            said = f"--model {model} --host 127.0.0.1 --port {port} --dtype float32 --enforce-eager"
            more = f"--max-model-len {CONTEXT} --max-num-seqs {STREAMS_MAX} --block-size 32"
            module = "vllm.entrypoints.grpc_server"
        else:
            events = f'{{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:{events_port}"}}'
            said = (
                f"--model-path {model} --host 127.0.0.1 --port {port} --smg-grpc-mode --device cpu"
            )
            more = (
                "--attention-backend torch_native --sampling-backend pytorch --dtype float32"
                f" --context-length {CONTEXT} --max-total-tokens 65536 --page-size 16"
                f" --max-running-requests {STREAMS_MAX} --mem-fraction-static 0.3"
                f" --skip-server-warmup --disable-overlap-schedule --kv-events-config {events}"
            )
            module = "sglang.launch_server"
        return [str(self.python), "-u", "-m", module, *said.split(), *more.split(), *flags]


_ALONE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
KINDS: Final = {
    "vllm": Kind(
        "vllm",
        "vllm.grpc.engine.VllmEngine",
        {
            **_ALONE,
            "PYTHONPATH": "",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
        },
    ),
    "sglang": Kind(
        "sglang",
        "sglang.grpc.scheduler.SglangScheduler",
        {
            **_ALONE,
            "PYTHONPATH": str(ROOT / "tools" / "engines" / "stand_in"),
            "SGLANG_USE_CPU_ENGINE": "1",
        },
    ),
}


@dataclass(slots=True)
class RealEngine:
    """A running engine that can be started again where it was."""

    kind: Kind
    folder: Path
    script: Script
    port: int
    events_port: int
    process: Process | None = None
    flags: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def address(self) -> str:
        """Its host:port."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when it serves; what is left of an earlier life ends first."""
        self._stack.close()
        self.process = process = self._stack.enter_context(
            running(
                self.kind.command(self.folder / "model", self.port, self.events_port, self.flags),
                folder=self.folder / "run",
                environment={**self.kind.environment, **self.environment},
                grace_s=10.0,
            )
        )
        wait_until_serving(process, self.address, self.kind.service, _READY_S)

    def stop(self) -> None:
        """End it and all that it has started."""
        self._stack.close()


@contextmanager
def running_engine(kind: Kind, folder: Path, script: str) -> Iterator[RealEngine]:
    """Run an engine that says `script`; everything it writes stays below `folder`."""
    script_made = make_model(folder / "model", script)
    with running_model(kind, folder, script=script_made) as engine:
        yield engine


@contextmanager
def running_model(
    kind: Kind,
    folder: Path,
    *,
    script: Script = NO_SCRIPT,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[RealEngine]:
    """Run an engine with the model in `folder`/model; `flags` are added to its command line."""
    if not kind.python.exists():
        raise RuntimeError(
            f"there is no {kind.name} at {kind.python.parents[1]}: run `make engines`"
        )
    port, events_port = _free_port(), _free_port()
    engine = RealEngine(
        kind, folder, script, port, events_port, flags=flags, environment=environment or {}
    )
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()


def _free_port() -> int:
    """Return a port that nobody has, like its neighbours that an engine takes unasked."""
    for port in random.Random(os.getpid()).sample(_PORTS, len(_PORTS)):
        if port not in _taken and all(_is_free(one) for one in (port, port + 1, port + 10_000)):
            _taken.update((port, port + 1))
            return port
    raise RuntimeError(f"no port of {_PORTS} is free")


_taken: Final[set[int]] = set()


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
