"""Own models: the models of this cluster's own workers that targets of routes stand for.

A route's targets are workers of its public name. One of them may stand for a model that own workers serve, over gRPC
or HTTP, under a name of its own, which may be the same one. Looking it up never finds a target, so no route leads back
to itself.
"""

from collections.abc import Sequence

from smg_node.config.worker_url import PROVIDER
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.served_model import AnyModel, RelayedModel, ServedModel
from smg_node.fleet.workers.pair_eligibility import useful
from smg_node.fleet.workers.worker import Worker


def is_target(worker: Worker) -> bool:
    """Whether a worker is a target of a route, or a model that a provider lists, and no server of its own."""
    return worker.url.scheme == PROVIDER


def is_server(worker: Worker) -> bool:
    """Whether it is one."""
    return worker.url.scheme != PROVIDER


class OwnModels:
    """Own models behind the public names of one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._names: dict[str, tuple[int, Sequence[str]]] = {}
        """By pool: as of which version of the fleet, and the names."""

    def names(self, model: RelayedModel) -> Sequence[str]:
        """Return what the targets of a public name stand for, in their order; nothing for most."""
        version, pool = self._fleet.version, model.pool
        known = self._names.get(pool)
        if known is None or known[0] != version:
            serving = self._fleet.serving(model)
            found = tuple(worker.own_model for worker in serving if worker.own_model)
            known = self._names[pool] = version, found
        return known[1]

    def servers(self, model: AnyModel) -> Sequence[Worker]:
        """Return the servers of a model, whatever their state."""
        return [worker for worker in self._fleet.serving(model) if is_server(worker)]

    def model(self, name: str) -> AnyModel | None:
        """Return the model of that name or alias as own workers serve it, by gRPC if any does.

        None if no worker is registered for it.
        """
        served = self._fleet.models.find_any(name)
        if served is not None and self._fleet.serving(served):
            return served
        relayed = self._fleet.relayed(name)
        return relayed if relayed is not None and self.servers(relayed) else None

    def public(self, name: str, model: AnyModel) -> str:
        """Return the name under which a request for `name` counts, where `model` is what answers it."""
        relayed = self._fleet.relayed(name)
        return model.name if relayed is None or not self.names(relayed) else relayed.name

    def served(self, name: str) -> ServedModel | None:
        """Return the model that gRPC engines serve under that name, or behind a route of that name."""
        served = self._fleet.served(name)
        relayed = None if served is not None else self._fleet.relayed(name)
        found = served if relayed is None else self.behind(relayed)
        return found if isinstance(found, ServedModel) else None

    def backed(self, worker: Worker) -> bool:
        """Whether a target stands for servers of which some are ready."""
        model = self.model(worker.own_model) if worker.own_model else None
        return model is not None and bool(useful(self.servers(model)))

    def behind(self, model: AnyModel) -> AnyModel:
        """Return the model whose tokens stand for those of `model`: that of its first target of own engines, if any."""
        if not isinstance(model, RelayedModel):
            return model
        found = map(self.model, self.names(model))
        return next((one for one in found if one is not None), model)
