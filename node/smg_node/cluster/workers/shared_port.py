"""What the fleet's side needs of the shared state; `smg_mesh.shared.Shared` has all of it, tests have less."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from smg_node.routing.policy import Bindings

if TYPE_CHECKING:
    from smg_mesh.shared import Listed, WorkerRecord, WorkerSpec


class WorkersPort(Protocol):
    """The workers of the cluster."""

    def get(self, worker_id: str) -> "WorkerRecord | None":
        """Return one, None if there is none."""
        ...

    def records(self) -> "Sequence[WorkerRecord]":
        """Return all, sorted by id."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell the ids of workers that came, changed or went."""
        ...

    def add(self, worker_id: str, source: Literal["api"], spec: "WorkerSpec") -> "WorkerRecord":
        """Say that a worker exists."""
        ...

    def list_own(self, source: Literal["static"], specs: "Mapping[str, WorkerSpec]") -> "Listed":
        """Say that exactly these are what this node lists itself."""
        ...

    def change(self, worker_id: str, **fields: object) -> "WorkerRecord":
        """Change fields of a spec; LookupError for an unknown worker."""
        ...

    def drain(self, worker_id: str, *, on: bool) -> "WorkerRecord":
        """Say whether it gets no new work; LookupError for an unknown one."""
        ...

    def remove(self, worker_id: str) -> "WorkerRecord":
        """Remove it everywhere; LookupError for an unknown one."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...


class VerdictPort(Protocol):
    """What one node said of a worker."""

    @property
    def node(self) -> str:
        """Who said it."""
        ...

    @property
    def up(self) -> bool:
        """What it said."""
        ...

    @property
    def reason(self) -> str:
        """And why."""
        ...

    @property
    def age_ms(self) -> int:
        """How long ago."""
        ...


class VerdictsPort(Protocol):
    """What the nodes say of the workers they look at."""

    def publish(self, worker_id: str, *, up: bool, reason: str, ttl_ms: int) -> object:
        """Say what this node saw; it holds for `ttl_ms`."""
        ...

    def forget(self, worker_id: str) -> object:
        """Say nothing about it any more."""
        ...

    def of(self, worker_id: str) -> Sequence[VerdictPort]:
        """Return what is fresh."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell the ids of workers about which something new was said, or nothing any more."""
        ...


class LoadPort(Protocol):
    """How much the nodes have open on the workers."""

    def publish(self, loads: Mapping[str, tuple[int, int]]) -> object:
        """Say how many requests and prompt tokens this node has open, by worker."""
        ...

    def other(self, worker_id: str) -> tuple[int, int]:
        """Return what all others together have open there."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell the ids of workers on which others have more or less open than before."""
        ...


class RowPort(Protocol):
    """Where a routing key goes; times are wall-clock milliseconds."""

    @property
    def worker(self) -> str:
        """The worker."""
        ...

    @property
    def why(self) -> str:
        """Why it goes there."""
        ...

    @property
    def node(self) -> str:
        """Who said so last."""
        ...

    @property
    def time_ms(self) -> int:
        """When it was said."""
        ...

    @property
    def expires_ms(self) -> int:
        """When it is forgotten unless it is used."""
        ...


class StickyPort(Bindings, Protocol):
    """Which worker a key keeps."""

    def row(self, key: str) -> RowPort | None:
        """Return all that is known of a binding."""
        ...


class SharedPort(Protocol):
    """One node's part of the state that all nodes share."""

    @property
    def name(self) -> str:
        """This node's name."""
        ...

    @property
    def workers(self) -> WorkersPort:
        """The workers of the cluster."""
        ...

    @property
    def verdicts(self) -> VerdictsPort:
        """What the nodes say of the workers."""
        ...

    @property
    def load(self) -> LoadPort:
        """What the nodes have open on the workers."""
        ...

    @property
    def sticky(self) -> StickyPort:
        """Which worker a key keeps."""
        ...

    @property
    def held(self) -> bool:
        """Whether the cluster's state is here."""
        ...

    def living(self) -> Sequence[str]:
        """Return the names of the living members, this node's included."""
        ...

    def watch_members(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell who lives whenever that changes."""
        ...

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        """Tell when this node had to forget its state, its own listings included."""
        ...

    def watch_held(self, heard: Callable[[], None]) -> None:
        """Tell once when the cluster's state is here."""
        ...

    def seal(self, secret: str) -> bytes:
        """Return a secret as only nodes of this cluster can read it."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return it, None if this node cannot."""
        ...
