"""Where history is kept, and nothing of it loaded before somebody wants it: a node without chats pays nothing.

Who wants it asks for `keeping`: what speaks to the store is built then, and `run` opens the store. A store that
others share is opened with the node, so that what is wrong with it is known before the first request; and so is any
store for which turns wait on this node's disk.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smg_node.config.plain import Settings
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.pipeline.place import Placer
from smg_node.pipeline.prepare import Preparer
from smg_node.pipeline.run import Generations
from smg_node.telemetry.metrics import Meters

if TYPE_CHECKING:
    from smg_node.history.desks import HistoryDesks
    from smg_node.history.keeping import Keeping
    from smg_node.history.ports import Keeper, Vault
    from smg_storage.hooks import NamedHook

_LOCAL: Final = frozenset({"memory", "sqlite"})
_ALONE: Final = _LOCAL | {"none"}
"""Stores of this machine: there is nothing to find out about them before they are used."""


class HistoryDoor:
    """The node's history.

    `living` are the names of all nodes of the cluster that are alive, this one among them; `vault` seals what clients
    carry for us.
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
    ) -> None:
        self.kind: Final = settings.storage.kind
        """Which store it is, in one word."""
        self._settings: Final = settings
        self._clock: Final = clock
        self._rng: Final = rng
        self._meters: Final = meters
        self._living: Final = living
        self._vault: Final = vault
        self._wanted: Final = asyncio.Event()
        self._keeping: Keeping | None = None
        self._hooks: Sequence[NamedHook] = ()
        self._load_hooks()

    @property
    def keeps(self) -> bool:
        """Whether anything is kept at all."""
        return self.kind != "none"

    def keeping(self) -> "Keeping":
        """Return what speaks to the store; the first call of it waits until the store is open."""
        if self._keeping is None:
            # Imported here: what remembers, and what it stands on, comes with the first chat to remember.
            from smg_node.history.building import build_keeping

            self._keeping = build_keeping(
                self._settings,
                clock=self._clock,
                rng=self._rng,
                meters=self._meters,
                living=self._living,
            )
            self._wanted.set()
        return self._keeping

    def _keeper(self) -> "Keeper":
        """Return it with the operator's hooks around it, if there are any."""
        if not self._hooks:
            return self.keeping()
        from smg_node.history.hooked import HookedKeeping

        return HookedKeeping(self.keeping(), self._hooks)

    def _load_hooks(self) -> None:
        """Load the operator's hooks; INTERNAL if one cannot be: nothing is kept without those that were asked for."""
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
        self, generations: Generations, placer: Placer, preparer: Preparer
    ) -> Callable[[], "HistoryDesks"]:
        """Return what builds, once and when it is first asked, all that serves responses and conversations."""

        @cache
        def build() -> "HistoryDesks":
            from smg_node.history.desk import HistoryParts
            from smg_node.history.desks import HistoryDesks, history_options
            from smg_node.history.measures import ModelMeasures

            return HistoryDesks(
                HistoryParts(
                    keeper=self._keeper(),
                    generations=generations,
                    measures=ModelMeasures(placer, preparer),
                    vault=self._vault,
                    clock=self._clock,
                    rng=self._rng,
                    options=history_options(self._settings),
                )
            )

        return build

    def reasons(self) -> tuple[str, ...]:
        """Return why work should not be sent here on account of history."""
        return self._keeping.reasons() if self._keeping is not None else ()

    def degraded(self) -> tuple[str, ...]:
        """Return what of history is not as it should be."""
        if self._keeping is None:
            return ()
        told = self._keeping.degraded()
        if self.kind in _LOCAL and len(self._living()) > 1:
            told += (f"history_is_local: other nodes see nothing of {self.kind}: share a --store",)
        return told

    async def run(self) -> None:
        """Keep history until cancelled, from when it is wanted."""
        if self.kind not in _ALONE or turns_wait(spool_folder(self._settings)):
            self.keeping()
        await self._wanted.wait()
        await self.keeping().run()

    async def close(self) -> None:
        """End in order: what was acknowledged is kept."""
        if self._keeping is not None:
            await self._keeping.close()


def spool_folder(settings: Settings) -> Path:
    """Return where turns of this node wait for the store."""
    return settings.data_dir / "spool" / settings.name


def turns_wait(folder: Path) -> bool:
    """Return whether an earlier process of this node left anything there."""
    return folder.is_dir() and any(one.name != "dead" for one in folder.iterdir())
