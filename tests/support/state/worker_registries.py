"""Worker registries of several nodes over namespaces in memory, and shorthands to talk about them."""

from collections.abc import Mapping

from smg_mesh.state.workers.worker_registry import WorkerRegistry, WorkerSpec
from support.state.fake_namespace import FakeNamespaces

W = "w-1"


def spec_at(number: int = 1, **fields: object) -> WorkerSpec:
    """Return the spec of the worker with that number."""
    return WorkerSpec(url=f"grpc://10.0.0.{number}:50051", **fields)  # type: ignore[arg-type]  # tests say what fits


class Nodes:
    """Some nodes; `nodes["a"]` is a's registry."""

    def __init__(self, *names: str) -> None:
        self.world = FakeNamespaces(*names)
        self._registries = {name: WorkerRegistry(self.world[name], name) for name in names}

    def __getitem__(self, name: str) -> WorkerRegistry:
        return self._registries[name]

    def restart(self, name: str, *, keeps_disk: bool = True) -> WorkerRegistry:
        """Begin another life of a node; it has met nobody yet."""
        namespace = self.world.restart(name, keeps_disk=keeps_disk)
        self._registries[name] = WorkerRegistry(namespace, name)
        return self._registries[name]

    def tidy(self, *names: str) -> int:
        """Let the nodes of these names, or all, clear away; return how many writes it took."""
        living = list(names or self.world.owners)
        return sum(self[name].tidy(self.world[name].wall_ms, living=living) for name in living)

    def listed(self, name: str) -> Mapping[str, tuple[str, ...]]:
        """Return the workers that a node sees, with their sources."""
        return {record.id: record.sources for record in self[name].records()}
