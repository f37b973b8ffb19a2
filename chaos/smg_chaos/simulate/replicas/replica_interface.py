"""Replica interface: protocols of a replica, as the world calls it; tests give a simple one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from smg_mesh.config import StateOptions
from smg_mesh.crdt.namespace import Namespace
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import News
from smg_mesh.sync.exchange.piece_interface import Pieces
from smg_mesh.sync.replica_effects import Wish


class Row(Protocol):
    """One row of a table as it is read."""

    @property
    def content(self) -> bytes:
        """What was written; empty for a removal."""
        ...

    @property
    def hlc(self) -> int:
        """When, by the hybrid clock."""
        ...

    @property
    def owner(self) -> str:
        """By whom."""
        ...


class Table(Protocol):
    """A table of many writers with the clock bound: `sync.bound_views.BoundTable`."""

    def get(self, key: str) -> Row | None:
        """Return the row, None if there is none or it is over."""
        ...

    def put(self, key: str, content: bytes, *, ttl_ms: int | None = None) -> Row:
        """Write a row."""
        ...

    def touch(self, key: str) -> Row | None:
        """Keep a row alive."""
        ...

    def items(self, prefix: str = "") -> Sequence[Row]:
        """Return the rows whose keys begin so."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...


class Register(Protocol):
    """One ephemeral register as it is read."""

    @property
    def owner(self) -> str:
        """Whose."""
        ...

    @property
    def content(self) -> bytes:
        """What it says."""
        ...


class Registers(Protocol):
    """The ephemeral registers with the clock bound: `sync.bound_views.BoundRegisters`."""

    def set(self, kind: str, key: str, content: bytes, *, ttl_ms: int) -> None:
        """Write an own one."""
        ...

    def items(self, kind: str) -> Sequence[Register]:
        """Return all of a kind, of all living owners."""
        ...


class Sums(Protocol):
    """The amount held of one kind of state: `sync.piece_store.NamespaceState`."""

    @property
    def digest(self) -> str:
        """Equal where the same counts."""
        ...

    @property
    def entries(self) -> int:
        """How many live keys or rows."""
        ...

    @property
    def size_bytes(self) -> int:
        """Of all its documents."""
        ...


class Replica(Pieces, Protocol):
    """The inputs and the readings of `smg_mesh.sync.replica.Replica` that a driver uses."""

    @property
    def registers(self) -> Registers:
        """The ephemeral registers."""
        ...

    def namespace(self, name: str) -> Namespace:
        """Return a namespace."""
        ...

    def table(self, name: str) -> Table:
        """Return a table."""
        ...

    def hear(self, news: News) -> None:
        """Take a rumor."""
        ...

    def set_members(self, living: Sequence[tuple[str, int]]) -> None:
        """Learn who lives, in which life."""
        ...

    def change_boot(self, boot: int) -> None:
        """Go on as a later life."""
        ...

    def tick(self) -> None:
        """Do what is due."""
        ...

    def met(self, peer: str, *, full: bool) -> None:
        """Learn that an exchange came to its end."""
        ...

    def alone(self) -> None:
        """Learn that there is no peer that could know more."""
        ...

    def dump(self, name: str) -> bytes:
        """Return what belongs on disk of a piece."""
        ...

    def load(self, name: str, content: bytes) -> None:
        """Take what an earlier life kept of a piece."""
        ...

    def loaded(self, absent_ms: int) -> None:
        """Learn that all is loaded, and how long this node was away."""
        ...

    def digest(self) -> bytes:
        """Return 8 bytes over all pieces."""
        ...

    def state(self) -> Mapping[str, Sums]:
        """Return what is held, by name."""
        ...

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        """Tell when everything was dropped because this node was away for too long."""
        ...


class ReplicaFactory(Protocol):
    """The maker of a replica for a life; nothing is loaded yet."""

    def __call__(
        self,
        me: str,
        boot: int,
        *,
        options: StateOptions,
        rng: Rng,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tell: Callable[[Wish], None],
    ) -> Replica:
        """Return it."""
        ...
