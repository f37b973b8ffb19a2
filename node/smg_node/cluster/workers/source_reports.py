"""Source reports of the cluster, bound to discovery: what nodes say of sources, and in which order they see to one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from smg_mesh.shared import probers

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.discovery.registry_port import Report


class ClusterSourceReports:
    """What the living nodes report on sources."""

    def __init__(self, shared: "Shared") -> None:
        self._shared: Final = shared

    def publish(self, kind: str, name: str, fields: Mapping[str, object]) -> None:
        """Let all nodes know, for 15 s."""
        said: Any = fields
        self._shared.sources.publish(kind, name, **said)

    def withdraw(self, kind: str, name: str) -> None:
        """Report nothing of a source any more."""
        self._shared.sources.withdraw(kind, name)

    def of(self, kind: str, name: str) -> "Mapping[str, Report]":
        """Return the reports of the living nodes, this one's too, by node."""
        living = self._shared.living()
        reports = self._shared.sources.of(kind, name)
        return {node: reports[node] for node in reports if node in living}

    def ranked(self, kind: str, name: str, nodes: Sequence[str]) -> Sequence[str]:
        """Return these nodes in the order in which they see to a source: the same on every node."""
        candidates = [(node, "") for node in nodes]
        return probers(f"discovery/{kind}/{name}", candidates, all_up_to=len(candidates))
