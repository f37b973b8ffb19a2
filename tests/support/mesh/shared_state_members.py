"""Members that share state, in one process: a mesh and what it carries, each with a disk or without one."""

import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from smg_mesh.config import StateOptions
from smg_mesh.mesh import Mesh
from smg_mesh.shared import Shared
from support.mesh.mesh_cluster import Cluster, make_mesh

QUICK = replace(StateOptions(), save_apart_ms=50)
"""What changed is on disk at once, for tests that look there."""


def make_shared(
    name: str,
    folder: Path | None = None,
    *,
    before: Sequence[Path] = (),
    options: StateOptions = QUICK,
    later_ms: int = 0,
    monotonic_s: Callable[[], float] = time.monotonic,
) -> Shared:
    """Return shared state that is not open; its wall clock is ahead of the true one by `later_ms`."""
    return Shared(
        name,
        data_dir=folder,
        before=before,
        options=options,
        rng=random.Random(secrets.randbits(64)),
        wall_ms=lambda: time.time_ns() // 1_000_000 + later_ms,
        monotonic_s=monotonic_s,
    )


class Node:
    """One member: its mesh, and what it shares."""

    def __init__(self, mesh: Mesh, shared: Shared) -> None:
        self.mesh = mesh
        self.shared = shared

    def __str__(self) -> str:
        return str(self.mesh.address)


async def add_node(
    nodes: Cluster,
    name: str,
    *join: Node | str,
    folder: Path | None = None,
    later_ms: int = 0,
    **options: Any,
) -> Node:
    """Start a member and let it run; what it keeps lies in a folder of its name below `folder`."""
    own = None if folder is None else folder / name
    shared = make_shared(name, own, later_ms=later_ms)
    mesh = make_mesh(name, *map(str, join), shared=shared, data_dir=own, **options)
    await mesh.start()
    return Node(nodes.run(mesh), shared)


def same(nodes: Sequence[Node]) -> bool:
    """Return whether all of these hold the same."""
    return len({node.shared.digest() for node in nodes}) == 1
