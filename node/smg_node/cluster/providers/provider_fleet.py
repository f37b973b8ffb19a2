"""Provider fleet: keeps the fleet's targets in step with the definitions of providers and routes.

    own file + shared definitions ─▶ what counts ─▶ targets ─▶ fleet, and accounts that their calls go by

A node without any definition imports nothing of providers and does nothing here.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from smg_mesh.shared import TOOL_SERVER
from smg_node.cluster.definition_ports import DefinitionState
from smg_node.config.schema.problems import ConfigurationError, Problem
from smg_node.config.worker_url import WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ids import WorkerId
from smg_node.core.prices.price_list import DEFINITIONS, PriceBook
from smg_node.engines.engine import Engine
from smg_node.fleet.workers.worker_spec import DeclaredWorker

if TYPE_CHECKING:
    from smg_mesh.shared import CarriedSecrets
    from smg_node.cluster.providers.definitions import Definitions
    from smg_node.cluster.providers.rate_sharing import RateSharing, RatesPort
    from smg_node.pipeline.relay.shadows.shadow_records import ShadowBook
    from smg_node.providers.account import ProviderAccount
    from smg_node.providers.kept_tokens import Spawn
    from smg_node.providers.provider_book import ProviderBook

LATER_S: Final = 5.0
"""Secrets that could not be opened are tried again this often: the keyring may have changed."""
TELL_S: Final = 0.25
"""What accounts know is told to others this often at most."""
FADE_S: Final = 1.0
"""It is looked at this often at least while there is something to tell: what was wanted is so no more after a while."""

_log = logging.getLogger("smg_node.cluster")


class ProviderState(DefinitionState, Protocol):
    """Port to the shared state that definitions are in, and to its members."""

    def living(self) -> Sequence[str]:
        """Return the names of the living members."""
        ...

    @property
    def rates(self) -> "RatesPort":
        """What others know of the limits of accounts."""
        ...

    @property
    def carried(self) -> "CarriedSecrets":
        """Makes the digests by which accounts are known."""
        ...


class TargetFleet(Protocol):
    """Port to the fleet."""

    def apply(self, changes: dict[WorkerId, DeclaredWorker | None]) -> None:
        """Make these workers what they are declared to be."""
        ...


class ProviderFleet:
    """Definitions and targets of one process. `own` is what its file says, as JSON, "" without one.

    `make_book` makes the accounts, when there is the first definition; `prices` is told what is said of those.
    """

    def __init__(
        self,
        own: str,
        shared: ProviderState,
        make_book: "Callable[[Spawn], ProviderBook]",
        now_ms: Callable[[], int],
        prices: PriceBook | None = None,
    ) -> None:
        self.start_shadows: Callable[[Spawn], ShadowBook] | None = None
        """Begins to copy requests, and returns where that is recorded; called for the first route with a shadow."""
        self.shadows: ShadowBook | None = None
        """What became of copies here; None where no route ever had a shadow."""
        self.rates: RatesPort = shared.rates
        """Tells others what the accounts know; another one before it runs, where this process is one of several."""
        self._own_text = own
        self._shared = shared
        self._now_ms = now_ms
        self._make_book = make_book
        self._prices = PriceBook() if prices is None else prices
        self._book: ProviderBook | None = None
        self._own: Definitions | None = None
        self._now: Definitions | None = None
        self._targets: dict[WorkerId, DeclaredWorker] = {}
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._sharing: RateSharing | None = None
        self._complained: dict[str, str] = {}
        self.applied = False
        """Whether what was defined at the start has been made targets, as far as it could be."""
        shared.providers.watch(self._noted)

    def check(self) -> None:
        """Read the node's own file. ConfigurationError names what is wrong in it."""
        if self._own_text:
            try:
                self._own_definitions()
            except SmgError as error:
                raise ConfigurationError([Problem("providers.file", error.message)]) from error

    @property
    def definitions(self) -> "Definitions | None":
        """What counts here; None where there is nothing."""
        return self._now

    def read(self) -> "Definitions":
        """Return what counts by what is shared now, applied or not."""
        from smg_node.cluster.providers.definitions import effective

        return effective(
            self._own_definitions(), self._shared.providers.all(), self._shared.open_secret
        )

    @property
    def targets(self) -> Collection[WorkerId]:
        """Ids of the targets that the fleet was told of."""
        return self._targets.keys()

    def accounts(self) -> "Mapping[str, ProviderAccount]":
        """Return the accounts of this process by their providers' names."""
        return {} if self._book is None else self._book.accounts()

    async def run(self, fleet: TargetFleet) -> None:
        """Keep the fleet in step until cancelled; close all connections at the end."""
        telling: asyncio.Task[None] | None = None
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._wake.clear()
                    self._refresh_anyway(
                        fleet, lambda work, name: group.create_task(work, name=name)
                    )
                    if self._sharing is not None and telling is None:
                        tell = self._tell(self._sharing)
                        telling = group.create_task(tell, name="rates of providers")
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LATER_S if self._troubled() else None):
                            await self._wake.wait()
        finally:
            if self._book is not None:
                await self._book.close()

    def _refresh_anyway(self, fleet: TargetFleet, spawn: "Spawn") -> None:
        try:
            self.refresh(fleet, spawn)
        except Exception:
            # A door: all nodes follow the same definitions, and one that we misread must not end them all.
            _log.exception("definitions of providers cannot be followed as they are now")
        self.applied = True

    def refresh(self, fleet: TargetFleet, spawn: "Spawn") -> None:
        """Apply what counts now; `spawn` starts what makes tokens."""
        shown = [one for one in self._shared.providers.all() if not one.key.startswith(TOOL_SERVER)]
        if not shown and not self._own_text and self._now is None:
            return
        # Imported with the first definition: a node without providers has none of it.
        from smg_node.cluster.providers.definitions import effective
        from smg_node.cluster.providers.targets import targets_of

        self._now = now = effective(self._own_definitions(), shown, self._shared.open_secret)
        self._complain(now)
        self._prices.set(DEFINITIONS, {name: one.price for name, one in now.prices.items()})
        if self._book is None:
            self._book = self._make_book(spawn)
            self._share(self._book)
        shadowed = any(route.spec.shadow is not None for route in now.routes.values())
        if shadowed and self.shadows is None and self.start_shadows is not None:
            self.shadows = self.start_shadows(spawn)
        self._book.update(
            {one.spec.name: (one.spec, one.secrets) for one in now.providers.values()}
        )
        self._changed()
        targets = targets_of(now)
        changes: dict[WorkerId, DeclaredWorker | None] = {
            worker_id: declared
            for worker_id, declared in targets.items()
            if self._targets.get(worker_id) != declared
        }
        changes.update(dict.fromkeys(self._targets.keys() - targets.keys()))
        self._targets = targets
        if changes:
            fleet.apply(changes)

    async def open(self, url: WorkerUrl) -> Engine:
        """Return the engine of a target; CONFLICT if nothing defines it any more."""
        from smg_node.cluster.providers.targets import named_in
        from smg_node.providers.route_spec import ENGINES

        provider, model = named_in(url)
        if provider == ENGINES:
            from smg_node.engines.http.own_engines import OwnEngines

            return OwnEngines(model, public=url.model or model, provider=provider)
        if self._book is None or not self._book.has(provider):
            raise SmgError(ErrorKind.CONFLICT, f"no provider is called {provider!r}")
        opened = self._book.open(provider, model, public=url.model or model)
        self._changed()
        return opened

    def _share(self, book: "ProviderBook") -> None:
        """Let accounts hear what others are told."""
        from smg_node.cluster.providers.rate_sharing import RateSharing

        digest = self._shared.carried.digest
        self._sharing = RateSharing(book.accounts, self.rates, digest, self._now_ms)
        book.noted = self._news.set

    def _changed(self) -> None:
        if self._sharing is not None:
            self._sharing.changed()

    async def _tell(self, sharing: "RateSharing") -> None:
        """Tell others what the accounts know, until cancelled."""
        telling = False
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(FADE_S if telling else None):
                    await self._news.wait()
            self._news.clear()
            rows = sharing.rows()
            if rows or telling:
                self.rates.publish(rows)
            telling = bool(rows)
            await asyncio.sleep(TELL_S)

    def _noted(self, keys: Sequence[str]) -> None:
        if not keys or not all(key.startswith(TOOL_SERVER) for key in keys):
            self._wake.set()

    def _own_definitions(self) -> "Definitions":
        if self._own is None:
            from smg_node.cluster.providers.definitions import read_own

            self._own = read_own(self._own_text)
        return self._own

    def _troubled(self) -> bool:
        now = self._now
        return now is not None and any(one.trouble for one in now.providers.values())

    def _complain(self, now: Any) -> None:
        """Log what of the cluster's definitions is not followed, once for each reason."""
        for key, why in now.unreadable.items():
            if self._complained.get(key) != why:
                _log.warning("%s is not followed here: %s", key, why)
        self._complained = dict(now.unreadable)
