"""Lazy history: the node's history, of which nothing is loaded before its first use.

The first call of `keeping` builds the client of the store, and `run` opens the store. A store that
nodes share is opened when the node starts, so that its errors are known before the first request;
and so is any store for which turns are spooled here, or in which an earlier process may have left
orphaned runs.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smg_node.config.frozen_settings import Settings
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.history.peers.cluster_history import LOCAL, ClusterHistory
from smg_node.pipeline.generation.run_interface import Generations
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.telemetry.metrics.meters import Meters

if TYPE_CHECKING:
    from smg_node.history.peers.peer_interface import Peers
    from smg_node.history.ports import HistoryOptions, Keeper, Vault
    from smg_node.history.runs.orphan_recovery import OrphanRecovery
    from smg_node.history.runs.predecessors import Predecessors
    from smg_node.history.runs.run_registry import RegisteredRuns
    from smg_node.history.service.history_service import HistoryService
    from smg_node.history.store.resilient_store import ResilientStore
    from smg_node.history.turns.quotas import Quotas
    from smg_storage.hooks import NamedHook

_ALONE: Final = LOCAL | {"none"}
"""Stores of this machine: there is nothing to find out about them before they are used."""


class LazyHistory:
    """The node's history.

    `living` are the names of all nodes of the cluster that are alive, this one among them; `peers`
    are the others; `vault` seals content that clients carry.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        rng: Rng,
        meters: Meters,
        living: Callable[[], Sequence[str]],
        vault: "Vault",
        peers: "Peers",
    ) -> None:
        self.kind: Final = settings.storage.kind
        """Which store it is, in one word."""
        self._settings = settings
        self._clock: Final = clock
        self._rng: Final = rng
        self._meters: Final = meters
        self._living: Final = living
        self._vault: Final = vault
        self._peers: Final = peers
        self._wanted: Final = asyncio.Event()
        self._keeping: ResilientStore | None = None
        self._lives: Predecessors | None = None
        self._runs: RegisteredRuns | None = None
        self.changed: Callable[[], None] = lambda: None
        """Called when one response less outlives who asked for it."""
        self._many: Final = ClusterHistory(
            settings.name,
            self.kind,
            peers,
            notes=settings.data_dir / "holders" / settings.name,
            keeping=self.keeping,
            clock=clock,
            rng=rng,
            meters=meters,
        )
        self._options: HistoryOptions | None = None
        self._quotas: Quotas | None = None
        self._hooks: Sequence[NamedHook] = ()
        self._load_hooks()

    @property
    def keeps(self) -> bool:
        """Whether history is stored at all."""
        return self.kind != "none"

    def options(self) -> "HistoryOptions":
        """Return the options of history: one object, which follows the cluster's settings."""
        if self._options is None:
            from smg_node.history.service.history_options import history_options

            self._options = history_options(self._settings)
        return self._options

    def retune(self, settings: Settings) -> None:
        """Apply other settings, as far as the built parts can follow them."""
        self._settings = settings
        if self._options is not None:
            from smg_node.history.service.history_options import history_options

            self._options.become(history_options(settings))

    def keeping(self) -> "ResilientStore":
        """Return the keeper of history; the first call waits until the store is open."""
        if self._keeping is None:
            # Imported here: what remembers, and what it stands on, comes with the first chat to remember.
            from smg_node.history.service.factory import build_resilient_store

            self._keeping = build_resilient_store(
                self._settings,
                clock=self._clock,
                rng=self._rng,
                meters=self._meters,
                living=self._living,
                options=self.options(),
            )
            self._runs = self._build_runs()
            self._keeping.also(self._runs.run)
            self._keeping.also(self._build_adopter(self._runs).run)
            self._quotas = self._build_quotas()
            self._keeping.also(self._quotas.run)
            self._wanted.set()
        return self._keeping

    def runs(self) -> "RegisteredRuns":
        """Return the registry of background runs."""
        self.keeping()
        assert self._runs is not None, "they are built with what keeps them"
        return self._runs

    @property
    def count(self) -> int:
        """Number of background runs of this process."""
        return 0 if self._runs is None else self._runs.count

    def cut(self) -> None:
        """End all runs now, because the node shuts down."""
        if self._runs is not None:
            self._runs.cut()

    def quotas(self) -> "Quotas":
        """Return the storage quotas of tenants."""
        self.keeping()
        assert self._quotas is not None, "they are built with what keeps"
        return self._quotas

    def _build_quotas(self) -> "Quotas":
        from smg_node.history.service.factory import build_quotas

        return build_quotas(self._keeper(), self.options(), clock=self._clock, meters=self._meters)

    def _build_runs(self) -> "RegisteredRuns":
        from smg_node.history.runs.predecessors import Predecessors
        from smg_node.history.service.factory import build_runs

        self._lives = Predecessors(
            predecessors_folder(self._settings), self._settings.name, chance=self._rng
        )
        runs = build_runs(
            self._keeper(),
            self.options(),
            owner=self._lives.owner,
            clock=self._clock,
            rng=self._rng,
            meters=self._meters,
        )
        runs.changed = lambda: self.changed()
        return runs

    def _build_adopter(self, runs: "RegisteredRuns") -> "OrphanRecovery":
        from smg_node.history.service.factory import build_adopter

        assert self._lives is not None, "whoever owns runs has lives"
        return build_adopter(
            self._keeper(),
            self.options(),
            runs,
            self._lives,
            peers=self._peers,
            living=self._living,
            clock=self._clock,
            meters=self._meters,
        )

    def _keeper(self) -> "Keeper":
        """Return it with the operator's hooks around it, if there are any."""
        if not self._hooks:
            return self._many.keeper()
        from smg_node.history.store.hooked_store import HookedKeeper

        return HookedKeeper(self._many.keeper(), self._hooks)

    def _load_hooks(self) -> None:
        """Load the operator's hooks; INTERNAL if one cannot be loaded: then nothing is stored."""
        words = self._settings.storage.hooks
        if not words:
            return
        from smg_storage.hooks import load_hooks

        try:
            self._hooks = load_hooks(words)
        except Exception as error:
            # A door to somebody else's code, which may fail in any way when it is loaded.
            message = f"storage.hooks: {error}"
            raise SmgError(ErrorKind.INTERNAL, message) from error

    def desks(
        self,
        generations: Generations,
        placer: Placer,
        preparer: Preparer,
        named: Callable[[str, str], None] = lambda response_id, request_id: None,
    ) -> Callable[[], "HistoryService"]:
        """Return the services of responses and conversations, built once, at the first call.

        `named` is told of each response and the request that it answers.
        """

        @cache
        def build() -> "HistoryService":
            from smg_node.history.context.prompt_length import ModelMeasures
            from smg_node.history.service.factory import build_resumed_streams
            from smg_node.history.service.history_parts import HistoryParts
            from smg_node.history.service.history_service import HistoryService

            runs = self.runs()
            return HistoryService(
                HistoryParts(
                    keeper=self._keeper(),
                    generations=generations,
                    measures=ModelMeasures(placer, preparer),
                    vault=self._vault,
                    clock=self._clock,
                    rng=self._rng,
                    options=self.options(),
                    threads=self._many.threads(),
                    runs=runs,
                    resumed=build_resumed_streams(
                        runs.owner, peers=self._peers, meters=self._meters
                    ),
                    peers=self._peers,
                    quotas=self.quotas(),
                    chain_depth=self._meters.chain_depth,
                    named=named,
                )
            )

        return build

    def reasons(self) -> tuple[str, ...]:
        """Return why this node should get no work on account of history."""
        return self._keeping.reasons() if self._keeping is not None else ()

    def degraded(self) -> tuple[str, ...]:
        """Return which parts of history are degraded."""
        if self._keeping is None:
            return ()
        return self._keeping.degraded() + self._many.degraded()

    async def run(self) -> None:
        """Run history until cancelled, from its first use."""
        if self.kind not in _ALONE or self._has_past():
            self.keeping()
        await self._wanted.wait()
        await self.keeping().run()

    def _has_past(self) -> bool:
        """Whether an earlier process may have left something unfinished, on disk or in a store that
        outlived it.
        """
        left = (
            self.kind == "sqlite"
            and (predecessors_folder(self._settings) / self._settings.name).exists()
        )
        return left or turns_wait(spool_folder(self._settings))

    async def close(self) -> None:
        """Close in order: acknowledged turns are kept."""
        if self._keeping is not None:
            await self._keeping.close()


def spool_folder(settings: Settings) -> Path:
    """Return the folder of this node's spool."""
    return settings.data_dir / "spool" / settings.name


def predecessors_folder(settings: Settings) -> Path:
    """Return the folder in which processes of this node note their names."""
    return settings.data_dir / "lives"


def turns_wait(folder: Path) -> bool:
    """Return whether an earlier process of this node left spooled turns."""
    return folder.is_dir() and any(one.name != "dead" for one in folder.iterdir())
