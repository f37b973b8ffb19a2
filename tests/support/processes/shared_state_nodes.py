"""The scene of tests about shared state: three nodes, and engines that let nobody in without the key."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from support.processes.mesh_nodes import MeshNode, until
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import call, ready_at, workers
from support.processes.simulated_engines import Simulated, running_simulated

MODEL: Final = "sim"
SECRET: Final = "sk-planted-0123456789abcdefghijk"
NOBODY: Final = "grpc://127.0.0.1:9"
ENGINES: Final = 3


@dataclass
class Scene:
    """Three nodes and their engines, of which all but the last are registered, by the first node."""

    trio: Trio
    engines: Simulated

    @property
    def urls(self) -> list[str]:
        """All engines."""
        return [f"grpc://{address}" for address in self.engines.addresses]

    @property
    def registered(self) -> list[str]:
        """Those that every test finds registered."""
        return self.urls[:-1]

    @property
    def spare(self) -> str:
        """The one that is not."""
        return self.urls[-1]

    def as_found(self) -> None:
        """Return when all three live and agree, and have what every test finds."""
        self.trio.all_agree()
        self.trio.on_all(lambda node: ready_at(node, self.registered), "as they were found")


@contextmanager
def running_scene(folder: Path) -> Iterator[Scene]:
    """Start everything."""
    secret = folder / "engine.key"
    secret.write_text(SECRET + "\n")
    flags = ("--model", MODEL, "--script", "endless", "--itl-ms", "2", "--slots", "1024")
    door = ("--api-key", SECRET, "--tell-calls")
    with (
        running_simulated(folder / "engines", *flags, *door, workers=ENGINES) as engines,
        running_trio(folder) as trio,
    ):
        scene = Scene(trio, engines)
        for url in scene.registered:
            added = trio["a"].admin("workers", "add", url, "--api-key-file", secret)
            assert added.code == 0, added
        scene.as_found()
        yield scene


def add(node: MeshNode, url: str, **more: Any) -> str:
    """Register a worker; return its id."""
    answer = call(node, "POST", "/workers", {"url": url, **more})
    assert answer.status == 202, answer
    worker: str = answer.body["worker_id"]
    return worker


def seconds_until_all(nodes: Sequence[MeshNode], url: str, *, there: bool) -> float:
    """Return how long it takes until all these nodes have a worker, or have it no more."""
    since_s = time.monotonic()
    for node in nodes:
        until(lambda node=node: (url in workers(node)) is there, "known")  # type: ignore[misc]  # bound now
    return time.monotonic() - since_s


def stays_away(trio: Trio, url: str) -> None:
    """Return when all agree, and for a while nobody has had that worker."""
    trio.all_agree()
    for _ in range(10):
        assert all(url not in workers(node) for node in trio.living)
        time.sleep(0.1)


def saved(node: MeshNode) -> None:
    """Return when all that a node holds is on its disk."""
    node.awaits("on its disk", lambda: node.node.metric("smg_node_state_unsaved") == 0)
