"""Hint ports: interfaces of prefix sharing to the index, to the mesh's hints, and to the fleet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from smg_node.cluster.prefix_hints.hint_queue import HintedIndex
from smg_node.routing.kv_index.index_observer import OnCleared


class SharedIndex(HintedIndex, Protocol):
    """The prefix index, as far as sharing it is concerned."""

    def watch(
        self,
        on_add: Callable[[str, int], object],
        on_remove: Callable[[str, int], object],
        on_clear: OnCleared,
    ) -> None:
        """Report what engines confirm, and what they have evicted."""
        ...

    def held(self, worker: str) -> Sequence[int]:
        """Return what is confirmed of a worker."""
        ...

    def blocks(self, worker: str) -> int:
        """Return about how many blocks of a worker are known; 0 after all of it was forgotten."""
        ...


class HintTaker(Protocol):
    """Receiver of peers' hints from the mesh, see `smg_mesh.crdt.hints.hint_store`."""

    def add(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Take hints in."""
        ...

    def remove(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Drop hints."""
        ...

    def mention(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Take guesses in."""
        ...

    def replace(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Take these in instead of all earlier hints of this owner."""
        ...

    def drop(self, owner: str, subject: str) -> None:
        """Drop all hints of this owner."""
        ...

    def doubt(self, owner: str, subject: str) -> None:
        """Treat all hints of this owner as guesses."""
        ...


class HintDoor(Protocol):
    """The mesh's interface for hints: `smg_mesh.shared.Hints`."""

    def connect(
        self,
        store: HintTaker,
        *,
        contents: Callable[[str], Iterable[int]],
        wanted: Callable[[str, str], bool],
        joined: Callable[[Mapping[str, int]], object],
    ) -> None:
        """Deliver peers' hints to `store`, and nodes that came (with their incarnation) to
        `joined`, before they are sent any hints.
        """
        ...

    def add(self, subject: str, block_hash: int) -> None:
        """Publish that a worker has a block now."""
        ...

    def remove(self, subject: str, block_hash: int) -> None:
        """Publish that it no longer has it."""
        ...

    def clear(self, subject: str, /, *, perhaps: bool) -> None:
        """Publish that it has nothing any more; or, with `perhaps`, that it may have it and this
        node no longer follows it.
        """
        ...

    def mention(self, subject: str, hashes: Iterable[int]) -> None:
        """Publish what it may have."""
        ...

    def keep_quiet(self, *, quiet: bool) -> None:
        """Publish nothing but guesses from now on, or everything again."""
        ...

    def forget(self, subject: str) -> None:
        """Drop all hints about a worker."""
        ...

    def look_again(self) -> None:
        """Ask all peers for what they have."""
        ...

    def missing(self) -> Sequence[str]:
        """Return the peers whose hints are not here yet."""
        ...

    def silent_s(self) -> Mapping[str, float]:
        """Return for how long nothing was received from each peer."""
        ...

    def figures(self) -> Mapping[str, int]:
        """Return the counters."""
        ...


class Known(Protocol):
    """A worker."""

    @property
    def id(self) -> str:
        """Its id."""
        ...


class FollowingFleet(Protocol):
    """The fleet, as far as sharing is concerned."""

    version: int

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever `version` grows."""
        ...

    def workers(self) -> Iterable[Known]:
        """Return all workers."""
        ...

    def following(self, worker_id: str) -> bool:
        """Whether this node receives a worker's cache events from its engine."""
        ...
