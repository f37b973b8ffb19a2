"""Targets: models at providers as workers of the fleet, one behind each public name of a model. Pure."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from smg_node.cluster.providers.definitions import DefinedProvider, Definitions
from smg_node.config.worker_url import PROVIDER, WorkerUrl
from smg_node.core.ids import WorkerId
from smg_node.fleet.workers.worker_spec import (
    CHOOSE_LABEL,
    ON_LABEL,
    ONLY_LABEL,
    SHADOW_LABEL,
    SPLIT_LABEL,
    WEIGHT_LABEL,
    DeclaredWorker,
)
from smg_node.providers.route_spec import RouteSpec, RouteTarget
from smg_node.providers.routes.route_ways import WEIGHTED, target_of
from smg_node.providers.routes.split_rule import split_label

PROVIDER_LABEL: Final = "provider"
_OURS: Final = frozenset({CHOOSE_LABEL, ON_LABEL, ONLY_LABEL, SPLIT_LABEL, SHADOW_LABEL})
"""Labels that only a route gives, whatever a provider's definition says."""
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
                labels = {CHOOSE_LABEL: WEIGHTED}
                yield _worker(model.model, RouteTarget(name, model.model), provider, labels)


def _routed(definitions: Definitions) -> Iterator[DeclaredWorker]:
    for name, route in definitions.routes.items():
        for target, labels in _with_labels(route.spec):
            yield _worker(name, target, definitions.providers.get(target.provider), labels)


def _with_labels(route: RouteSpec) -> Iterator[tuple[RouteTarget, Mapping[str, str]]]:
    """Yield the targets of a route, also those that only its ways name, with the labels that say what for."""
    found = {
        (one.provider, one.model): (one, {CHOOSE_LABEL: route.choose}) for one in route.targets
    }
    if route.split is not None:
        provider, model = target_of(route.split.to)
        if model:
            _also(found, provider, model, "split", route.choose)
        for (at, name), (_, labels) in found.items():
            if at == provider and model in ("", name):
                labels[SPLIT_LABEL] = split_label(route.split)
    yield from found.values()


def _also(
    found: dict[tuple[str, str], tuple[RouteTarget, dict[str, str]]],
    provider: str,
    model: str,
    what: str,
    choose: str,
) -> None:
    """Have a target that only one of the ways needs, if it is none yet."""
    labels = {CHOOSE_LABEL: choose, ONLY_LABEL: ""}
    _, labels = found.setdefault((provider, model), (RouteTarget(provider, model), labels))
    if ONLY_LABEL in labels:
        labels[ONLY_LABEL] = ",".join(filter(None, (labels[ONLY_LABEL], what)))


def _worker(
    public: str,
    target: RouteTarget,
    provider: DefinedProvider | None,
    more: Mapping[str, str],
) -> DeclaredWorker:
    own = {} if provider is None else provider.spec.labels
    labels = {name: value for name, value in own.items() if name not in _OURS}
    labels[PROVIDER_LABEL] = target.provider
    labels.update(more)
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
