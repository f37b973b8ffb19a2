"""The service of providers on a node of a world, over a fleet that a test fills."""

from collections.abc import Sequence

from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.cluster.providers.provider_service import ClusterProviders
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.engine_options import EngineOptions
from smg_node.fleet.workers.worker import Worker
from smg_node.providers.kept_tokens import Spawn
from smg_node.providers.provider_book import ProviderBook
from smg_node.system_clock import SystemClock
from support.state.fake_shared_state import SharedWorld


class FewWorkers:
    """A fleet of the workers that a test puts in."""

    def __init__(self, *workers: Worker) -> None:
        self._workers = workers

    def workers(self) -> Sequence[Worker]:
        return self._workers

    def get(self, worker_id: str) -> Worker:
        for worker in self._workers:
            if worker.id == worker_id:
                return worker
        raise SmgError(ErrorKind.NOT_FOUND, "no such worker", code="worker_not_found")


def provider_fleet(name: str, world: SharedWorld, own: str = "") -> ProviderFleet:
    """Return the provider fleet of a node; `own` is what its file says, as JSON."""

    def make_book(spawn: Spawn) -> ProviderBook:
        return ProviderBook(EngineOptions(), SystemClock(), spawn)

    return ProviderFleet(own, world.nodes[name], make_book, SystemClock().now_ms)


def providers_of(name: str, world: SharedWorld, own: str = "") -> ClusterProviders:
    """Return the service of a node whose targets nobody has looked at yet."""
    shared = world.nodes[name]
    fleet = provider_fleet(name, world, own)
    return ClusterProviders(fleet, shared.providers, shared.seal, FewWorkers(), lambda: 0.0)
