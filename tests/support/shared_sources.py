"""Shared sources: nodes with registers and registries of workers, as far as discovery's views and upkeep use them."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from smg_mesh.state.settings import SettingsView
from smg_mesh.state.workers.worker_registry import WorkerSpec
from smg_node.cluster.workers.source_reports import SourceReports
from support.state.fake_namespace import FakeNamespaces
from support.state.register_world import RegisterWorld
from support.state.worker_registries import Nodes

if TYPE_CHECKING:
    from smg_mesh.shared import Shared


class SharedSources:
    """Nodes by name; `living` are those that all take for alive."""

    def __init__(self, *names: str) -> None:
        self.registers = RegisterWorld(*names)
        self.nodes = Nodes(*names)
        self.living = list(names)
        self.defined = FakeNamespaces(*names, name="discovery")
        self.definitions = {name: SettingsView(self.defined[name], name) for name in names}
        self.shared = {name: self._shared(name) for name in names}
        self.reports = {name: SourceReports(self.shared[name]) for name in names}

    def _shared(self, name: str) -> "Shared":
        one = SimpleNamespace(
            name=name,
            registers=self.registers[name].bound,
            workers=self.nodes[name],
            discovery=self.definitions[name],
            living=lambda: list(self.living),
        )
        return cast("Shared", one)

    def find(
        self,
        node: str,
        host: str,
        name: str = "chat",
        instance: str = "u1",
        state: str = "ready",
        *,
        keep: bool = False,
    ) -> str:
        """Let a node find a worker; return its id."""
        worker_id = f"w-{host}"
        spec = WorkerSpec(url=f"grpc://{host}:1")
        told = {"state": state, "instance": instance, "keep": keep}
        self.nodes[node].find(worker_id, "kubernetes", spec, name=name, **told)  # type: ignore[arg-type]  # they fit
        return worker_id

    def pass_time(self, span_ms: int) -> None:
        """Let time pass, and rumors arrive."""
        self.defined.wall_ms += span_ms
        self.registers.pass_time(span_ms, step_ms=min(span_ms, 500))


class SourcesHere:
    """Stands for the sources of a process: those of its own settings, and what it does not follow."""

    def __init__(self, *own: tuple[str, str], **unreadable: str) -> None:
        self._own = own
        self.unreadable = unreadable

    def own(self) -> tuple[tuple[str, str], ...]:
        """Return the kinds and names of the sources in the node's own settings."""
        return self._own
