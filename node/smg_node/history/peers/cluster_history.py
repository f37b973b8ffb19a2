"""Cluster history: connects a node's history with those of its peers, as asker and as server.

Without a shared store each node holds threads of its own; with one, each may have spooled turns
that are still to be written. The modules for that are not loaded before the first question to or
from a peer.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smg_node.core.ports import Clock, Rng
from smg_node.history.peers.peer_interface import FORETOLD, STORE, UNWRITTEN, Peers
from smg_node.telemetry.metrics.meters import Meters

if TYPE_CHECKING:
    from smg_node.history.peers.pending_writes import PendingWrites
    from smg_node.history.peers.remote_store_server import RemoteStoreServer
    from smg_node.history.peers.routed_store import RoutedStore
    from smg_node.history.ports import Keeper, Threads
    from smg_node.history.store.resilient_store import ResilientStore

LOCAL: Final = frozenset({"memory", "sqlite"})
"""Stores of one machine, that no other node sees."""
_SHARED: Final = frozenset({"postgresql", "oracle", "redis", "none"})
_GONE: Final[Mapping[str, str]] = {"dead": "is dead", "left": "has left"}


class ClusterHistory:
    """This node's part of a distributed history. `kind` is its store's, `keeping` opens that;
    `notes` is a file for names.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        peers: Peers,
        *,
        notes: Path,
        keeping: "Callable[[], ResilientStore]",
        clock: Clock,
        rng: Rng,
        meters: Meters,
    ) -> None:
        self._name: Final = name
        self._notes: Final = notes
        self._kind: Final = kind
        self._peers: Final = peers
        self._keeping: Final = keeping
        self._clock: Final = clock
        self._rng: Final = rng
        self._meters: Final = meters
        self._holders: RoutedStore | None = None
        self._holding: RemoteStoreServer | None = None
        self._unwritten: PendingWrites | None = None
        peers.answer(STORE, self._asked)
        peers.answer(UNWRITTEN, self._asked_unwritten)
        peers.answer(FORETOLD, self._told)

    def keeper(self) -> "Keeper":
        """Return the keeper of history: local, or routed to the node that holds a thread."""
        return self._careful() if self._kind in _SHARED else self._built()

    def _careful(self) -> "PendingWrites":
        if self._unwritten is None:
            from smg_node.history.peers.pending_writes import PendingWrites

            keeping = self._keeping()
            keeping.tell_spooling(lambda some: self._peers.say_spooling(on=some))
            clock = self._clock
            self._unwritten = PendingWrites(
                keeping, self._peers, now_s=clock.monotonic_s, now_ms=clock.now_ms
            )
            keeping.also(self._unwritten.watch)
        return self._unwritten

    def threads(self) -> "Threads | None":
        """Return the assigner of threads; None where every node may own any thread."""
        return None if self._kind in _SHARED else self._built()

    def degraded(self) -> tuple[str, ...]:
        """Return which parts of a distributed history are degraded."""
        others = self._peers.known() if self._kind in LOCAL else {}
        if not others:
            return ()
        told = [
            f"history_is_local: each node holds its own threads ({self._kind}), and while it is away so are they:"
            " share a --store"
        ]
        told += [
            f"holder_away: {name} {_GONE[state]}, and so are the threads it holds"
            for name, state in sorted(others.items())
            if state in _GONE
        ]
        if self._holders is not None and self._holders.alike:
            names = ", ".join(self._holders.alike)
            told.append(
                f"holders_alike: ids do not tell the threads of {names} from another node's: rename"
            )
        return tuple(told)

    def _built(self) -> "RoutedStore":
        if self._holders is None:
            from smg_node.history.peers.remote_store import RemoteStores
            from smg_node.history.peers.routed_store import RoutedStore
            from smg_node.history.peers.thread_owners import ThreadOwners

            now_s, keeping = self._clock.monotonic_s, self._keeping()
            self._holders = RoutedStore(
                keeping,
                ThreadOwners(self._name, self._peers, now_s=now_s, notes=self._notes),
                RemoteStores(
                    self._peers, now_s=now_s, rng=self._rng, observe=self._meters.store_asked
                ),
                # What somebody plugged in says whether it is shared once it is open.
                local=lambda: self._kind in LOCAL or not keeping.shared,
                chance=self._rng,
            )
            self._holders.look_around()
        return self._holders

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer another node's operation on the threads that this one holds."""
        if self._holding is None:
            from smg_node.history.peers.remote_store_server import RemoteStoreServer

            keeping = self._keeping()
            self._holding = RemoteStoreServer(keeping, now_s=self._clock.monotonic_s, rng=self._rng)
        return await self._holding.answer(payload, caller)

    async def _asked_unwritten(self, payload: bytes, caller: str) -> bytes:
        """Answer another node whether the turns it asks for are spooled here."""
        from smg_node.history.peers.pending_writes import answered

        return await answered(self._keeping(), payload)

    async def _told(self, payload: bytes, caller: str) -> bytes:
        """Take in which threads are about to be spooled on another node."""
        return self._careful().hear(payload, caller)
