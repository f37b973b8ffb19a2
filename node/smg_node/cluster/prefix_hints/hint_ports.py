"""What sharing prefixes needs: an index, a way through the mesh, and the fleet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from smg_node.cluster.prefix_hints.hint_queue import HintedIndex
from smg_node.routing.kv_index.index_observer import OnCleared


class SharedIndex(HintedIndex, Protocol):
    """The index, as far as sharing it is concerned."""

    def watch(
        self,
        on_add: Callable[[str, int], object],
        on_remove: Callable[[str, int], object],
        on_clear: OnCleared,
    ) -> None:
        """Tell what engines confirm, and what they have no more."""
        ...

    def held(self, worker: str) -> Sequence[int]:
        """Return what is confirmed of a worker."""
        ...

    def blocks(self, worker: str) -> int:
        """Return how many blocks are known of a worker, about; 0 when all of it was forgotten."""
        ...


class HintTaker(Protocol):
    """Where the mesh puts what peers say, see `smg_mesh.crdt.hints.hint_store`."""

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
        """Take these in instead of all that this owner said."""
        ...

    def drop(self, owner: str, subject: str) -> None:
        """Drop all that this owner said."""
        ...

    def doubt(self, owner: str, subject: str) -> None:
        """Take all that this owner said for a guess."""
        ...


class HintDoor(Protocol):
    """The mesh's way for hints: `smg_mesh.shared.Hints`."""

    def connect(
        self,
        store: HintTaker,
        *,
        contents: Callable[[str], Iterable[int]],
        wanted: Callable[[str, str], bool],
        joined: Callable[[Mapping[str, int]], object],
    ) -> None:
        """Let `store` hear what peers say, and `joined` who came, and in which life, before they are told anything."""
        ...

    def add(self, subject: str, block_hash: int) -> None:
        """Tell that a worker has a block now."""
        ...

    def remove(self, subject: str, block_hash: int) -> None:
        """Tell that it has it no more."""
        ...

    def clear(self, subject: str, /, *, perhaps: bool) -> None:
        """Tell that it has nothing any more; or that it has it `perhaps`, and nobody hears it here."""
        ...

    def mention(self, subject: str, hashes: Iterable[int]) -> None:
        """Tell what it may have."""
        ...

    def keep_quiet(self, *, quiet: bool) -> None:
        """Tell nothing but what it may have."""
        ...

    def forget(self, subject: str) -> None:
        """Drop what anybody said of a worker."""
        ...

    def look_again(self) -> None:
        """Ask all what they have."""
        ...

    def missing(self) -> Sequence[str]:
        """Return whose hints are not here yet."""
        ...

    def silent_s(self) -> Mapping[str, float]:
        """Return for how long nothing was heard of each peer."""
        ...

    def figures(self) -> Mapping[str, int]:
        """Return what was counted."""
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

    def workers(self) -> Iterable[Known]:
        """Return all workers."""
        ...

    def following(self, worker_id: str) -> bool:
        """Whether this node hears what becomes of a worker's cache from its engine."""
        ...
