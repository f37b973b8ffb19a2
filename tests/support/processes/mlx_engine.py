"""A real inference engine for tests: MLX behind the gRPC servicer that its users run.

The engine lives in an environment of its own, `.cache/mlx`, which `make test` installs; it serves a
model of ours (`tiny_model`) that prints one text. It is up in two to three seconds and takes about
0.3 GB. Without that environment the tests fail, they are not skipped.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from support.models.tiny_model import SCRIPTS, Script, make_model
from support.processes.process import Process, reserved_port, running

SERVICE: Final = "mlx.grpc.engine.MlxEngine"
PYTHON: Final = Path(__file__).parents[3] / ".cache" / "mlx" / "bin" / "python"
# Two seconds as a rule; the first start on a machine compiles and reads everything from disk.
_READY_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class MlxEngine:
    """A running engine. `address` is host:port; `script` is what it says after any prompt."""

    address: str
    model_dir: Path
    script: Script
    process: Process


@contextmanager
def running_mlx(scratch: Path, script: str, *, endless: bool = False) -> Iterator[MlxEngine]:
    """Run an engine that says `script`; everything it writes stays below `scratch`."""
    if not PYTHON.exists():
        raise RuntimeError(f"there is no MLX at {PYTHON.parents[1]}: run `make mlx` (250 MB)")
    model_dir = scratch / "model"
    made = make_model(model_dir, script, endless=endless)
    with reserved_port() as port:
        server = (PYTHON, "-u", "-m", "smg_grpc_servicer.mlx.server", "--model", model_dir)
        address = f"127.0.0.1:{port}"
        # A folder called mlx in the working folder would be imported as the package: an empty one.
        with running(
            [*server, "--host", "127.0.0.1", "--port", str(port)],
            folder=scratch / "run",
            environment={"PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
            grace_s=2.0,
        ) as process:
            wait_until_serving(process, address, SERVICE, _READY_S)
            yield MlxEngine(address, model_dir, made, process)


def wait_until_serving(process: Process, address: str, service: str, within_s: float) -> None:
    """Wait until the engine at `address` says of `service` that it is served: a port that is open means nothing yet."""
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=service)

        def serving() -> bool:
            try:
                answer = health.Check(request, timeout=2.0, wait_for_ready=False)
            except grpc.RpcError:  # not listening yet, or not loaded yet
                return False
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

        process.wait_until(serving, "serving", within_s)


class MlxEngines:
    """Starts engines when they are first asked for, one for each named script."""

    def __init__(self, scratch: Path, stack: ExitStack) -> None:
        self._scratch = scratch
        self._stack = stack
        self._running: dict[str, MlxEngine] = {}

    def saying(self, name: str) -> MlxEngine:
        """Return the engine whose model says `tiny_model.SCRIPTS[name]`; it stays up."""
        engine = self._running.get(name)
        if engine is None:
            engine = self._stack.enter_context(
                running_mlx(self._scratch / name, SCRIPTS[name], endless=name == "endless")
            )
            self._running[name] = engine
        if engine.process.ended() is not None:
            raise engine.process.error("died under an earlier test")
        return engine
