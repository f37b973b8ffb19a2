"""Members of a mesh in one process, on ports of 127.0.0.1, with the quickest timers there are."""

import asyncio
import random
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smg_mesh.config import PROFILES, MeshOptions
from smg_mesh.mesh import Mesh, make_key

if TYPE_CHECKING:
    from smg_mesh.shared import Shared

PATIENCE_S = 30.0
"""Far beyond what anything takes, on a machine however busy."""


class Cluster:
    """Meshes that run until they are stopped, or the block ends."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.meshes: dict[str, Mesh] = {}

    async def add(self, name: str, *join: Mesh | str, **options: Any) -> Mesh:
        """Start a member and let it run; `options` are those of `MeshOptions`."""
        mesh = make_mesh(name, *join, **options)
        await mesh.start()
        return self.run(mesh)

    def run(self, mesh: Mesh) -> Mesh:
        """Let a started member run."""
        self.meshes[mesh.name] = mesh
        self._tasks[mesh.name] = self._group.create_task(mesh.run())
        return mesh

    async def crash(self, mesh: Mesh) -> None:
        """Stop a member without a word."""
        del self.meshes[mesh.name]
        await mesh.stop()

    async def leave(self, mesh: Mesh) -> None:
        """Let a member say goodbye."""
        del self.meshes[mesh.name]
        await mesh.leave()


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """Run members until the block ends."""
    async with asyncio.TaskGroup() as group:
        made = Cluster(group)
        try:
            yield made
        finally:
            for mesh in made.meshes.values():
                await mesh.stop()


def make_mesh(name: str, *join: Mesh | str, shared: "Shared | None" = None, **options: Any) -> Mesh:
    """Return a member that is not started; insecure unless a key file is given."""
    seeds = tuple(str(seed.address) if isinstance(seed, Mesh) else seed for seed in join)
    settings: dict[str, Any] = {"insecure": "key_file" not in options}
    settings |= {"listen_host": "127.0.0.1", "listen_port": 0, "join": seeds}
    settings |= {"swim": PROFILES["local"]} | options
    return Mesh(
        MeshOptions(name=name, **settings),
        rng=random.Random(secrets.randbits(64)),
        wall_ms=lambda: time.time_ns() // 1_000_000,
        monotonic_s=time.monotonic,
        shared=shared,
    )


def key_file(folder: Path, name: str = "mesh.key") -> Path:
    """Return a new key file."""
    path = folder / name
    path.write_text(make_key() + "\n")
    path.chmod(0o600)
    return path


def states(mesh: Mesh) -> dict[str, str]:
    """Return what one member thinks of all."""
    return {member.name: member.state for member in mesh.members()}


def agree(meshes: Sequence[Mesh]) -> bool:
    """Return whether each of these holds all of these alive, and nobody else."""
    names = sorted(mesh.name for mesh in meshes)
    return all(
        sorted(name for name, state in states(mesh).items() if state == "alive") == names
        for mesh in meshes
    )


def kinds(mesh: Mesh, name: str) -> list[str]:
    """Return the kinds of the events that one member has about a name."""
    return [event.kind for event in mesh.events() if event.name == name]


def free_port() -> int:
    """Return a port that nothing listens on, UDP and TCP, and that the system gives to nobody unasked."""
    for port in random.sample(range(20_000, 30_000), 100):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
            suppress(OSError),
        ):
            tcp.bind(("127.0.0.1", port))
            udp.bind(("127.0.0.1", port))
            return port
    raise OSError("100 ports and none of them is free")


async def until(condition: Callable[[], object], *, patience_s: float = PATIENCE_S) -> float:
    """Wait until something is so; return how long that took, in seconds. TimeoutError if it never is."""
    begun_s = time.monotonic()
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.005)
    return time.monotonic() - begun_s
