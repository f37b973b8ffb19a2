"""Targets: models at providers as workers of the fleet, one behind each public name of a model. Pure."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from smg_node.cluster.providers.definitions import DefinedProvider, Definitions
from smg_node.config.worker_url import PROVIDER, WorkerUrl
from smg_node.core.ids import WorkerId
from smg_node.fleet.workers.worker_spec import CHOOSE_LABEL, WEIGHT_LABEL, DeclaredWorker
from smg_node.providers.route_spec import RouteTarget
from smg_node.providers.routes.route_ways import WEIGHTED

PROVIDER_LABEL: Final = "provider"
ON_LABEL: Final = "on"
"""Kinds of failure after which a target joins, joined by commas."""
NO_PROVIDER: Final = "no provider has this name"


def targets_of(definitions: Definitions) -> dict[WorkerId, DeclaredWorker]:
    """Return every target there should be, by its worker's id.

    Models that a provider lists are served under the vendor's own names, unless a route has that name.
    """
    found = (*_listed(definitions), *_routed(definitions))
    return {worker.id: worker for worker in found}


def named_in(url: WorkerUrl) -> tuple[str, str]:
    """Return the provider and the vendor's name of the model that a target's URL names."""
    provider, _, model = url.host.partition("/")
    return provider, model


def _listed(definitions: Definitions) -> Iterator[DeclaredWorker]:
    for name, provider in definitions.providers.items():
        for model in provider.spec.models:
            if model.model not in definitions.routes:
                yield _worker(model.model, RouteTarget(name, model.model), provider, WEIGHTED)


def _routed(definitions: Definitions) -> Iterator[DeclaredWorker]:
    for name, route in definitions.routes.items():
        for target in route.spec.targets:
            provider = definitions.providers.get(target.provider)
            yield _worker(name, target, provider, route.spec.choose)


def _worker(
    public: str, target: RouteTarget, provider: DefinedProvider | None, choose: str
) -> DeclaredWorker:
    labels: dict[str, str] = {} if provider is None else dict(provider.spec.labels)
    labels[PROVIDER_LABEL] = target.provider
    labels[CHOOSE_LABEL] = choose
    if target.weight != 1.0:
        labels[WEIGHT_LABEL] = f"{target.weight:g}"
    if target.on:
        labels[ON_LABEL] = ",".join(target.on)
    url = WorkerUrl(
        PROVIDER,
        f"{target.provider}/{target.model}",
        0,
        model=public,
        labels=_frozen(labels),
    )
    return DeclaredWorker(
        url,
        trouble=NO_PROVIDER if provider is None else provider.trouble,
        sources=("providers",),
        registered_by="" if provider is None else provider.owner,
        version=0 if provider is None else provider.version,
    )


def _frozen(labels: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(sorted(labels.items())))
