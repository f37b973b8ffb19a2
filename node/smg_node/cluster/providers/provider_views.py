"""Provider views: definitions and targets as an operator sees them, without secrets."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from smg_node.cluster.providers.definitions import DefinedProvider, DefinedRoute, Definitions
from smg_node.cluster.providers.targets import PROVIDER_LABEL, named_in, targets_of
from smg_node.core.errors import SmgError
from smg_node.core.ids import WorkerId
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_spec import ON_LABEL, ONLY_LABEL, DeclaredWorker
from smg_node.http.ports.providers import (
    ProviderKeyView,
    ProviderLimitView,
    ProviderView,
    RouteView,
    TargetView,
)
from smg_node.pipeline.placement.eligibility import eligible
from smg_node.pipeline.placement.own_models import is_server
from smg_node.providers.account import ProviderAccount
from smg_node.providers.provider_spec import ProviderSpec, write_spec
from smg_node.providers.route_spec import ENGINES, route_value

SET: Final = "(set)"
OFF: Final = "off"


class Fleet(Protocol):
    """Port to the fleet."""

    def get(self, worker_id: str) -> Worker:
        """Return a worker; NOT_FOUND otherwise."""
        ...

    def workers(self) -> Sequence[Worker]:
        """Return all workers."""
        ...


class ProviderViews:
    """Views of one moment. `now_s` is of the clock that breakers go by."""

    def __init__(
        self,
        definitions: Definitions,
        fleet: Fleet,
        accounts: Mapping[str, ProviderAccount],
        now_s: float,
    ) -> None:
        self._definitions = definitions
        self._fleet = fleet
        self._accounts = accounts
        self._now_s = now_s
        self._targets = targets_of(definitions)

    def provider(self, name: str) -> ProviderView | None:
        """Return a provider; None where none is called so."""
        found = self._definitions.providers.get(name)
        if found is None:
            return None
        return ProviderView(
            name=name,
            kind=found.spec.kind,
            spec=plain_spec(found.spec),
            keys=self._keys(found),
            limits=self._limits(found),
            secrets={key: one.reference or SET for key, one in found.secrets.named.items()},
            source=found.source,
            version=str(found.version),
            owner=found.owner,
            time_ms=found.time_ms,
            trouble=found.trouble,
            targets=list(self._shown(provider=name)),
        )

    def route(self, name: str) -> RouteView | None:
        """Return a route; None where none is called so."""
        found: DefinedRoute | None = self._definitions.routes.get(name)
        if found is None:
            return None
        return RouteView(
            name=name,
            spec=route_value(found.spec),
            source=found.source,
            version=str(found.version),
            owner=found.owner,
            time_ms=found.time_ms,
            targets=self.targets(name),
        )

    def targets(self, model: str) -> Sequence[TargetView]:
        """Return the targets behind a public name."""
        return list(self._shown(model=model))

    def engine(self, target: TargetView) -> VendorSide | None:
        """Return the vendor side of a target; None while it is not open."""
        worker = self._worker(WorkerId(target.worker))
        engine = None if worker is None else worker.engine
        return engine.vendor if isinstance(engine, HttpEngine) else None

    def _shown(self, *, provider: str = "", model: str = "") -> Iterator[TargetView]:
        for worker_id, declared in self._targets.items():
            whose = declared.url.labels[PROVIDER_LABEL]
            if (provider and whose != provider) or (model and declared.url.model != model):
                continue
            yield self._target(worker_id, declared)

    def _target(self, worker_id: WorkerId, declared: DeclaredWorker) -> TargetView:
        state, reason, code, off_ms = self._state(worker_id, declared)
        labels = declared.url.labels
        return TargetView(
            worker=worker_id,
            model=declared.url.model or "",
            to=declared.url.host,
            weight=declared.weight,
            on=tuple(filter(None, labels.get(ON_LABEL, "").split(","))),
            state=state,
            reason=reason,
            code=code,
            off_ms=off_ms,
            only=tuple(filter(None, labels.get(ONLY_LABEL, "").split(","))),
        )

    def _state(
        self, worker_id: WorkerId, declared: DeclaredWorker
    ) -> tuple[str, str, str, int | None]:
        """Return state, reason, code of the reason, and for how many milliseconds."""
        if declared.trouble:
            return Status.FAILED.value, declared.trouble, "", None
        worker = self._worker(worker_id)
        if worker is None:
            return Status.PENDING.value, "not looked at yet", "", None
        if worker.shown_status is not Status.READY:
            return worker.shown_status.value, worker.reason, "", None
        if declared.url.labels[PROVIDER_LABEL] == ENGINES:
            return self._state_of_own(named_in(declared.url)[1])
        now_s, engine = self._now_s, worker.engine
        side = engine.vendor if isinstance(engine, HttpEngine) else None
        pause_s = 0.0 if side is None else side.off_s()
        if side is not None and pause_s > 0:
            why: SmgError = side.off_error()
            return OFF, why.message, why.code, round(1000 * pause_s)
        if broken := worker.breaker.why(now_s):
            next_s = worker.breaker.next_s(now_s)
            left_ms = None if math.isinf(next_s) else round(1000 * (next_s - now_s))
            return OFF, broken, "", left_ms
        return Status.READY.value, "", "", None

    def _state_of_own(self, name: str) -> tuple[str, str, str, int | None]:
        """Return the same for own engines: they are there as long as one of their servers could be given a call."""
        servers = [
            worker
            for worker in self._fleet.workers()
            if is_server(worker)
            and (model := worker.serves)
            and name in (model.name, *model.aliases)
        ]
        sieved = eligible(servers, self._now_s)
        if sieved.candidates:
            return Status.READY.value, "", "", None
        why = "all of its workers are full" if sieved.busy else "none of its workers is ready"
        return OFF, why if servers else "no worker of this cluster serves it now", "", None

    def _worker(self, worker_id: WorkerId) -> Worker | None:
        try:
            return self._fleet.get(worker_id)
        except SmgError:
            return None

    def _keys(self, found: DefinedProvider) -> Sequence[ProviderKeyView]:
        account = self._accounts.get(found.spec.name)
        rests = () if account is None else account.rests()
        named = [secret.reference or SET for secret in found.secrets.keys]
        if len(rests) != len(named):
            return [ProviderKeyView(reference) for reference in named]
        return [
            ProviderKeyView(reference, round(1000 * rest_s), "" if why is None else why.message)
            for reference, (rest_s, why) in zip(named, rests, strict=True)
        ]

    def _limits(self, found: DefinedProvider) -> Sequence[ProviderLimitView]:
        account = self._accounts.get(found.spec.name)
        if account is None:
            return ()
        keys = account.key_limits()
        named = [secret.reference or SET for secret in found.secrets.keys] or [""]
        if len(keys) != len(named):
            return ()
        return [
            ProviderLimitView(
                reference,
                one.what,
                round(one.limit),
                math.floor(one.left),
                round(1000 * one.full_s),
                round(1000 * one.told_s),
                round(one.wanted, 3),
            )
            for reference, limits in zip(named, keys, strict=True)
            for one in limits
        ]


def plain_spec(spec: ProviderSpec) -> dict[str, Any]:
    """Return a spec as an operator writes it, without its name, which stands above it."""
    said: dict[str, Any] = msgspec.json.decode(write_spec(spec))
    said.pop("name")
    return said
